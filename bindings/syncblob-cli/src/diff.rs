//! `diff`: reports which blobs of two files differ, and by how much.

mod numbers;
mod pairs;
mod print;

use std::io::{self, BufWriter};
use std::path::PathBuf;

use clap::ValueEnum;
use syncblob::BlobAny;

use crate::diff::numbers::{Counting, Numbers, Tolerance};
use crate::diff::pairs::{pairs, Names, Pair, Which};
use crate::diff::print::{Json, Print, Table};
use crate::progress::Progress;
use crate::source::{Details, Failure, Layer, Parts, Source, Tensor, PART};
use crate::standard_output::StandardOutput;
use crate::values::{Part, Values};
use crate::Status;

/// Compare the blobs of two files, which may have different formats
///
/// The command compares blobs with the same layer name and the same number in the layer.
/// If two layers are called conv, the second is conv#2. Tensors from other programs are
/// paired by their own names. Layers without blobs, the parameters of layers and the
/// net's name are not compared.
///
/// Two values a and b are the same if both are NaN, if they are equal, or if
/// |a - b| is at most TOLERANCE + RTOL * max(|a|, |b|). The relative difference
/// shown is |a - b| / max(|a|, |b|). Shapes are compared as in Caffe: four legacy
/// dimensions equal a shape with fewer axes if only leading axes of 1 are missing.
///
/// The command holds one pair of blobs at a time in memory.
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 if nothing differs; 1 if something does; 2 for wrong usage, \
    a file that cannot be read,\nor output that cannot be printed.",
    after_long_help = AFTER_HELP)]
pub struct Arguments {
    /// The first file
    #[arg(value_name = "A")]
    a: PathBuf,

    /// The second file
    #[arg(value_name = "B")]
    b: PathBuf,

    /// Allow this absolute difference
    #[arg(long, alias = "atol", default_value_t = 0.0, value_parser = allowed)]
    tolerance: f64,

    /// Allow this relative difference
    #[arg(long, default_value_t = 0.0, value_parser = allowed)]
    rtol: f64,

    /// Do not compare WHAT
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    ignore: Vec<Ignored>,

    /// Print one line of JSON for each difference, then a line with a summary
    ///
    /// The schema is schema/diff-v1.schema.json in the program's sources.
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  syncblob diff before.caffemodel after.caffemodel
  syncblob diff --tolerance 1e-6 --rtol 1e-5 net.caffemodel again.caffemodel
  syncblob diff --ignore dtype --rtol 1e-3 net.caffemodel half.safetensors
  syncblob diff --json a.caffemodel b.caffemodel | jq -r 'select(.kind == \"values\") | .tensor'

Exit status:
  0  nothing differs
  1  something differs
  2  wrong usage, a file that cannot be read, or output that cannot be printed.
     The reason is on standard error";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ignored {
    /// The element types in which blobs are stored
    Dtype,
    /// The types of layers
    Type,
    /// The diffs of blobs
    Diff,
}

fn allowed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number >= 0.0 => Ok(number),
        Ok(_) => Err("the number must be 0 or more".into()),
        Err(error) => Err(error.to_string()),
    }
}

pub struct Difference<'a> {
    /// The name by which the tensors were paired.
    pub tensor: &'a str,
    pub what: What<'a>,
}

pub enum What<'a> {
    /// Only one of the files has the tensor.
    Only(Which),
    /// Only one of the files has the tensor's diff.
    OnlyDiff(Which),
    /// Two different layer types, shapes or element types, as text.
    Texts {
        kind: &'static str,
        a: String,
        b: String,
    },
    Values {
        part: Part,
        shape: &'a [usize],
        numbers: Numbers,
    },
}

#[derive(Default)]
pub struct Summary {
    pub tensors: usize,
    pub values: usize,
    pub differences: usize,
    pub max_abs: f64,
    pub max_rel: f64,
}

