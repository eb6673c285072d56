//! Converts blobs from and to files of the crate `safetensors`, without a copy if possible.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use safetensors::tensor::{Dtype as Stored, Metadata, TensorInfo, TensorView};
use safetensors::SafeTensors;

use crate::any::{bytes_of, each, BlobAny};
use crate::dtypes::for_each_dtype;
use crate::{Blob, Context, Dtype, Element, Error, ErrorKind, Result};

#[cfg(target_endian = "big")]
compile_error!("the feature `safetensors` supports only little-endian targets");

macro_rules! stored {
    ([] $(
        $name:ident = [$when:meta] $type:ty, $code:ident, $text:literal, $size:literal,
        $numpy:literal, $typestr:literal, $safe:ident, [$($can:ident)*], $kind:ident;
    )*) => {
        fn stored(dtype: Dtype) -> Stored {
            match dtype {
                $(Dtype::$name => Stored::$safe,)*
            }
        }

        impl Safetensors {
            /// Makes a blob from a tensor of any element type; see [`blob`](Safetensors::blob).
            ///
            /// # Errors
            /// Errors of [`blob`](Safetensors::blob); [`Unsupported`](ErrorKind::Unsupported) for
            /// an element type that no blob has, or for halves without the feature `half`.
            pub fn blob_any(&self, name: &str) -> Result<BlobAny> {
                match self.info(name)?.dtype {
                    $(
                        #[cfg($when)]
                        Stored::$safe => self.blob::<$type>(name).map(BlobAny::from),
                    )*
                    other => {
                        let message = format!("no blob can have the type {other:?} of {name:?}");
                        Err(Error::new(ErrorKind::Unsupported, message))
                    }
                }
            }
        }
    };
}

for_each_dtype!(stored);

/// Views of blobs, from which `safetensors` writes files.
impl<T: Element> Blob<T> {
    /// Returns the data as a tensor of the crate `safetensors`. Copies the data to the host if the
    /// newest bytes are only on a device; otherwise copies nothing.
    ///
    /// ```
    /// use syncblob::{safetensors, Blob};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (weight, bias) = (Blob::<f32>::full([3, 2], 1.0)?, Blob::<f32>::zeros([3])?);
    /// let tensors = [("ip.weight", weight.tensor_view()?), ("ip.bias", bias.tensor_view()?)];
    /// let file = safetensors::serialize(tensors, None)?;
    /// # assert_eq!(safetensors::SafeTensors::deserialize(&file)?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of [`data`](Blob::data); [`SizeOverflow`](ErrorKind::SizeOverflow) for a shape with a
    /// dimension of 0 if the product of its other dimensions is too large for `safetensors`. A blob
    /// without a shape becomes a tensor of shape `[0]`.
    pub fn tensor_view(&self) -> Result<TensorView<'_>> {
        view(self, self.data()?)
    }

    /// Returns the diff as a tensor of the crate `safetensors`.
    ///
    /// # Errors
    /// Errors of [`diff`](Blob::diff) and [`tensor_view`](Blob::tensor_view).
    pub fn diff_tensor_view(&self) -> Result<TensorView<'_>> {
        view(self, self.diff()?)
    }
}

impl BlobAny {
    /// Returns the data as a tensor of the crate `safetensors`; see [`Blob::tensor_view`].
    ///
    /// # Errors
    /// Errors of [`Blob::tensor_view`].
    pub fn tensor_view(&self) -> Result<TensorView<'_>> {
        each!(self, blob => blob.tensor_view())
    }
}

fn view<'b, T: Element>(blob: &'b Blob<T>, values: &'b [T]) -> Result<TensorView<'b>> {
    TensorView::new(stored(T::DTYPE), blob.shape_or_empty().to_vec(), bytes_of(values))
        .map_err(|error| Error::new(ErrorKind::SizeOverflow, format!("no tensor: {error}")))
}

