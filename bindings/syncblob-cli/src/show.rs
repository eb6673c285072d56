//! `show`: draws a mean image or filters, or prints histograms.

mod text;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::advice;
use crate::interrupt::Interrupt;
use crate::output::Target;
use crate::picture::{Channels, Tiles};
use crate::source::{Failure, Result, Source, Tensor};
use crate::standard_output::StandardOutput;
use crate::summary::Summary;
use crate::values::Passes;
use crate::Status;

/// Show a mean image or filters as a picture, or the distribution of values
///
/// With --output the command draws a PNG picture: the mean image, or the filters of
/// the first convolution, side by side. The smallest value of all is drawn black and the largest
/// white, unless there is one image with values from 0 to 255. If a filter has neither 1 nor 3
/// channels, each channel is drawn separately. At most 1024 filters or channels are
/// drawn. A value that is NaN or infinite is magenta.
///
/// Without --output the command prints for each blob a histogram, the mean, the standard deviation
/// and the largest values.
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 if FILE was shown; 1 if it cannot be read or shown, or \
    the picture cannot be written;\n2 for wrong usage.",
    after_long_help = AFTER_HELP)]
pub struct Arguments {
    /// The file to read, of any format
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Write a picture to this file
    #[arg(short, long, value_name = "PNG")]
    output: Option<PathBuf>,

    /// Show only the layer or tensor that has this name
    #[arg(long, value_name = "NAME")]
    layer: Option<String>,

    /// Replace an existing file
    #[arg(short, long, requires = "output")]
    force: bool,

    /// Draw each value as a square with sides of PIXELS, instead of choosing a size
    #[arg(long, value_name = "PIXELS", requires = "output", value_parser = 1..=256)]
    scale: Option<i64>,

    /// Read three channels as red, green, blue; Caffe's order is blue, green, red
    #[arg(long, requires = "output")]
    rgb: bool,
}

const AFTER_HELP: &str = "\
Examples:
  syncblob show mean.binaryproto -o mean.png
  syncblob show resnet.caffemodel -o filters.png
  syncblob show resnet.caffemodel --layer conv1

Exit status:
  0  the file was shown
  1  the file cannot be read, nothing in it can be drawn, or the picture cannot
     be written. An existing picture is then unchanged
  2  wrong usage";

/// The maximum number of tiles in a picture.
const MAX_TILES: usize = 1024;

pub fn run(arguments: &Arguments) -> io::Result<Status> {
    let shown = match &arguments.output {
        Some(output) => picture(arguments, output),
        None => text(arguments),
    };
    match shown {
        Ok(()) => Ok(Status::SUCCESS),
        Err(Stop::Output(error)) => Err(error),
        Err(Stop::File(file, failure)) => {
            crate::complain_of(file, &failure);
            Ok(Status::FAILURE)
        }
    }
}

enum Stop<'a> {
    /// Standard output could not be written.
    Output(io::Error),
    File(&'a Path, Failure),
}

fn of<'a>(file: &'a Path) -> impl FnOnce(Failure) -> Stop<'a> {
    move |failure| Stop::File(file, failure)
}

fn chosen<'a>(
    arguments: &Arguments,
    source: &'a Source,
) -> Result<Vec<(usize, &'a Tensor)>, Failure> {
    let is_chosen = |tensor: &Tensor| match &arguments.layer {
        None => true,
        Some(name) => {
            *name == tensor.name || source.layer_of(tensor).is_some_and(|l| l.name == *name)
        }
    };
    let all = source.tensors.iter().enumerate();
    let chosen: Vec<_> = all.filter(|(_, tensor)| is_chosen(tensor)).collect();
    match (chosen.is_empty(), &arguments.layer) {
        (true, Some(name)) => {
            let layers = source.notes.layers.iter().map(|layer| &*layer.name);
            let tensors = source.tensors.iter().map(|tensor| &*tensor.name);
            let near = advice::similar(name, layers.chain(tensors));
            Err(Failure::Unsupported(format!(
                "no layer with blobs is called \"{name}\"; `syncblob info` lists them{near}"
            )))
        }
        (true, None) => Err(Failure::Unsupported("it has no blob".into())),
        (false, _) => Ok(chosen),
    }
}

fn picture<'a>(arguments: &'a Arguments, output: &'a Path) -> Result<(), Stop<'a>> {
    if !output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("png")) {
        let text = "the picture is a PNG: give a name that ends in .png";
        return Err(Stop::File(output, Failure::Unsupported(text.into())));
    }
    let target = Target::new(output, arguments.force).map_err(of(output))?;
    let png = png(arguments).map_err(of(&arguments.file))?;
    let interrupt = Interrupt::default();
    interrupt.listen().map_err(|error| of(output)(error.into()))?;
    let written = target.write(&interrupt, &crate::note, |file| Ok(file.write_all(&png)?));
    written.map_err(of(output))
}

fn png(arguments: &Arguments) -> Result<Vec<u8>> {
    let source = Source::open(&arguments.file, None)?;
    let chosen = chosen(arguments, &source)?;
    let drawable = chosen.iter().find_map(|&(index, tensor)| {
        Tiles::of(&tensor.shape).map(|tiles| (index, tiles.at_most(MAX_TILES)))
    });
    let Some((index, tiles)) = drawable else {
        return Err(Failure::Unsupported(
            "no blob can be drawn: a picture needs 3 or 4 axes, and the last two must not both be \
             1; without --output, the command prints histograms"
                .into(),
        ));
    };
    let channels = if arguments.rgb { Channels::Rgb } else { Channels::Bgr };
    let scale = arguments.scale.and_then(|scale| usize::try_from(scale).ok());
    let mut values = Passes::of_first(&source, index, tiles.values());
    tiles.draw(&mut values, channels, scale)?.to_png()
}

fn text(arguments: &Arguments) -> Result<(), Stop<'_>> {
    let file = &arguments.file;
    let source = Source::open(file, None).map_err(of(file))?;
    let chosen = chosen(arguments, &source).map_err(of(file))?;
    let mut out = BufWriter::new(StandardOutput::lock());
    for (index, tensor) in chosen {
        let layer_type = source.layer_of(tensor).map(|layer| &*layer.layer_type);
        text::heading(&mut out, tensor, layer_type).map_err(Stop::Output)?;
        // If blobs do not support the tensor's element type, prints a note instead.
        let summary = match Summary::of(&mut Passes::new(&source, index)) {
            Err(Failure::Unsupported(why)) => {
                text::note(&mut out, &why).map_err(Stop::Output)?;
                continue;
            }
            summary => summary.map_err(of(file))?,
        };
        let is_alone = arguments.layer.is_some();
        text::distribution(&mut out, tensor, &summary, is_alone).map_err(Stop::Output)?;
    }
    out.flush().map_err(Stop::Output)
}