enum Stop {
    Output(io::Error),
    File(Which, Failure),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Returns a function that makes a `Stop` for a failure of the file `which`.
fn of(which: Which) -> impl FnOnce(Failure) -> Stop {
    move |failure| Stop::File(which, failure)
}

pub fn run(arguments: &Arguments) -> io::Result<Status> {
    let out = BufWriter::new(StandardOutput::lock());
    let differences = match arguments.json {
        true => compare_files(arguments, &mut Json::new(out)),
        false => compare_files(arguments, &mut Table::new(out)),
    };
    match differences {
        Ok(0) => Ok(Status::SUCCESS),
        Ok(_) => Ok(Status::FAILURE),
        Err(Stop::Output(error)) => Err(error),
        Err(Stop::File(which, failure)) => {
            let file = if which == Which::A { &arguments.a } else { &arguments.b };
            crate::complain_of(file, &failure);
            Ok(Status::from(2))
        }
    }
}

/// Returns the number of differences.
fn compare_files(arguments: &Arguments, print: &mut impl Print) -> Result<usize, Stop> {
    let a = Source::open(&arguments.a, None).map_err(of(Which::A))?;
    let b = Source::open(&arguments.b, None).map_err(of(Which::B))?;
    let names = [&a, &b].map(Names::new);
    let both = a.tensors.iter().map(|tensor| names[0].of(tensor));
    print.begin(&mut both.chain(b.tensors.iter().map(|tensor| names[1].of(tensor))))?;
    let progress = Progress::new(a.tensors.iter().map(bytes).sum());
    let mut comparison = Comparison { arguments, print, summary: Summary::default() };
    for pair in pairs(&names[0], &names[1]) {
        let (which, index) = match pair {
            Pair::Both(index_a, index_b) => {
                let name = names[0].of(&a.tensors[index_a]);
                comparison.pair(&name, Side::new(&a, index_a), Side::new(&b, index_b))?;
                progress.advance(bytes(&a.tensors[index_a]));
                continue;
            }
            Pair::One(which, index) => (which, index),
        };
        let [in_a, in_b] = &names;
        let name = match which {
            Which::A => in_a.of(&a.tensors[index]),
            Which::B => in_b.of(&b.tensors[index]),
        };
        comparison.differ(&name, What::Only(which))?;
    }
    drop(progress);
    let Comparison { print, summary, .. } = comparison;
    print.summary([&arguments.a, &arguments.b], &summary)?;
    Ok(summary.differences)
}

/// Returns how many bytes a tensor adds to the progress bar's total.
fn bytes(tensor: &Tensor) -> u64 {
    tensor.count() as u64 * 4
}

#[derive(Clone, Copy)]
struct Side<'a> {
    source: &'a Source,
    index: usize,
    tensor: &'a Tensor,
    details: Details,
}

impl<'a> Side<'a> {
    fn new(source: &'a Source, index: usize) -> Self {
        Self { source, index, tensor: &source.tensors[index], details: source.details(index) }
    }

    fn layer(&self) -> Option<&'a Layer> {
        self.source.layer_of(self.tensor)
    }
}

struct Comparison<'a, P> {
    arguments: &'a Arguments,
    print: &'a mut P,
    summary: Summary,
}

