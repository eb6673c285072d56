//! Converts a whole net to ONNX: the layers of a prototxt or of the model, with the weights.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use syncblob::{Format, Model};
use syncblob_net::{
    ErrorKind, Layer, Limits, Mean, Net, NetOptions, Onnx, OnnxOptions, Preprocessing,
};

use super::watched::{same_file, Watched};
use super::{about_input, about_output, Note};
use crate::advice;
use crate::interrupt::Interrupt;
use crate::output::Target;
use crate::progress::Progress;
use crate::source::{Failure, FileFormat, Result};

/// The options of `convert` that apply only if OUT is an .onnx file.
#[derive(clap::Args, Debug, Default, PartialEq)]
#[command(next_help_heading = "Options for .onnx")]
pub struct NetArguments {
    /// The shape of an input, such as data=1x3x224x224; may be given several times
    #[arg(long = "input", value_name = "NAME=SHAPE", value_parser = named_shape)]
    inputs: Vec<(String, Vec<i64>)>,

    /// Compute these blobs instead of the net's outputs, and leave out layers that these blobs do
    /// not need
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    outputs: Vec<String>,

    /// The size of the batch, or a name for a variable size
    ///
    /// The size applies to the first axis of the first input, and of each input whose first axis
    /// has the same size.
    #[arg(long, value_name = "N|NAME", value_parser = batch)]
    batch: Option<Batch>,

    /// Write layers that cannot be converted as nodes of the domain `caffe`
    ///
    /// A node has the layer's type. The node's inputs are the layer's bottoms and weights. The
    /// node's attributes are the layer's parameters. The program that runs the file must support
    /// such nodes.
    #[arg(long)]
    custom: bool,

    /// The shape of a top of a layer that --custom writes, such as rois=300x5
    #[arg(long = "shape", value_name = "NAME=SHAPE", value_parser = named_shape, requires = "custom")]
    shapes: Vec<(String, Vec<i64>)>,

    /// Store weights as f16, and compute in f16
    #[arg(long)]
    fp16: bool,

    /// Subtract a mean from the input before the first layer: a .binaryproto, or a number for each
    /// channel
    #[arg(long, value_name = "FILE|B,G,R")]
    mean: Option<String>,

    /// Multiply the input by X before the first layer, after the mean is subtracted
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    scale: Option<f32>,

    /// Swap red and blue of the input before the first layer, before the mean is subtracted
    #[arg(long)]
    swap_rb: bool,
}

/// The size of the inputs' first axis: a number, or a name for a variable size.
#[derive(Clone, Debug, PartialEq)]
enum Batch {
    Size(i64),
    Name(String),
}

impl NetArguments {
    pub fn are_given(&self) -> bool {
        *self != Self::default()
    }
}

fn named_shape(text: &str) -> std::result::Result<(String, Vec<i64>), String> {
    let (name, shape) = text.rsplit_once('=').ok_or("it is not NAME=SHAPE")?;
    let dims = shape.split(['x', ',']).map(|dim| match dim.parse::<i64>() {
        Ok(dim) if dim > 0 => Ok(dim),
        _ => Err(format!("'{dim}' is not a dimension; write a shape like 1x3x224x224")),
    });
    Ok((name.to_owned(), dims.collect::<std::result::Result<_, _>>()?))
}

fn batch(text: &str) -> std::result::Result<Batch, String> {
    match text.parse::<i64>() {
        Ok(size) if size > 0 => Ok(Batch::Size(size)),
        Err(_) if text.starts_with(|first: char| first.is_alphabetic() || first == '_') => {
            Ok(Batch::Name(text.to_owned()))
        }
        _ => Err("neither a size above 0 nor a name".into()),
    }
}

pub struct NetTask<'a> {
    /// A prototxt and a model, or a model alone.
    pub inputs: &'a [PathBuf],
    pub output: &'a Path,
    pub arguments: &'a NetArguments,
    pub force: bool,
    pub dry_run: bool,
    pub note: Note<'a>,
}

/// Converts a net and writes either the complete file or nothing. For a dry run, writes nothing and
/// returns the converted net.
pub fn convert_net(task: &NetTask, interrupt: &Interrupt) -> Result<Option<Onnx>> {
    refuse_source(task)?;
    let Opened { net, model } = open(task.inputs, task.arguments)?;
    for warning in net.warnings() {
        (task.note)(warning);
    }
    let writing = |failure| about_output(task.output, failure);
    let onnx = net.to_onnx(&options(task.arguments)?);
    let onnx = onnx.map_err(|error| not_converted(&error, task, &net));
    let onnx = onnx.map_err(|failure| about_output(&task.inputs[0], failure))?;
    for warning in onnx.warnings() {
        (task.note)(warning);
    }
    if task.dry_run {
        return Ok(Some(onnx));
    }
    let target = Target::new(task.output, task.force).map_err(writing)?;
    interrupt.listen()?;
    match onnx.needs_external() {
        false => target.write(interrupt, task.note, |file| {
            write(&onnx, model.as_ref(), file.as_file(), interrupt)
        }),
        true => write_two(task, &target, &onnx, interrupt),
    }
    .map_err(writing)?;
    if let Some(overflow) = onnx.overflow() {
        (task.note)(&overflow);
    }
    Ok(None)
}

