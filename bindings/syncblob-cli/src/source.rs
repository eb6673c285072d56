//! Opens a file of any format as a list of named tensors, which are loaded one at a time.

mod caffe;
mod fill;
mod format;
mod notes;
mod npy;
mod npz;
mod safetensors;

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use syncblob::{BlobAny, Context, Dtype, ErrorKind, Format, Model};

use crate::advice;

pub use self::caffe::{name_of_no_layer, unique_names, Names};
pub use self::format::FileFormat;
pub use self::notes::{ForTorch, Kind, Layer, Notes, Place, Solver, KEY as NOTES_KEY};
pub use self::safetensors::type_of as safetensors_type;

/// An opened file. Each tensor's values are in memory only while a caller uses the loaded tensor.
pub struct Source {
    pub format: FileFormat,
    /// The file's data except the tensors.
    pub notes: Notes,
    /// The tensors, sorted by layer if the file has layers, or else in the file's order.
    pub tensors: Vec<Tensor>,
    /// The names of an archive's members that are not arrays.
    pub others: Vec<String>,
    store: Box<dyn Store>,
    context: Context,
}

/// A description of a tensor that is not loaded.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// A name that is unique in the file.
    pub name: String,
    pub place: Option<Place>,
    pub shape: Vec<usize>,
    pub dtype: Stored,
}

/// How a tensor's values are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    As(Dtype),
    /// The name, in the file's format, of a type that blobs do not support.
    Other(String),
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::As(dtype) => dtype.fmt(f),
            Self::Other(name) => f.write_str(name),
        }
    }
}

impl Tensor {
    /// Returns the number of values. Cannot overflow, because opening a file refuses such shapes.
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }
}

/// Properties that only blobs in Caffe's files have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Whether the loaded blob also has a diff.
    pub has_diff: bool,
    /// Whether the shape is stored as the legacy fields num, channels, height and width.
    pub is_legacy: bool,
}

/// The number of values that callers request at a time, unless they need all values at once.
pub const PART: usize = 1 << 20;

/// The values of a tensor, which are read part by part, in order.
pub trait Parts {
    /// Returns the next values, or None after the last values. If the format can be read in parts,
    /// returns at most `most` values. A blob of all values has the tensor's shape. Any other blob
    /// has one axis. For a tensor without values, returns one empty blob.
    fn next(&mut self, most: usize) -> Result<Option<BlobAny>>;
}

/// A consumer of a tensor's parts, which may stop before the last part.
type Reading<'a> = &'a mut dyn FnMut(&mut dyn Parts);

/// Reads the tensors of one format. `index` is a tensor's index in `Source::tensors`.
trait Store {
    /// Calls `reading` once with the parts of a tensor.
    fn read(
        &self,
        index: usize,
        tensor: &Tensor,
        context: &Context,
        reading: Reading,
    ) -> Result<()>;

    fn details(&self, _: usize) -> Details {
        Details::default()
    }

    /// Returns the model that the library opened, or None if the file is not Caffe's.
    fn model(&self) -> Option<&Model> {
        None
    }
}

impl Source {
    /// Opens a file. If `format` is None, detects the format from the first bytes.
    pub fn open(path: &Path, format: Option<FileFormat>) -> Result<Self> {
        // Disables the cache of freed buffers, because the next tensor rarely has the same size.
        let context = Context::builder().host_cache(false).build()?;
        let is_found = format.is_none();
        let format = match format {
            Some(format) => format,
            // Opening a pipe would block, so the library reports the error.
            None if !fs::metadata(path)?.is_file() => FileFormat::Caffe(None),
            None => FileFormat::of_file(&File::open(path)?)?,
        };
        let mut others = Vec::new();
        let (notes, tensors, store): (_, _, Box<dyn Store>) =
            match format {
                FileFormat::Caffe(kind) => caffe::open(path, kind, &context)
                    .map_err(|failure| if is_found { explained(path, failure) } else { failure })?,
                FileFormat::Safetensors => safetensors::open(File::open(path)?)?,
                FileFormat::Npz => npz::open(File::open(path)?, &mut others)?,
                FileFormat::Npy => npy::open(File::open(path)?)?,
            };
        Ok(Self { format, notes, tensors, others, store, context })
    }