impl<P: Print> Comparison<'_, P> {
    fn ignores(&self, what: Ignored) -> bool {
        self.arguments.ignore.contains(&what)
    }

    fn differ(&mut self, tensor: &str, what: What) -> io::Result<()> {
        self.summary.differences += 1;
        self.print.difference(&Difference { tensor, what })
    }

    fn pair(&mut self, name: &str, a: Side, b: Side) -> Result<(), Stop> {
        self.summary.tensors += 1;
        self.descriptions(name, a, b)?;
        let parts = match [a, b].map(|side| !self.ignores(Ignored::Diff) && side.details.has_diff) {
            [true, true] => &[Part::Data, Part::Diff][..],
            [false, false] => &[Part::Data],
            [in_a, _] => {
                self.differ(name, What::OnlyDiff(if in_a { Which::A } else { Which::B }))?;
                &[Part::Data]
            }
        };
        if a.tensor.count() == b.tensor.count() && a.tensor.count() > 0 {
            self.values(name, parts, a, b)?;
        }
        Ok(())
    }

    /// Compares the types, shapes and element types of two tensors, without loading values.
    fn descriptions(&mut self, name: &str, a: Side, b: Side) -> io::Result<()> {
        if let (Some(a), Some(b), false) = (a.layer(), b.layer(), self.ignores(Ignored::Type)) {
            self.texts(name, "type", [&a.layer_type, &b.layer_type].map(String::clone))?;
        }
        if !same_shape(a, b) {
            self.texts(name, "shape", [a, b].map(|side| crate::table::shape(&side.tensor.shape)))?;
        }
        if !self.ignores(Ignored::Dtype) {
            self.texts(name, "dtype", [a, b].map(|side| side.tensor.dtype.to_string()))?;
        }
        Ok(())
    }

    fn texts(&mut self, name: &str, kind: &'static str, [a, b]: [String; 2]) -> io::Result<()> {
        match a == b {
            true => Ok(()),
            false => self.differ(name, What::Texts { kind, a, b }),
        }
    }

    fn values(&mut self, name: &str, parts: &[Part], a: Side, b: Side) -> Result<(), Stop> {
        let Arguments { tolerance: absolute, rtol: relative, .. } = *self.arguments;
        let tolerance = Tolerance { absolute, relative };
        let mut countings: Vec<_> = parts.iter().map(|_| Counting::new(tolerance)).collect();
        let in_both = a.source.read(a.index, |values_of_a| {
            b.source.read(b.index, |values_of_b| {
                compare(parts, &mut countings, values_of_a, values_of_b)
            })
        });
        in_both.map_err(of(Which::A))?.map_err(of(Which::B))??;
        for (&part, Counting { numbers, .. }) in parts.iter().zip(countings) {
            self.summary.values += numbers.count;
            self.summary.max_abs = self.summary.max_abs.max(numbers.max_abs);
            self.summary.max_rel = self.summary.max_rel.max(numbers.max_rel);
            if numbers.differing > 0 {
                let shape = &a.tensor.shape;
                self.differ(name, What::Values { part, shape, numbers })?;
            }
        }
        Ok(())
    }
}

/// The part of a tensor's values that is currently in memory.
struct Ahead<'a> {
    parts: &'a mut dyn Parts,
    blob: Option<BlobAny>,
    /// How many values of `blob` have been compared.
    at: usize,
}

impl<'a> Ahead<'a> {
    fn new(parts: &'a mut dyn Parts) -> Self {
        Self { parts, blob: None, at: 0 }
    }

    fn left(&self) -> usize {
        self.blob.as_ref().map_or(0, |blob| blob.count() - self.at)
    }

    /// Loads the next part once all values of the loaded part have been compared. Returns how many
    /// loaded values are still to be compared, or 0 at the end.
    fn fill(&mut self) -> Result<usize, Failure> {
        if self.left() == 0 {
            self.blob = None; // frees this part before the next part is loaded
            (self.blob, self.at) = (self.parts.next(PART)?, 0);
        }
        Ok(self.left())
    }

    fn values(&self, part: Part, count: usize) -> Result<Values<'_>, Failure> {
        let blob = self.blob.as_ref().expect("it was filled");
        Ok(Values::of(blob, part)?.slice(self.at..self.at + count))
    }
}

/// Compares two tensors that have equally many values, one part at a time. A blob with a diff has
/// only one part.
fn compare(
    parts: &[Part],
    countings: &mut [Counting],
    a: &mut dyn Parts,
    b: &mut dyn Parts,
) -> Result<(), Stop> {
    let (mut a, mut b) = (Ahead::new(a), Ahead::new(b));
    loop {
        let left_in_a = a.fill().map_err(of(Which::A))?;
        let left_in_b = b.fill().map_err(of(Which::B))?;
        let count = left_in_a.min(left_in_b);
        if count == 0 {
            return Ok(());
        }
        for (&part, counting) in parts.iter().zip(&mut *countings) {
            let values_of_a = a.values(part, count).map_err(of(Which::A))?;
            counting.add(values_of_a, b.values(part, count).map_err(of(Which::B))?);
        }
        (a.at, b.at) = (a.at + count, b.at + count);
    }
}

/// Returns whether the shapes are equal. If at least one shape has the four legacy dimensions,
/// ignores leading dimensions of 1.
fn same_shape(a: Side, b: Side) -> bool {
    fn without_ones(mut shape: &[usize]) -> &[usize] {
        while let [1, rest @ ..] = shape {
            shape = rest;
        }
        shape
    }
    let [shape, other] = [&a.tensor.shape[..], &b.tensor.shape[..]];
    let is_legacy = a.details.is_legacy || b.details.is_legacy;
    shape == other
        || is_legacy
            && shape.len().max(other.len()) <= 4
            && without_ones(shape) == without_ones(other)
}
