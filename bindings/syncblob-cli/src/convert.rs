//! `convert`: converts weights from one format to another, one tensor at a time.

mod archive;
mod caffe;
mod layers;
pub mod names;
mod numpy;
pub mod onnx;
pub mod plan;
mod safetensors;
mod state;
mod values;
mod watched;

use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::ValueEnum;
use glob::Pattern;
use syncblob::{Dtype, Format};
use syncblob_net::{Dim, Onnx};

use self::caffe::Net;
use self::onnx::{convert_net, NetArguments, NetTask};
use self::plan::{Plan, Wishes};
use self::values::Reader;
use crate::interrupt::Interrupt;
use crate::output::Target;
use crate::progress::Progress;
use crate::source::{unique_names, Failure, FileFormat, Result, Source};
use crate::standard_output::StandardOutput;
use crate::text::{grouped, printable};
use crate::{advice, complain, Status};

/// Convert weights between Caffe's formats, safetensors and NumPy's, and nets into ONNX
///
/// The content of IN determines its format. The extension of OUT selects its format: .caffemodel,
/// .solverstate, .binaryproto, .safetensors, .npz, .npy. The command holds one tensor at a time in
/// memory. OUT is written to a temporary file, which is renamed when it is complete.
///
/// The command converts weights: all blobs, the names, types and order of layers, the name of the
/// net, and the counters of a solver. A net's parameters and connections, and all diffs, are left
/// out. A .caffemodel is written in Caffe's current form.
///
/// If OUT is an .onnx file, the command converts the whole net: layers, parameters and weights.
/// FILE is then the prototxt and the model, or a model alone. A model contains its net, but rarely
/// the shapes of the inputs: set them with --input. Blobs keep their names. If a layer cannot be
/// converted, nothing is written, and every such layer is listed.
///
/// A .safetensors file stores the layers in its metadata, so you can convert it back. A .npz or
/// .npy file stores only the names of tensors. A .caffemodel made from such a file has layers
/// without types.
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 if OUT was written; 1 if it was not, and is unchanged; \
    2 for wrong usage.",
    after_long_help = AFTER_HELP)]
pub struct Arguments {
    /// The file to read, then the file to write. For .onnx, the files to read are the prototxt (if
    /// there is one) and the model
    #[arg(value_name = "FILE", required = true, num_args = 1..=3)]
    files: Vec<PathBuf>,

    /// The file to write. Each FILE is then a file to read
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// Read IN as this format, instead of detecting it
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Option<FormatArgument>,

    /// Write OUT in this format, and ignore its extension
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<FormatArgument>,

    /// How tensors are named and shaped [default: torch from a .caffemodel to a .safetensors or
    /// .npz, else caffe]
    #[arg(long, value_enum, value_name = "SCHEME")]
    names: Option<Scheme>,

    /// Store all values as this type, instead of their types in IN
    ///
    /// Each value is rounded to the type's nearest value. Values beyond the type's range become
    /// infinite. Standard error reports the number of such values.
    #[arg(long, value_enum, value_name = "DTYPE")]
    dtype: Option<DtypeArgument>,

    /// Convert only tensors whose name in OUT matches GLOB; may be given several times
    #[arg(long, value_name = "GLOB")]
    only: Vec<Pattern>,

    /// List what would be written, but write nothing
    #[arg(long)]
    dry_run: bool,

    /// Replace OUT if it exists
    #[arg(short, long)]
    force: bool,

    #[command(flatten)]
    net: NetArguments,
}

const AFTER_HELP: &str = "\
Examples:
  syncblob convert resnet.caffemodel resnet.safetensors
  syncblob convert resnet.caffemodel half.safetensors --dtype f16
  syncblob convert resnet.caffemodel blobs.npz --names caffe
  syncblob convert resnet.safetensors resnet.caffemodel
  syncblob convert mean.binaryproto mean.npy
  syncblob convert deploy.prototxt resnet.caffemodel -o resnet.onnx
  syncblob convert resnet.caffemodel -o resnet.onnx --input data=1x3x224x224
  syncblob convert --dry-run --only 'conv*' resnet.caffemodel conv.npz

