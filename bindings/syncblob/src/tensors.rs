//! Blobs in and out of the files of the crate `safetensors`, in place.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use safetensors::tensor::{Dtype as Stored, Metadata, TensorInfo, TensorView};
use safetensors::SafeTensors;

use crate::any::{bytes_of, each, BlobAny};
use crate::dtypes::for_each_dtype;
use crate::{Blob, Context, Dtype, Element, Error, ErrorKind, Result};

#[cfg(target_endian = "big")]
compile_error!("safetensors are little-endian, and their elements are used in place");

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
            /// A tensor of any element type as a blob; see [`blob`](Safetensors::blob).
            ///
            /// # Errors
            /// As there; [`Unsupported`](ErrorKind::Unsupported) for elements that no blob
            /// holds, and for `f16` and `bf16` without the feature `half`.
            pub fn blob_any(&self, name: &str) -> Result<BlobAny> {
                match self.info(name)?.dtype {
                    $(
                        #[cfg($when)]
                        Stored::$safe => self.blob::<$type>(name).map(BlobAny::from),
                    )*
                    other => {
                        let message = format!("{name:?} holds {other:?}, which no blob here does");
                        Err(Error::new(ErrorKind::Unsupported, message))
                    }
                }
            }
        }
    };
}

for_each_dtype!(stored);

/// Views that `safetensors` writes files from.
impl<T: Element> Blob<T> {
    /// The data as a tensor of the crate `safetensors`, without a copy but the one
    /// from a device.
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
    /// As [`data`](Blob::data); [`SizeOverflow`](ErrorKind::SizeOverflow) for an
    /// empty shape whose other dimensions `safetensors` cannot multiply. A blob that has
    /// no shape yet is a tensor of shape `[0]`.
    pub fn tensor_view(&self) -> Result<TensorView<'_>> {
        view(self, self.data()?)
    }

    /// The diff as a tensor of the crate `safetensors`.
    ///
    /// # Errors
    /// As [`diff`](Blob::diff) and [`tensor_view`](Blob::tensor_view).
    pub fn diff_tensor_view(&self) -> Result<TensorView<'_>> {
        view(self, self.diff()?)
    }
}

impl BlobAny {
    /// The data as a tensor of the crate `safetensors`; see [`Blob::tensor_view`].
    ///
    /// # Errors
    /// As there.
    pub fn tensor_view(&self) -> Result<TensorView<'_>> {
        each!(self, blob => blob.tensor_view())
    }
}

fn view<'b, T: Element>(blob: &'b Blob<T>, values: &'b [T]) -> Result<TensorView<'b>> {
    TensorView::new(stored(T::DTYPE), blob.shape_or_empty().to_vec(), bytes_of(values))
        .map_err(|error| Error::new(ErrorKind::SizeOverflow, format!("no tensor: {error}")))
}

/// A file of safetensors, in memory or mapped, whose tensors are blobs in place.
///
/// The blobs take the owner of the bytes and keep it as long as they use a tensor. Tensors that are
/// aligned for their element type (as in a mapped file that `safetensors` wrote) are not copied,
/// and never written: a call that writes first copies the bytes.
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
    /// Where the tensors begin.
    start: usize,
    context: Context,
}

impl Safetensors {
    /// Reads the header; the tensors stay where they are.
    ///
    /// # Errors
    /// [`Malformed`](ErrorKind::Malformed), in the words of `safetensors`.
    pub fn new<O>(bytes: O) -> Result<Self>
    where
        O: AsRef<[u8]> + Send + Sync + 'static,
    {
        let bytes = Arc::new(bytes);
        let (header, metadata) =
            SafeTensors::read_metadata((*bytes).as_ref()).map_err(|error| {
                // It may quote the header.
                let text = error.to_string();
                let text = text.escape_debug();
                Error::new(ErrorKind::Malformed, format!("no file of safetensors: {text}"))
            })?;
        Ok(Self { bytes, metadata, start: size_of::<u64>() + header, context: Context::host() })
    }

    /// Makes the blobs in a context.
    pub fn in_context(mut self, context: &Context) -> Self {
        self.context = context.clone();
        self
    }

    /// The names of the tensors, in the order of the file.
    pub fn names(&self) -> Vec<String> {
        self.metadata.offset_keys()
    }

    /// The dimensions of a tensor, if there is one of the name.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        Some(&self.metadata.info(name)?.shape)
    }

    /// The header: names, shapes, element types, and the file's metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// A tensor as a blob: on the file's bytes where they are aligned for `T`,
    /// else on a copy.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) when no tensor has the name;
    /// [`DtypeMismatch`](ErrorKind::DtypeMismatch) for other elements than `T`;
    /// [`OverLimit`](ErrorKind::OverLimit) for more than 32 axes;
    /// [`SizeOverflow`](ErrorKind::SizeOverflow) for a dimension beyond `i64`; out of
    /// memory.
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

/// The number of tensors and of bytes.
impl fmt::Debug for Safetensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Safetensors")
            .field("tensors", &self.names().len())
            .field("bytes", &self.metadata.data_len())
            .finish_non_exhaustive()
    }
}

/// A part of an owner's bytes.
struct Part {
    bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        // An owner that lends less than it did has no elements for a blob.
        (*self.bytes).as_ref().get(self.range.clone()).unwrap_or(&[])
    }
}
