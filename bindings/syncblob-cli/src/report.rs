//! `report`: writes a model as one HTML page for a browser.

mod graph;
mod page;
mod svg;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use syncblob::Model;

use crate::interrupt::Interrupt;
use crate::net::Listing;
use crate::output::Target;
use crate::picture::{Channels, Tiles};
use crate::progress::Progress;
use crate::report::page::{Figure, Row};
use crate::source::{Failure, Kind, Result, Source, Tensor};
use crate::summary::Summary;
use crate::values::Passes;
use crate::Status;

/// Write a report of a file as one HTML page
///
/// The page draws the net in a model, lists layers and shapes, and shows the distribution of values
/// as a histogram. The page has pictures of mean images, and of filters with 1 or 3 channels.
/// You can search the list and sort it by a column. The page is one file and loads no other
/// file. Names from the input are shown as text, even if they contain HTML.
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 if the report was written; 1 if the file cannot be read or \
    the report cannot be written;\n2 for wrong usage.",
    after_long_help = AFTER_HELP)]
pub struct Arguments {
    /// The file to read, of any format
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Write the page to this file
    #[arg(short, long, value_name = "HTML")]
    output: PathBuf,

    /// Replace an existing file
    #[arg(short, long)]
    force: bool,

    /// Read three channels as red, green, blue; Caffe's order is blue, green, red
    #[arg(long)]
    rgb: bool,
}

const AFTER_HELP: &str = "\
Examples:
  syncblob report resnet.caffemodel -o report.html
  syncblob report --force mean.binaryproto -o mean.html && xdg-open mean.html

Exit status:
  0  the report was written
  1  the file cannot be read, or the report cannot be written. An existing
     report is then unchanged
  2  wrong usage";

/// The maximum number of pictures, and of filters in a picture, so that the page opens quickly.
const MAX_FIGURES: usize = 8;
const MAX_TILES: usize = 256;

pub fn run(arguments: &Arguments) -> io::Result<Status> {
    let interrupt = Interrupt::default();
    match report(arguments, &interrupt) {
        Ok(()) => Ok(Status::SUCCESS),
        Err((_, Failure::Interrupted)) => Ok(Status::FAILURE),
        Err((file, failure)) => {
            crate::complain_of(file, &failure);
            Ok(Status::FAILURE)
        }
    }
}

/// A failure, and the file that caused the failure.
type Stop<'a> = (&'a Path, Failure);

fn report<'a>(arguments: &'a Arguments, interrupt: &Interrupt) -> Result<(), Stop<'a>> {
    let Arguments { file, output, .. } = arguments;
    let target = Target::new(output, arguments.force).map_err(|failure| (&**output, failure))?;
    let source = Source::open(file, None).map_err(|failure| (&**file, failure))?;
    let channels = if arguments.rgb { Channels::Rgb } else { Channels::Bgr };
    let figures = figures(&source, channels).map_err(|failure| (&**file, failure))?;
    let net = net_of(&source, file);
    let mut failed = output;
    interrupt.listen().map_err(|error| (&**output, error.into()))?;
    let written = target.write(interrupt, &crate::note, |out| {
        let mut out = BufWriter::new(out);
        let name = file.as_os_str().to_string_lossy();
        out.write_all(page::start(&name, &source, net.as_ref(), &figures).as_bytes())?;
        let progress = Progress::new(source.tensors.iter().map(bytes).sum());
        for entry in entries(&source) {
            interrupt.check()?;
            let row = row(&source, entry).inspect_err(|_| failed = file)?;
            out.write_all(page::row(&row).as_bytes())?;
            progress.advance(row.tensor.map_or(0, bytes));
        }
        out.write_all(page::END.as_bytes())?;
        Ok(out.flush()?)
    });
    written.map_err(|failure| (&**failed, failure))
}

fn net_of(source: &Source, file: &Path) -> Option<Listing> {
    match source.notes.kind {
        Some(Kind::Caffemodel) => Listing::of_model(&Arc::new(Model::open(file).ok()?)),
        _ => None,
    }
}

/// Returns how many bytes a tensor adds to the progress bar's total.
fn bytes(tensor: &Tensor) -> u64 {
    tensor.count() as u64 * 4
}

/// A row of the table: a tensor, or a layer that has no tensors.
#[derive(Clone, Copy)]
enum Entry {
    Layer(usize),
    Tensor(usize),
}

/// Returns the layers in order with their tensors, followed by the tensors without a layer.
fn entries(source: &Source) -> Vec<Entry> {
    let mut of_layers = vec![Vec::new(); source.notes.layers.len()];
    let mut others = Vec::new();
    for (index, tensor) in source.tensors.iter().enumerate() {
        let layer = tensor.place.and_then(|place| of_layers.get_mut(place.layer?));
        layer.unwrap_or(&mut others).push(Entry::Tensor(index));
    }
    let in_layers =
        of_layers.into_iter().enumerate().flat_map(|(index, tensors)| match tensors.is_empty() {
            true => vec![Entry::Layer(index)],
            false => tensors,
        });
    in_layers.chain(others).collect()
}

fn row(source: &Source, entry: Entry) -> Result<Row<'_>> {
    let index = match entry {
        Entry::Layer(index) => {
            let layer = source.notes.layers.get(index);
            return Ok(Row { layer, tensor: None, summary: None, note: None });
        }
        Entry::Tensor(index) => index,
    };
    let tensor = &source.tensors[index];
    let layer = source.layer_of(tensor);
    // If blobs do not support the tensor's element type, the row contains a note instead of a
    // summary.
    let (summary, note) = match Summary::of(&mut Passes::new(source, index)) {
        Err(Failure::Unsupported(text)) => (None, Some(text)),
        summary => (Some(summary?), None),
    };
    Ok(Row { layer, tensor: Some(tensor), summary, note })
}

/// Returns whether to draw a tensor. Does not draw filters with many channels, or matrices and
/// vectors, which old files store as 1 x 1 x height x width.
fn is_worth_a_picture(source: &Source, tensor: &Tensor, tiles: Tiles) -> bool {
    let is_weights = matches!(source.notes.kind, Some(Kind::Caffemodel | Kind::Solverstate));
    match tensor.shape[..] {
        [.., 3, _, _] => true,
        [count, 1, _, _] if count > 1 => true,
        _ => tiles.count == 1 && !is_weights,
    }
}

fn figures(source: &Source, channels: Channels) -> Result<Vec<Figure<'_>>> {
    let drawable = |(index, tensor): (usize, &Tensor)| {
        let tiles = Tiles::of(&tensor.shape)?;
        is_worth_a_picture(source, tensor, tiles).then_some((index, tiles))
    };
    let all = source.tensors.iter().enumerate().filter_map(drawable);
    let mut figures = Vec::new();
    for (index, tiles) in all.take(MAX_FIGURES) {
        let tensor = &source.tensors[index];
        let shown = tiles.at_most(MAX_TILES);
        // Omits a picture that would be too large, or whose element type blobs do not support.
        let mut values = Passes::of_first(source, index, shown.values());
        let picture = match shown.draw(&mut values, channels, None) {
            Err(Failure::Unsupported(_)) => continue,
            picture => picture?,
        };
        let (width, height, png) = (picture.width, picture.height, picture.to_png()?);
        figures.push(Figure { tensor, tiles, shown: shown.count, width, height, png });
    }
    Ok(figures)
}