Exit status:
  0  OUT was written
  1  IN cannot be read or converted, or OUT cannot be written. The reason is on
     standard error, and OUT is unchanged
  2  wrong usage";

#[derive(Clone, Copy, ValueEnum)]
enum FormatArgument {
    /// NetParameter: the layers of a net
    Caffemodel,
    /// SolverState: the history of a solver
    Solverstate,
    /// BlobProto: one blob, such as mean.binaryproto
    Binaryproto,
    /// BlobProtoVector: a list of blobs
    Blobvector,
    Safetensors,
    /// NumPy's archive of arrays
    Npz,
    /// NumPy's file of one array
    Npy,
}

impl From<FormatArgument> for FileFormat {
    fn from(format: FormatArgument) -> Self {
        match format {
            FormatArgument::Caffemodel => Self::Caffe(Some(Format::Caffemodel)),
            FormatArgument::Solverstate => Self::Caffe(Some(Format::Solverstate)),
            FormatArgument::Binaryproto => Self::Caffe(Some(Format::Blob)),
            FormatArgument::Blobvector => Self::Caffe(Some(Format::BlobVector)),
            FormatArgument::Safetensors => Self::Safetensors,
            FormatArgument::Npz => Self::Npz,
            FormatArgument::Npy => Self::Npy,
        }
    }
}

/// How the tensors of a net are named and shaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum Scheme {
    /// As in PyTorch's modules: layer.weight, layer.bias. A BatchNorm and its Scale are one module.
    /// The module's running_mean and running_var are divided by the BatchNorm's factor
    Torch,
    /// As the blobs in the file: layer.0, layer.1
    Caffe,
}

#[derive(Clone, Copy, ValueEnum)]
enum DtypeArgument {
    F16,
    Bf16,
    F32,
    F64,
}

impl From<DtypeArgument> for Dtype {
    fn from(dtype: DtypeArgument) -> Self {
        match dtype {
            DtypeArgument::F16 => Self::F16,
            DtypeArgument::Bf16 => Self::Bf16,
            DtypeArgument::F32 => Self::F32,
            DtypeArgument::F64 => Self::F64,
        }
    }
}

pub struct Task<'a> {
    pub input: &'a Path,
    pub output: &'a Path,
    /// The format of the input. If None, the content determines the format.
    pub from: Option<FileFormat>,
    pub wishes: Wishes<'a>,
    pub force: bool,
    pub dry_run: bool,
    /// If true, signals stop the conversion, and a terminal shows a progress bar.
    pub interactive: bool,
    pub note: Note<'a>,
}

/// Receives a warning, such as a sentence about lost data. Warnings may contain names from the
/// input.
pub type Note<'a> = &'a dyn Fn(&dyn Display);

/// Returns the exit status. An `Err` means that standard output could not be written.
pub fn run(arguments: &Arguments) -> io::Result<Status> {
    let (inputs, output) = match (&arguments.output, arguments.files.as_slice()) {
        (Some(output), inputs) => (inputs, output),
        (None, [inputs @ .., output]) => (inputs, output),
        (None, []) => unreachable!("the parser requires a file"),
    };
    match inputs {
        [_] | [_, _] if onnx::is_onnx(output) => match arguments.are_for_weights() {
            true => Ok(wrong(
                "OUT is an .onnx file: --from, --to, --dtype, --names and --only apply only to \
                 files of weights",
            )),
            false => run_net(arguments, inputs, output),
        },
        [input] if !arguments.net.are_given() => run_weights(arguments, input, output),
        [input] if onnx::is_prototxt(input) => Ok(wrong(NO_MODEL)),
        [_] => Ok(wrong(
            "OUT is not an .onnx file: options such as --batch and --mean apply only to .onnx files",
        )),
        [] => Ok(wrong("give a file to read and a file to write, or --output")),
        [first, _] if onnx::is_prototxt(first) => Ok(wrong(
            "a prototxt and a model make an .onnx: give its name, such as -o net.onnx; for the \
             weights alone leave the prototxt out",
        )),
        _ => Ok(wrong("more than one file to read, but OUT is not an .onnx")),
    }
}

