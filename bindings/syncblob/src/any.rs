use std::fmt;
use std::ptr::NonNull;
use std::slice;

use syncblob_sys as sys;

use crate::dtypes::for_each_dtype;
use crate::{
    Blob, Context, Dtype, Element, Error, ErrorKind, Part, Reallocated, Result, Shape, SyncedMemory,
};

macro_rules! blob_any {
    ([] $(
        $name:ident = [$when:meta] $type:ty, $code:ident, $text:literal, $size:literal,
        $numpy:literal, $typestr:literal, $safe:ident, [$($can:ident)*], $kind:ident;
    )*) => {
        /// A [`Blob`] whose element type is known only at run time.
        #[non_exhaustive]
        pub enum BlobAny {
            $(
                #[doc = concat!("A blob of `", $text, "`.")]
                #[cfg($when)]
                $name(Blob<$type>),
            )*
        }

        impl BlobAny {
            /// Makes an empty blob in a context. See [`Blob::new`].
            ///
            /// ```
            /// use syncblob::{BlobAny, Context, Dtype};
            /// # fn main() -> syncblob::Result<()> {
            /// let mut blob = BlobAny::new(&Context::host(), Dtype::I32)?;
            /// blob.reshape([2, 3])?;
            /// assert_eq!((blob.dtype(), blob.count()), (Dtype::I32, 6));
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            /// Errors of [`Blob::new`]; [`Unsupported`](ErrorKind::Unsupported) for `f16` and
            /// `bf16` without the feature `half`.
            pub fn new(context: &Context, dtype: Dtype) -> Result<Self> {
                match dtype {
                    $(
                        #[cfg($when)]
                        Dtype::$name => Ok(Self::$name(Blob::in_context(context).empty()?)),
                    )*
                    #[cfg(not(feature = "half"))]
                    other => Err(unknown(Some(other), other.code())),
                }
            }

            /// Takes ownership of a blob that the library made. See `from_raw`.
            ///
            /// # Safety
            /// The requirements of `from_raw`.
            pub(crate) unsafe fn own(raw: *mut sys::sb_blob) -> Result<Self> {
                // SAFETY: the blob is live.
                let code = unsafe { sys::sb_blob_dtype(raw) };
                match Dtype::from_code(code) {
                    $(
                        #[cfg($when)]
                        Some(Dtype::$name) => Ok(Self::$name(Blob::own(raw))),
                    )*
                    other => {
                        // SAFETY: the caller has passed ownership of the blob.
                        unsafe { sys::sb_blob_destroy(raw) };
                        Err(unknown(other, code))
                    }
                }
            }
        }
    };
}

for_each_dtype!(blob_any);

#[cold]
pub(crate) fn unknown(dtype: Option<Dtype>, code: i32) -> Error {
    let message = match dtype {
        Some(dtype) => format!("{dtype} needs the feature `half` of this crate"),
        None => format!("this crate does not know the library's element type {code}"),
    };
    Error::new(ErrorKind::Unsupported, message)
}

macro_rules! match_any {
    ([$any:tt $blob:ident $body:tt] $(
        $name:ident = [$when:meta] $type:ty, $code:ident, $text:literal, $size:literal,
        $numpy:literal, $typestr:literal, $safe:ident, [$($can:ident)*], $kind:ident;
    )*) => {
        match $any {
            $(
                #[cfg($when)]
                BlobAny::$name($blob) => $body,
            )*
        }
    };
}
pub(crate) use match_any;

/// Evaluates an expression with the typed [`Blob`] that a [`BlobAny`] contains.
macro_rules! each {
    ($any:expr, $blob:ident => $body:expr) => {
        $crate::dtypes::for_each_dtype!($crate::any::match_any, ($any) $blob ($body))
    };
}

#[cfg(any(feature = "safetensors", feature = "serde"))]
pub(crate) use each;