/// Refuses to replace an input file, even through another path to the same file.
fn refuse_source(task: &NetTask) -> Result<()> {
    let data = beside(task.output);
    for output in [task.output, &data] {
        let place = fs::canonicalize(output);
        let is_place = |input: &&PathBuf| {
            matches!((&place, fs::canonicalize(input)),
            (Ok(place), Ok(input)) if *place == input)
        };
        if let Some(input) = task.inputs.iter().find(is_place) {
            let text = format!("it is the input file {}", input.display());
            return Err(about_output(output, Failure::Unsupported(text)));
        }
    }
    Ok(())
}

/// Returns the path of the second file, which has weights that are too large for the first.
fn beside(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(".data");
    output.with_file_name(name)
}

/// If no layer makes a requested output, returns text that suggests another blob. Without a
/// suggestion, returns an empty text.
fn meant_output(net: &Net, outputs: &[String]) -> String {
    let tops = || net.layers().iter().flat_map(Layer::tops).map(String::as_str);
    let Some(name) = outputs.iter().find(|name| !tops().any(|top| top == **name)) else {
        return String::new();
    };
    let layer = net.layers().iter().find(|layer| layer.name() == name);
    match layer.and_then(|layer| layer.tops().first()) {
        Some(top) => format!("; the layer of this name makes the blob '{top}'"),
        None => advice::similar(name, tops()),
    }
}

/// Makes a failure with one line for each layer that cannot be converted, followed by advice.
fn not_converted(error: &syncblob_net::Error, task: &NetTask, net: &Net) -> Failure {
    let (problems, has_weights) = (error.problems(), net.model().is_some());
    let mut text = error.to_string();
    if error.kind() == ErrorKind::Argument {
        text.push_str(&meant_output(net, &task.arguments.outputs));
    } else if problems.iter().any(|problem| problem.kind == ErrorKind::Unsupported) {
        text.push_str(ADVICE);
    } else if !has_weights && !problems.is_empty() {
        text.push_str("\nno model is given: the .caffemodel comes after the prototxt");
    } else if task.inputs.len() > 1 && problems.len() > 1 {
        text.push_str("\nare the model and the prototxt of different nets?");
    }
    match problems {
        [] => Failure::Unsupported(text),
        _ => Failure::File(text),
    }
}

const ADVICE: &str = "\nnothing is written; --outputs NAME computes a blob before such a layer, \
    --custom writes the layer as it is";

struct Opened {
    net: Net,
    /// The model's file, if the system can copy weights directly from it to the output.
    model: Option<File>,
}

/// Opens the net in `inputs`: a prototxt, a model, or a prototxt and then a model.
fn open(inputs: &[PathBuf], arguments: &NetArguments) -> Result<Opened> {
    let (prototxt, model) = match inputs {
        [prototxt, model] => (Some(prototxt), Some(model)),
        [only] if is_prototxt(only) => (Some(only), None),
        _ => (None, inputs.first()),
    };
    let text = prototxt.map(|path| {
        Limits::default().read_prototxt(path).map_err(|error| about_input(path, error.into()))
    });
    let text = text.transpose()?;
    let before = model.and_then(|path| fs::metadata(path).ok());
    let opened = model.map(|path| open_model(path, prototxt)).transpose()?;
    let file = model.zip(before).and_then(|(path, before)| same_file(path, &before));
    let mut options = NetOptions::default();
    options.inputs.clone_from(&arguments.inputs);
    options.batch = match arguments.batch {
        Some(Batch::Size(size)) => Some(size),
        _ => None,
    };
    let net = match (text, opened.map(Arc::new)) {
        (Some(text), model) => Net::from_prototxt(&text, &options)
            .map_err(|error| of_text(&inputs[0], error))
            .and_then(|net| match model {
                Some(model) => net.with_weights(model).map_err(failure),
                None => Ok(net),
            }),
        (None, model) => Net::open(None, model, &options).map_err(failure),
    };
    let net = net.map_err(|failure| about_output(&inputs[0], failure))?;
    let [prototxt, model] = [prototxt, model].map(|path| path.map(PathBuf::as_path));
    Ok(Opened { net: net.with_sources(prototxt, model), model: file })
}

pub fn is_prototxt(path: &Path) -> bool {
    matches!(Model::open(path), Err(error) if advice::is_prototxt(path, &error))
}

fn is_of_tensors(path: &Path) -> bool {
    let format = File::open(path).ok().and_then(|file| FileFormat::of_file(&file).ok());
    format.is_some_and(|format| !matches!(format, FileFormat::Caffe(_)))
}

/// Makes the failure for an invalid prototxt. If the file is a model, explains the order of the
/// files.
fn of_text(path: &Path, error: syncblob_net::Error) -> Failure {
    match Model::open(path) {
        Ok(_) => Failure::Unsupported("this is a model: the prototxt comes first".into()),
        Err(_) => failure(error),
    }
}