/// A file of safetensors, in memory or mapped. Blobs use the file's tensors without a copy.
///
/// A blob that uses a tensor shares ownership of the file's bytes. Only tensors that are not
/// aligned for their element type are copied (a mapped file that `safetensors` wrote has no such
/// tensors). The library never writes the file's bytes; instead it writes a private copy.
///
/// ```
/// use std::fs::File;
/// use memmap2::Mmap;
/// use syncblob::{Blob, Safetensors};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("model.safetensors");
/// # let bias = Blob::<f32>::full([3], 0.5)?;
/// # syncblob::safetensors::serialize_to_file([("ip.bias", bias.tensor_view()?)], None, &path)?;
/// // SAFETY: nobody changes the file while it is mapped.
/// let file = Safetensors::new(unsafe { Mmap::map(&File::open(&path)?) }?)?;
/// for name in file.names() {
///     println!("{name}: {:?}", file.shape(&name));
/// }
/// let bias = file.blob::<f32>("ip.bias")?; // the mapped bytes
/// assert_eq!(bias.data()?, [0.5; 3]);
/// # Ok(())
/// # }
/// ```
pub struct Safetensors {
    bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
    metadata: Metadata,
    /// The offset of the first tensor.
    start: usize,
    context: Context,
}

impl Safetensors {
    /// Reads the header; the tensors are not copied.
    ///
    /// # Errors
    /// [`Malformed`](ErrorKind::Malformed), with the message of `safetensors`.
    pub fn new<O>(bytes: O) -> Result<Self>
    where
        O: AsRef<[u8]> + Send + Sync + 'static,
    {
        let bytes = Arc::new(bytes);
        let (header, metadata) =
            SafeTensors::read_metadata((*bytes).as_ref()).map_err(|error| {
                // The message may quote bytes of the file's header, so it is escaped.
                let text = error.to_string();
                let text = text.escape_debug();
                Error::new(ErrorKind::Malformed, format!("not a safetensors file: {text}"))
            })?;
        Ok(Self { bytes, metadata, start: size_of::<u64>() + header, context: Context::host() })
    }

    /// Sets the context in which blobs are made.
    pub fn in_context(mut self, context: &Context) -> Self {
        self.context = context.clone();
        self
    }

    /// Returns the names of the tensors, in the order of the file.
    pub fn names(&self) -> Vec<String> {
        self.metadata.offset_keys()
    }

    /// Returns the dimensions of the tensor with the given name, if it exists.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        Some(&self.metadata.info(name)?.shape)
    }

    /// Returns the header: names, shapes, element types, and the file's metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Makes a blob from a tensor. The blob uses the file's bytes, or a copy if they are unaligned.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) when no tensor has the name;
    /// [`DtypeMismatch`](ErrorKind::DtypeMismatch) for elements other than `T`;
    /// [`OverLimit`](ErrorKind::OverLimit) for more than 32 axes;
    /// [`SizeOverflow`](ErrorKind::SizeOverflow) for a dimension beyond `i64`; out of memory.
    pub fn blob<T: Element>(&self, name: &str) -> Result<Blob<T>> {
        let info = self.info(name)?;
        if info.dtype != stored(T::DTYPE) {
            let message = format!("{name:?} holds {:?}, not {}", info.dtype, T::DTYPE);
            return Err(Error::new(ErrorKind::DtypeMismatch, message));
        }
        let (start, end) = info.data_offsets;
        let range = self.start + start..self.start + end;
        let tensor = Part { bytes: Arc::clone(&self.bytes), range };
        Blob::in_context(&self.context).from_ne_bytes_or_copy(&info.shape[..], tensor)
    }

    fn info(&self, name: &str) -> Result<&TensorInfo> {
        self.metadata.info(name).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArgument, format!("no tensor is named {name:?}"))
        })
    }
}

/// Writes the number of tensors and of bytes.
impl fmt::Debug for Safetensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Safetensors")
            .field("tensors", &self.names().len())
            .field("bytes", &self.metadata.data_len())
            .finish_non_exhaustive()
    }
}

/// A range of an owner's bytes.
struct Part {
    bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        // A later call of the owner's `as_ref` may return fewer bytes; the part is then empty.
        (*self.bytes).as_ref().get(self.range.clone()).unwrap_or(&[])
    }
}