/// Defines methods twice: for a [`Blob`] whose element type supports them, and for [`BlobAny`]. The
/// library refuses unsupported element types of a [`BlobAny`] at run time.
macro_rules! both {
    ($(#[$doc:meta])* impl $can:ident { $($methods:tt)* }) => {
        $(#[$doc])*
        impl<T: $crate::$can> $crate::Blob<T> { $($methods)* }

        $(#[$doc])*
        impl $crate::BlobAny { $($methods)* }
    };
}

pub(crate) use both;

/// Returns the bytes of plain numbers.
pub(crate) fn bytes_of<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: all bytes of a plain number are initialised.
    unsafe { slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Returns the bytes of plain numbers, for writing. Any bytes are valid numbers.
pub(crate) fn bytes_of_mut<T: Element>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `bytes_of`, and any bytes are valid numbers.
    unsafe { slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

fn dtype_of<T: Element>(_: &Blob<T>) -> Dtype {
    T::DTYPE
}

impl BlobAny {
    /// Changes the shape. See [`Blob::reshape`].
    ///
    /// # Errors
    /// Errors of [`Blob::reshape`].
    pub fn reshape(&mut self, shape: impl Into<Shape>) -> Result<Reallocated> {
        each!(self, blob => blob.reshape(shape))
    }

    /// Returns a reference to data's or diff's memory. See [`Blob::memory`].
    ///
    /// # Errors
    /// Errors of [`Blob::memory`].
    pub fn memory(&self, part: Part) -> Result<&SyncedMemory> {
        each!(self, blob => blob.memory(part))
    }

    /// Returns the context that the blob was made in.
    pub fn context(&self) -> Context {
        each!(self, blob => blob.context())
    }
}

impl BlobAny {
    /// Takes ownership of a blob that C code made, of any element type.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) for a blob of `f16` or `bf16` without the feature
    /// `half`. This error destroys the blob.
    ///
    /// # Safety
    /// The requirements of [`Blob::from_raw`], except that every element type is allowed.
    pub unsafe fn from_raw(raw: NonNull<sys::sb_blob>) -> Result<Self> {
        // SAFETY: the caller fulfils the Safety section.
        unsafe { Self::own(raw.as_ptr()) }
    }

    /// Returns the C handle. See [`Blob::as_ptr`].
    pub fn as_ptr(&self) -> *mut sys::sb_blob {
        each!(self, blob => blob.as_ptr())
    }

    pub(crate) fn raw(&self) -> *mut sys::sb_blob {
        each!(self, blob => blob.raw())
    }

    pub(crate) fn need_unique(&mut self, part: Part) -> Result<()> {
        each!(self, blob => blob.need_unique(part))
    }

    /// Returns the element type.
    pub fn dtype(&self) -> Dtype {
        each!(self, blob => dtype_of(blob))
    }

    /// Returns whether the blob ever had a shape. See [`Blob::is_shaped`].
    pub fn is_shaped(&self) -> bool {
        each!(self, blob => blob.is_shaped())
    }

    /// Returns the dimensions. See [`Blob::shape`].
    pub fn shape(&self) -> &[usize] {
        each!(self, blob => blob.shape())
    }

    /// Returns the number of elements.
    pub fn count(&self) -> usize {
        each!(self, blob => blob.count())
    }

    /// Returns data or diff on the host as bytes, in this machine's byte order.
    ///
    /// # Errors
    /// Errors of [`Blob::data`].
    pub fn bytes(&self, part: Part) -> Result<&[u8]> {
        each!(self, blob => Ok(bytes_of(blob.host(part)?)))
    }

    /// Returns data or diff on the host as bytes, for writing. The caller may write any bytes.
    ///
    /// ```
    /// use syncblob::{Blob, BlobAny, Part};
    /// # fn main() -> syncblob::Result<()> {
    /// let mut blob = BlobAny::from(Blob::<i32>::zeros([2])?);
    /// blob.bytes_mut(Part::Data)?[4..].copy_from_slice(&7_i32.to_ne_bytes());
    /// assert_eq!(blob.downcast_ref::<i32>().unwrap().data()?, [0, 7]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of [`Blob::data_mut`].
    pub fn bytes_mut(&mut self, part: Part) -> Result<&mut [u8]> {
        each!(self, blob => Ok(bytes_of_mut(blob.host_mut(part)?)))
    }

    /// Allows writes to shared memories. See [`Blob::allow_shared_writes`].
    ///
    /// # Safety
    /// The requirements of [`Blob::allow_shared_writes`].
    pub unsafe fn allow_shared_writes(&mut self) {
        // SAFETY: the caller fulfils the Safety section.
        each!(self, blob => unsafe { blob.allow_shared_writes() });
    }

    /// Makes this blob the only owner of a memory. See [`Blob::make_unique`].
    ///
    /// # Errors
    /// Errors of [`Blob::make_unique`].
    pub fn make_unique(&mut self, part: Part) -> Result<()> {
        each!(self, blob => blob.make_unique(part))
    }

    /// Copies shape, data and diff to a new blob in the same context. See [`Blob::try_clone`].
    ///
    /// # Errors
    /// Errors of [`Blob::try_clone`].
    pub fn try_clone(&self) -> Result<Self> {
        each!(self, blob => Ok(blob.try_clone()?.into()))
    }

    /// Converts the blob to a [`Blob`] of elements `T`.
    ///
    /// # Errors
    /// Returns `self` if the elements are not `T`.
    pub fn downcast<T: Element>(self) -> Result<Blob<T>, Self> {
        T::unwrap(self)
    }

    /// Returns the blob, if its elements are `T`.
    pub fn downcast_ref<T: Element>(&self) -> Option<&Blob<T>> {
        T::unwrap_ref(self)
    }

    /// Returns a mutable reference to the blob, if its elements are `T`.
    pub fn downcast_mut<T: Element>(&mut self) -> Option<&mut Blob<T>> {
        T::unwrap_mut(self)
    }
}

impl<T: Element> From<Blob<T>> for BlobAny {
    fn from(blob: Blob<T>) -> Self {
        T::wrap(blob)
    }
}

/// Writes the shape in Caffe's form: `2 3 4 (24)`.
impl fmt::Display for BlobAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        each!(self, blob => fmt::Display::fmt(blob, f))
    }
}

impl fmt::Debug for BlobAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        each!(self, blob => fmt::Debug::fmt(blob, f))
    }
}
