//! Checks one file.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use syncblob::{BlobAny, Layer, Model, OpenOptions};

use crate::info::{has_diff, places};
use crate::progress::Progress;
use crate::source::{explained, Failure, FileFormat, Result, Source};
use crate::text::{is_plain, is_unprintable};
use crate::values::{indices, Part, Pass, Passes, Values};

/// A problem, with its place: the file, a layer, or a blob.
#[derive(Default)]
pub struct Finding<'a> {
    pub kind: Kind,
    /// The layer's name. None for a finding about the file, or about a blob without a layer.
    pub layer: Option<&'a str>,
    pub blob: Option<usize>,
    /// The tensor's name, if the format is not Caffe's.
    pub tensor: Option<&'a str>,
    pub part: Option<Part>,
    /// For a finding about values: how many values have the problem, and the indices of the first.
    pub values: Option<(usize, Vec<usize>)>,
    /// The file offset of the problem or, if unknown, of the blob's protobuf message.
    pub offset: Option<u64>,
    pub failure: Option<Failure>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// The file or a blob cannot be read. `failure` contains the reason.
    #[default]
    Unreadable,
    Nan,
    Infinite,
    BeyondFloat,
    DuplicateName,
    UnsafeName,
    NoValues,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Nan => "nan",
            Self::Infinite => "infinite",
            Self::BeyondFloat => "beyond-float",
            Self::DuplicateName => "duplicate-name",
            Self::UnsafeName => "unsafe-name",
            Self::NoValues => "no-values",
        }
    }
}

#[derive(Default)]
pub struct Checked {
    pub format: &'static str,
    pub layers: usize,
    pub blobs: usize,
    pub values: usize,
}

type Report<'a> = &'a mut dyn FnMut(&Finding) -> io::Result<()>;

/// Reports each finding in a file. Detects the file's format unless `is_caffes` is true. Returns an
/// `Err` only if `report` does.
pub fn file(
    options: &OpenOptions,
    file: &Path,
    is_caffes: bool,
    report: Report,
) -> io::Result<Checked> {
    if file.is_dir() {
        let text = "it is a folder: `syncblob verify -r` checks the files in it that end in \
            .caffemodel, .solverstate, .binaryproto, .safetensors, .npz or .npy";
        let failure = Failure::Unsupported(text.into());
        report(&unreadable(Finding::default(), failure))?;
        return Ok(Checked::default());
    }
    match if is_caffes { None } else { format_of(file) } {
        // The library reads files of unknown formats, too, because its errors are detailed.
        None | Some(FileFormat::Caffe(_)) => caffes(options, file, is_caffes, report),
        Some(format) => other(format, file, report),
    }
}

/// Returns None for a pipe, because opening a pipe would block.
fn format_of(file: &Path) -> Option<FileFormat> {
    if !fs::metadata(file).ok()?.is_file() {
        return None;
    }
    FileFormat::of_file(&File::open(file).ok()?).ok()
}

/// Checks one of Caffe's own files. A file may have a million blobs of a few bytes each, so nothing
/// is stored for a blob.
fn caffes(
    options: &OpenOptions,
    file: &Path,
    is_caffes: bool,
    report: Report,
) -> io::Result<Checked> {
    let model = match options.open(file).map_err(Failure::from) {
        Ok(model) => model,
        Err(failure) => {
            let failure = if is_caffes { failure } else { explained(file, failure) };
            report(&unreadable(Finding::default(), failure))?;
            return Ok(Checked::default());
        }
    };
    names(&model, report)?;
    let mut checked =
        Checked { format: model.format().name(), layers: model.num_layers(), ..Checked::default() };
    let sizes = places(&model).filter_map(|at| model.blob(at).ok()).map(|blob| blob.info().size());
    let progress = Progress::new(sizes.map(|size| size as u64).sum());
    for at in places(&model) {
        let layer = at.layer.and_then(|layer| model.layer(layer).ok()).map(|layer| layer.name());
        let place =
            || Finding { layer: layer.as_deref(), blob: Some(at.index), ..Finding::default() };
        checked.blobs += 1;
        match model.blob(at) {
            Err(error) => report(&unreadable(place(), error.into()))?,
            Ok(stored) => {
                let at_offset = || Finding { offset: stored.info().offset(), ..place() };
                let parts: &[Part] = match has_diff(&stored) {
                    true => &[Part::Data, Part::Diff],
                    false => &[Part::Data],
                };
                let loaded = stored.load_any().map_err(Failure::from);
                checked.values += values(loaded, parts, &at_offset, report)?;
                progress.advance(stored.info().size() as u64);
            }
        }
    }
    drop(progress);
    nothing_at_all(&checked, report)?;
    Ok(checked)
}