const NO_MODEL: &str =
    "a prototxt has no weights: give the model, too, and the name of the .onnx, \
    such as `syncblob convert deploy.prototxt net.caffemodel -o net.onnx`";

fn wrong(text: &str) -> Status {
    crate::wrong_usage_of("convert", ErrorKind::ArgumentConflict, text)
}

impl Arguments {
    fn are_for_weights(&self) -> bool {
        let formats = self.from.is_some() || self.to.is_some();
        formats || self.dtype.is_some() || self.names.is_some() || !self.only.is_empty()
    }
}

fn run_net(arguments: &Arguments, inputs: &[PathBuf], output: &Path) -> io::Result<Status> {
    let task = NetTask {
        inputs,
        output,
        arguments: &arguments.net,
        force: arguments.force,
        dry_run: arguments.dry_run,
        note: &crate::note,
    };
    match convert_net(&task, &Interrupt::default()) {
        // The text has one line for each layer that cannot be converted.
        Err(Failure::File(text)) => {
            text.lines().for_each(|line| complain(&printable(line)));
            Ok(Status::FAILURE)
        }
        Ok(Some(onnx)) => list_net(&onnx, output).map(|()| Status::SUCCESS),
        result => Ok(ended(result.map(|_| ()))),
    }
}

fn ended(result: Result<()>) -> Status {
    match result {
        Ok(()) => Status::SUCCESS,
        Err(Failure::Interrupted) => Status::FAILURE,
        Err(failure) => {
            crate::complain_lines(&failure.to_string());
            Status::FAILURE
        }
    }
}

/// Advice about the formats that `convert` writes.
const FORMATS: &str = "it writes .onnx, .safetensors, .npz, .npy, .caffemodel, .solverstate and \
    .binaryproto, or the format of --to.\nPyTorch, Keras and others load .safetensors or .npz: see \
    c/guide/weights.md";

fn run_weights(arguments: &Arguments, input: &Path, output: &Path) -> io::Result<Status> {
    let Some(format) = output_format(arguments.to.map(FileFormat::from), output) else {
        let name = output.to_string_lossy();
        let text = format!(
            "no format that `convert` writes has the extension of '{}': {FORMATS}",
            printable(&name)
        );
        return Ok(crate::wrong_usage_of("convert", ErrorKind::ValueValidation, text));
    };
    let task = Task {
        input,
        output,
        from: arguments.from.map(FileFormat::from),
        wishes: Wishes {
            format,
            scheme: arguments.names,
            dtype: arguments.dtype.map(Dtype::from),
            only: &arguments.only,
        },
        force: arguments.force,
        dry_run: arguments.dry_run,
        interactive: true,
        note: &crate::note,
    };
    let interrupt = Interrupt::default();
    match convert(&task, &interrupt) {
        Ok(Some(plan)) => list(format, &plan, output).map(|()| Status::SUCCESS),
        Err(Failure::File(_)) if onnx::is_prototxt(input) => Ok(wrong(NO_MODEL)),
        result => Ok(ended(result.map(|_| ()))),
    }
}

pub fn output_format(to: Option<FileFormat>, output: &Path) -> Option<FileFormat> {
    to.or_else(|| FileFormat::of_path(output))
}