    /// Returns None if the tensor belongs to no layer.
    pub fn layer_of(&self, tensor: &Tensor) -> Option<&Layer> {
        self.notes.layers.get(tensor.place?.layer?)
    }

    pub fn details(&self, index: usize) -> Details {
        self.store.details(index)
    }

    /// Returns the model if the file is a .caffemodel, whose tensors are in layers.
    pub fn net(&self) -> Option<&Model> {
        self.store.model().filter(|model| model.format() == Format::Caffemodel)
    }

    /// Returns the context in which tensors are loaded. The context does not cache freed buffers.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Passes the parts of a tensor to `reading`. Returns the result of `reading`.
    pub fn read<T>(&self, index: usize, reading: impl FnOnce(&mut dyn Parts) -> T) -> Result<T> {
        let tensor = &self.tensors[index];
        if let Stored::Other(name) = &tensor.dtype {
            return Err(Failure::Unsupported(format!(
                "tensor \"{}\" is of type {name}, which blobs do not support",
                tensor.name
            )));
        }
        let (mut reading, mut given) = (Some(reading), None);
        self.store.read(index, tensor, &self.context, &mut |parts| {
            given = reading.take().map(|reading| reading(parts));
        })?;
        Ok(given.expect("each format calls `reading`"))
    }

    /// Loads all values of a tensor in their stored type. Uses memory only for these values.
    pub fn load(&self, index: usize) -> Result<BlobAny> {
        let mut loaded = None;
        self.parts(index, usize::MAX, &mut |blob| {
            loaded = Some(blob);
            Ok(())
        })?;
        Ok(loaded.expect("a tensor has at least one part"))
    }

    /// Passes all values to `each` in order, in blobs of at most `most` values. A tensor of
    /// a Caffe file, or an array in Fortran's order, is one blob even if it has more values.
    pub fn parts(
        &self,
        index: usize,
        most: usize,
        each: &mut dyn FnMut(BlobAny) -> Result<()>,
    ) -> Result<()> {
        self.read(index, |parts| {
            while let Some(blob) = parts.next(most)? {
                each(blob)?;
            }
            Ok(())
        })?
    }
}

/// Returns the best failure to report for a file that the library refused with `failure`. If the
/// first bytes or the extension belong to another format, prefers the failure of that format's
/// reader.
pub fn explained(path: &Path, failure: Failure) -> Failure {
    let Some(format) = format::meant(path, &failure) else { return failure };
    match Source::open(path, Some(format)) {
        Err(own @ (Failure::Malformed(_) | Failure::Unsupported(_))) => own,
        _ => failure,
    }
}

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// The reason why a file cannot be read or written. The text may contain names from the file.
#[derive(Debug)]
pub enum Failure {
    Library(syncblob::Error),
    Io(io::Error),
    /// The bytes are malformed.
    Malformed(String),
    /// The file or the request is not supported. The text may mention an alternative.
    Unsupported(String),
    /// Any failure that no other variant describes. The text has the file's path.
    File(String),
    /// A signal stopped the command.
    Interrupted,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(error) => f.write_str(&advice::useful_half_first(error, error.message())),
            Self::Io(error) => error.fmt(f),
            Self::Malformed(text) | Self::Unsupported(text) | Self::File(text) => f.write_str(text),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl From<syncblob::Error> for Failure {
    fn from(error: syncblob::Error) -> Self {
        match error.kind() {
            ErrorKind::Cancelled => Self::Interrupted, // only a signal cancels
            _ => Self::Library(error),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Malformed("the file ends too early".into()),
            _ => Self::Io(error),
        }
    }
}