fn other(format: FileFormat, file: &Path, report: Report) -> io::Result<Checked> {
    let source = match Source::open(file, Some(format)) {
        Ok(source) => source,
        Err(failure) => {
            report(&unreadable(Finding::default(), failure))?;
            return Ok(Checked::default());
        }
    };
    let mut checked = Checked {
        format: match format {
            FileFormat::Safetensors => "safetensors",
            FileFormat::Npz => "npz",
            _ => "npy",
        },
        blobs: source.tensors.len(),
        ..Checked::default()
    };
    for (index, tensor) in source.tensors.iter().enumerate() {
        let place = || Finding { tensor: Some(&tensor.name), ..Finding::default() };
        if is_unsafe(&tensor.name, format) {
            report(&Finding { kind: Kind::UnsafeName, ..place() })?;
        }
        checked.values += streamed(&source, index, &place, report)?;
    }
    for name in source.others.iter().filter(|name| is_unsafe(name.trim_end_matches('/'), format)) {
        report(&Finding { kind: Kind::UnsafeName, tensor: Some(name), ..Finding::default() })?;
    }
    nothing_at_all(&checked, report)?;
    Ok(checked)
}

/// Returns whether a tensor's name is unsafe. In an archive, the name is the name of a file.
fn is_unsafe(name: &str, format: FileFormat) -> bool {
    match format {
        FileFormat::Npz => !is_plain(name),
        _ => name.contains(is_unprintable),
    }
}

fn nothing_at_all(checked: &Checked, report: Report) -> io::Result<()> {
    match checked.blobs {
        0 => report(&Finding { kind: Kind::NoValues, ..Finding::default() }),
        _ => Ok(()),
    }
}

fn unreadable(place: Finding, failure: Failure) -> Finding {
    let offset = match &failure {
        Failure::Library(error) => error.offset(),
        _ => None,
    };
    Finding { kind: Kind::Unreadable, offset, failure: Some(failure), ..place }
}

// --- names ------------------------------------------------------------------------

fn names(model: &Model, report: Report) -> io::Result<()> {
    let is_unsafe = |bytes: &[u8]| {
        std::str::from_utf8(bytes).map_or(true, |text| text.contains(is_unprintable))
    };
    if is_unsafe(model.name_bytes()) {
        report(&Finding { kind: Kind::UnsafeName, ..Finding::default() })?;
    }
    let mut times: HashMap<&[u8], usize> = HashMap::new();
    for layer in model.layers() {
        let mut of_layer = |kind, layer: Layer| {
            let name = layer.name();
            report(&Finding { kind, layer: Some(&name), ..Finding::default() })
        };
        let seen = times.entry(layer.name_bytes()).or_default();
        *seen += usize::from(layer.num_blobs() > 0);
        if is_unsafe(layer.name_bytes()) || is_unsafe(layer.layer_type_bytes()) {
            of_layer(Kind::UnsafeName, layer)?;
        } else if *seen == 2 && layer.num_blobs() > 0 {
            of_layer(Kind::DuplicateName, layer)?;
        }
    }
    Ok(())
}

// --- values -----------------------------------------------------------------------