/// Converts the weights. For a dry run, only returns the plan.
pub fn convert(task: &Task, interrupt: &Interrupt) -> Result<Option<Plan>> {
    let Task { input, output, note, .. } = *task;
    let format = task.wishes.format;
    let reading = |failure| about_input(input, failure);
    let writing = |failure| about_output(output, failure);
    let source = Source::open(input, task.from).map_err(reading)?;
    let plan = Plan::new(&source, &task.wishes).map_err(reading)?;
    let net = match format {
        FileFormat::Caffe(kind) => Some(Net::new(kind, &plan, interrupt).map_err(writing)?),
        _ => None,
    };
    report_losses(&source, note);
    if task.dry_run {
        return Ok(Some(plan));
    }
    let target = Target::new(output, task.force).map_err(writing)?;
    let progress = match task.interactive {
        true => {
            interrupt.listen()?;
            Progress::new(plan.bytes())
        }
        false => Progress::hidden(),
    };
    let reader = Reader::new(&source, input, interrupt, progress);
    match &net {
        Some(net) => target.save(interrupt, note, |path| net.save(&plan, &reader, path)),
        None => target.write(interrupt, note, |temporary| match format {
            FileFormat::Npz => numpy::write_archive(&plan, &reader, temporary.as_file()),
            FileFormat::Npy => numpy::write_array(&plan, &reader, temporary.as_file()),
            _ => safetensors::write(&plan, &reader, temporary.as_file()),
        }),
    }
    .map_err(writing)?;
    reader.finish(note);
    Ok(None)
}

fn about_input(path: &Path, failure: Failure) -> Failure {
    let advice = advice::about(path, &failure);
    match about_output(path, failure) {
        Failure::File(text) => Failure::File(text + advice),
        other => other,
    }
}

/// Adds the path, unless the failure's text already contains the path.
fn about_output(path: &Path, failure: Failure) -> Failure {
    match failure {
        Failure::File(_) | Failure::Interrupted => failure,
        other => Failure::File(format!("{}: {other}", path.display())),
    }
}

/// Reports which data of the input is not in the output.
fn report_losses(source: &Source, note: Note) {
    let tensors = 0..source.tensors.len();
    let diffs = tensors.filter(|index| source.details(*index).has_diff).count();
    if diffs > 0 {
        note(&format_args!("the diffs of {diffs} blobs are left out"));
    }
    let layers = &source.notes.layers;
    let names = layers.iter().zip(unique_names(layers));
    let renamed = names.filter(|(layer, name)| layer.name != *name).count();
    if renamed > 0 && matches!(source.format, FileFormat::Caffe(_)) {
        note(&format_args!(
            "{renamed} layers have no name or a repeated name: \
             the names of their tensors contain #number"
        ));
    }
}

/// Prints the result of a dry run.
fn list_net(onnx: &Onnx, output: &Path) -> io::Result<()> {
    let mut out = BufWriter::new(StandardOutput::lock());
    for (what, ends) in [("input", onnx.inputs()), ("output", onnx.outputs())] {
        for (name, dims) in ends {
            let dims: Vec<_> = dims.iter().map(Dim::to_string).collect();
            writeln!(out, "{}  {what}  {}", printable(name), printable(&dims.join("x")))?;
        }
    }
    let (name, bytes) = (output.to_string_lossy(), onnx.size_of_values());
    let (name, bytes) = (printable(&name), grouped(usize::try_from(bytes).unwrap_or(usize::MAX)));
    writeln!(out, "{name}: onnx, {} nodes, {bytes} bytes of values", onnx.nodes())?;
    out.flush()
}

/// Prints the result of a dry run.
fn list(format: FileFormat, plan: &Plan, output: &Path) -> io::Result<()> {
    let mut out = BufWriter::new(StandardOutput::lock());
    for item in &plan.items {
        let shape: Vec<_> = item.shape.iter().map(usize::to_string).collect();
        let (name, shape, bytes) = (printable(&item.name), shape.join("x"), item.bytes());
        writeln!(out, "{name}  {}  {shape}  {} bytes", item.dtype, grouped(bytes))?;
    }
    let (tensors, bytes) = (plan.items.len(), plan.bytes());
    let name = output.to_string_lossy();
    let (name, bytes) = (printable(&name), grouped(usize::try_from(bytes).unwrap_or(usize::MAX)));
    writeln!(out, "{name}: {format}, {tensors} tensors, {bytes} bytes of values")?;
    out.flush()
}