/// Refuses a file that is not a .caffemodel.
fn open_model(path: &Path, prototxt: Option<&PathBuf>) -> Result<Model> {
    let refuse = |text: &str| Err(about_output(path, Failure::Unsupported(text.into())));
    match Model::open(path) {
        Ok(model) if model.format() == Format::Caffemodel => Ok(model),
        Ok(model) => {
            refuse(&format!("a {} has no layers: give a .caffemodel", model.format().name()))
        }
        Err(error) if advice::is_prototxt(path, &error) => match prototxt {
            Some(first) if Model::open(first).is_ok() => {
                refuse("this is a prototxt: it comes first, then the model")
            }
            _ => refuse("this is a prototxt, without weights: the model comes after it"),
        },
        Err(_) if is_of_tensors(path) => {
            refuse("the weights must be in a .caffemodel: convert this file to one first")
        }
        Err(error) => Err(about_input(path, error.into())),
    }
}

pub fn failure(error: syncblob_net::Error) -> Failure {
    Failure::Unsupported(error.to_string())
}

fn options(arguments: &NetArguments) -> Result<OnnxOptions> {
    let mut options = OnnxOptions::default();
    options.outputs.clone_from(&arguments.outputs);
    options.batch = match &arguments.batch {
        Some(Batch::Name(name)) => Some(name.clone()),
        _ => None,
    };
    options.half = arguments.fp16;
    options.custom = arguments.custom;
    options.shapes.clone_from(&arguments.shapes);
    options.preprocessing = preprocessing(arguments)?;
    Ok(options)
}

fn preprocessing(arguments: &NetArguments) -> Result<Preprocessing> {
    let mut preprocessing = Preprocessing::default();
    preprocessing.swap_rb = arguments.swap_rb;
    preprocessing.scale = arguments.scale;
    preprocessing.mean = arguments.mean.as_deref().map(mean).transpose()?;
    Ok(preprocessing)
}

/// Parses numbers that are separated by commas. Any other text is the path of a mean file.
fn mean(text: &str) -> Result<Mean> {
    let numbers: std::result::Result<Vec<f32>, _> = text.split(',').map(str::parse).collect();
    if let Ok(numbers) = numbers {
        return Ok(Mean::Channels(numbers));
    }
    let path = Path::new(text);
    read_mean(path).map_err(|failure| about_input(path, failure))
}

fn read_mean(path: &Path) -> Result<Mean> {
    let model = Model::open(path)?;
    let blob = model.load::<f32>(0)?;
    let shape: Vec<i64> = blob.shape().iter().map(|&dim| dim as i64).collect();
    match *shape.as_slice() {
        [1, channels, height, width] | [channels, height, width] => {
            Ok(Mean::Image { shape: [channels, height, width], values: blob.data()?.to_vec() })
        }
        _ => Err(Failure::Unsupported(format!(
            "the mean image has shape {shape:?}; it must be channels x height x width, or 1 x \
             channels x height x width"
        ))),
    }
}

fn write(onnx: &Onnx, model: Option<&File>, file: &File, interrupt: &Interrupt) -> Result<()> {
    let progress = Progress::new(onnx.size_of_values());
    let mut out = Watched::new(file, model, interrupt, progress);
    onnx.write_to(&mut out).map_err(|error| interrupted(error, interrupt))?;
    Ok(out.flush()?)
}

/// Writes the weights to a second file, to which the ONNX file refers by name.
fn write_two(task: &NetTask, target: &Target, onnx: &Onnx, interrupt: &Interrupt) -> Result<()> {
    let path = beside(task.output);
    let values = Target::new(&path, task.force).map_err(|failure| about_output(&path, failure))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    target.write_with(&values, interrupt, task.note, |message, values| {
        let mut message = BufWriter::new(message);
        let progress = Progress::new(onnx.size_of_values());
        let mut out = Watched::new(values, None, interrupt, progress);
        let written = onnx.write_external(&name, &mut message, &mut out);
        written.map_err(|error| interrupted(error, interrupt))?;
        out.flush()?;
        Ok(message.flush()?)
    })
}

/// Returns `Interrupted` if a signal stopped the writing, or else the error.
fn interrupted(error: syncblob_net::Error, interrupt: &Interrupt) -> Failure {
    interrupt.check().err().unwrap_or_else(|| failure(error))
}

pub fn is_onnx(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_inputs_are_parsed() {
        assert_eq!(named_shape("data=1x3x2x2"), Ok(("data".into(), vec![1, 3, 2, 2])));
        assert_eq!(named_shape("a=b=7"), Ok(("a=b".into(), vec![7])));
        for wrong in ["data", "data=", "data=1x0", "data=1x-3", "data=axb"] {
            assert!(named_shape(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_and_names_of_batches_are_parsed() {
        assert_eq!(batch("8"), Ok(Batch::Size(8)));
        for name in ["N", "batch_size", "_1"] {
            assert_eq!(batch(name), Ok(Batch::Name(name.into())));
        }
        for wrong in ["", "0", "-1", "1.5", "8x", " N", "99999999999999999999"] {
            assert!(batch(wrong).is_err(), "{wrong}");
        }
    }
}