/// Reports findings about the values of a blob. Returns how many values the blob has.
fn values<'a>(
    loaded: Result<BlobAny>,
    parts: &[Part],
    place: &dyn Fn() -> Finding<'a>,
    report: Report,
) -> io::Result<usize> {
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(failure) => {
            report(&unreadable(place(), failure))?;
            return Ok(0);
        }
    };
    if loaded.count() == 0 {
        return Ok(0);
    }
    for &part in parts {
        let values = match Values::of(&loaded, part) {
            Ok(values) => values,
            Err(failure) => {
                report(&unreadable(place(), failure))?;
                continue;
            }
        };
        counts(Counts::of(values), part, loaded.shape(), place, report)?;
    }
    Ok(loaded.count() * parts.len())
}

/// Reports findings in a tensor that is read in parts. Returns how many values the tensor has. If
/// reading fails, reports only this failure.
fn streamed<'a>(
    source: &Source,
    index: usize,
    place: &dyn Fn() -> Finding<'a>,
    report: Report,
) -> io::Result<usize> {
    let (mut counted, tensor) = (Counts::default(), &source.tensors[index]);
    if let Err(failure) = Passes::new(source, index).each(&mut |values| counted.add(values)) {
        report(&unreadable(place(), failure))?;
        return Ok(0);
    }
    counts(counted, Part::Data, &tensor.shape, place, report)?;
    Ok(tensor.count())
}

fn counts<'a>(
    counted: Counts,
    part: Part,
    shape: &[usize],
    place: &dyn Fn() -> Finding<'a>,
    report: Report,
) -> io::Result<()> {
    for (kind, counted) in counted.all() {
        if let Some((count, first)) = counted {
            let values = Some((count, indices(shape, first)));
            report(&Finding { kind, part: Some(part), values, ..place() })?;
        }
    }
    Ok(())
}

/// For values that are NaN, infinite or too large: how many there are, and the offset of the first.
#[derive(Default)]
struct Counts {
    nan: Option<(usize, usize)>,
    infinite: Option<(usize, usize)>,
    beyond_float: Option<(usize, usize)>,
    /// The offset of the next value to add.
    start: usize,
}

impl Counts {
    fn of(values: Values) -> Self {
        let mut counts = Self::default();
        counts.add(values);
        counts
    }

    fn add(&mut self, values: Values) {
        values.for_each_block(|block| {
            let all_fine = block.iter().all(|&value| (value as f32).is_finite());
            if !all_fine {
                self.count(block);
            }
            self.start += block.len();
        });
    }

    fn count(&mut self, block: &[f64]) {
        for (index, &value) in block.iter().enumerate() {
            let counted = match () {
                () if (value as f32).is_finite() => continue,
                () if value.is_nan() => &mut self.nan,
                () if value.is_infinite() => &mut self.infinite,
                () => &mut self.beyond_float,
            };
            counted.get_or_insert((0, self.start + index)).0 += 1;
        }
    }

    fn all(self) -> [(Kind, Option<(usize, usize)>); 3] {
        [
            (Kind::Nan, self.nan),
            (Kind::Infinite, self.infinite),
            (Kind::BeyondFloat, self.beyond_float),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_count_and_a_first_offset() {
        let largest = f64::from(f32::MAX);
        let values = [
            1.0,
            f64::NAN,
            largest,
            f64::NEG_INFINITY,
            -f64::NAN,
            // This double rounds to the largest float. The next double would round to infinity.
            largest * (1.0 + f64::from(f32::EPSILON) / 8.0),
            -1e39,
            5e-324,
        ];
        let counts = Counts::of(Values::F64(&values));
        assert_eq!(
            counts.all(),
            [
                (Kind::Nan, Some((2, 1))),
                (Kind::Infinite, Some((1, 3))),
                (Kind::BeyondFloat, Some((1, 6)))
            ]
        );
        let counts = Counts::of(Values::F32(&[f32::MAX, 0.0, -f32::INFINITY]));
        assert_eq!(
            counts.all(),
            [(Kind::Nan, None), (Kind::Infinite, Some((1, 2))), (Kind::BeyondFloat, None)]
        );
    }
}
