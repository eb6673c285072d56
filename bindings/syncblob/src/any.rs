use std::fmt;
use std::ptr::NonNull;
use std::slice;

use syncblob_sys as sys;

use crate::ffi::get;
use crate::{
    Blob, Context, Dtype, Element, Error, ErrorKind, Part, Reallocated, Result, Shape, SyncedMemory,
};

/// A [`Blob`] whose element type is known only at run time.
#[non_exhaustive]
pub enum BlobAny {
    /// A blob of `f32`.
    F32(Blob<f32>),
    /// A blob of `f64`.
    F64(Blob<f64>),
    /// A blob of `i32`.
    I32(Blob<i32>),
    /// A blob of `u32`.
    U32(Blob<u32>),
    /// A blob of `i8`.
    I8(Blob<i8>),
    /// A blob of `u8`.
    U8(Blob<u8>),
    /// A blob of `half::f16`.
    #[cfg(feature = "half")]
    F16(Blob<half::f16>),
    /// A blob of `half::bf16`.
    #[cfg(feature = "half")]
    Bf16(Blob<half::bf16>),
}

macro_rules! each {
    ($any:expr, $blob:ident => $body:expr) => {
        match $any {
            BlobAny::F32($blob) => $body,
            BlobAny::F64($blob) => $body,
            BlobAny::I32($blob) => $body,
            BlobAny::U32($blob) => $body,
            BlobAny::I8($blob) => $body,
            BlobAny::U8($blob) => $body,
            #[cfg(feature = "half")]
            BlobAny::F16($blob) => $body,
            #[cfg(feature = "half")]
            BlobAny::Bf16($blob) => $body,
        }
    };
}

pub(crate) use each;

/// The bytes of plain numbers.
pub(crate) fn bytes_of<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: plain numbers, all bytes of which are initialised.
    unsafe { slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of plain numbers, any of which are a number.
pub(crate) fn bytes_of_mut<T: Element>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and any bytes are a value.
    unsafe { slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

fn dtype_of<T: Element>(_: &Blob<T>) -> Dtype {
    T::DTYPE
}

/// Making, for an element type that is known at run time.
impl BlobAny {
    /// An empty blob in a context; see [`Blob::new`].
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
    /// As [`Blob::new`]; [`Unsupported`](ErrorKind::Unsupported) for `f16` and `bf16`
    /// without the feature `half`.
    pub fn new(context: &Context, dtype: Dtype) -> Result<Self> {
        // SAFETY: the context is live; the blob retains it.
        let raw = get(|out, err| unsafe {
            sys::sb_blob_create(context.as_ptr(), dtype.code(), out, err)
        })?;
        // SAFETY: nobody else knows the blob yet.
        unsafe { Self::own(raw) }
    }

    /// Changes the shape; see [`Blob::reshape`].
    ///
    /// # Errors
    /// As there.
    pub fn reshape(&mut self, shape: impl Into<Shape>) -> Result<Reallocated> {
        each!(self, blob => blob.reshape(shape))
    }

    /// One of the memories, lent; see [`Blob::memory`].
    ///
    /// # Errors
    /// As there.
    pub fn memory(&self, part: Part) -> Result<&SyncedMemory> {
        each!(self, blob => blob.memory(part))
    }

    /// The context that the blob was made in.
    pub fn context(&self) -> Context {
        each!(self, blob => blob.context())
    }
}

impl BlobAny {
    /// Takes over a blob that C code made, of any element type.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) for one of halves without the feature `half`;
    /// the blob is ended.
    ///
    /// # Safety
    /// As [`Blob::from_raw`], but for the element type.
    pub unsafe fn from_raw(raw: NonNull<sys::sb_blob>) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { Self::own(raw.as_ptr()) }
    }

    /// The same for a blob that the library gave.
    ///
    /// # Safety
    /// As `from_raw`.
    pub(crate) unsafe fn own(raw: *mut sys::sb_blob) -> Result<Self> {
        // SAFETY: the blob is live.
        let code = unsafe { sys::sb_blob_dtype(raw) };
        match Dtype::from_code(code) {
            Some(Dtype::F32) => Ok(Self::F32(Blob::own(raw))),
            Some(Dtype::F64) => Ok(Self::F64(Blob::own(raw))),
            Some(Dtype::I32) => Ok(Self::I32(Blob::own(raw))),
            Some(Dtype::U32) => Ok(Self::U32(Blob::own(raw))),
            Some(Dtype::I8) => Ok(Self::I8(Blob::own(raw))),
            Some(Dtype::U8) => Ok(Self::U8(Blob::own(raw))),
            #[cfg(feature = "half")]
            Some(Dtype::F16) => Ok(Self::F16(Blob::own(raw))),
            #[cfg(feature = "half")]
            Some(Dtype::Bf16) => Ok(Self::Bf16(Blob::own(raw))),
            other => {
                // SAFETY: the blob is ours.
                unsafe { sys::sb_blob_destroy(raw) };
                let name = other.map_or("elements of an unknown type", Dtype::name);
                let message = format!("{name}: not without the feature `half` of this crate");
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }

    /// The C handle; see [`Blob::as_ptr`].
    pub fn as_ptr(&self) -> *mut sys::sb_blob {
        each!(self, blob => blob.as_ptr())
    }

    /// The element type.
    pub fn dtype(&self) -> Dtype {
        each!(self, blob => dtype_of(blob))
    }

    /// Whether the blob ever got a shape; see [`Blob::is_shaped`].
    pub fn is_shaped(&self) -> bool {
        each!(self, blob => blob.is_shaped())
    }

    /// The dimensions; see [`Blob::shape`].
    pub fn shape(&self) -> &[usize] {
        each!(self, blob => blob.shape())
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        each!(self, blob => blob.count())
    }

    /// Data or diff on the host as bytes, in this machine's order.
    ///
    /// # Errors
    /// As [`Blob::data`].
    pub fn bytes(&self, part: Part) -> Result<&[u8]> {
        each!(self, blob => Ok(bytes_of(blob.host(part)?)))
    }

    /// Data or diff on the host as bytes, for writing; any bytes are elements.
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
    /// As [`Blob::data_mut`].
    pub fn bytes_mut(&mut self, part: Part) -> Result<&mut [u8]> {
        each!(self, blob => Ok(bytes_of_mut(blob.host_mut(part)?)))
    }

    /// Releases a memory; see [`Blob::release`].
    pub fn release(&mut self, part: Part) {
        each!(self, blob => blob.release(part));
    }

    /// Whether a memory is this blob's alone; see [`Blob::is_unique`].
    ///
    /// # Errors
    /// As there.
    pub fn is_unique(&self, part: Part) -> Result<bool> {
        each!(self, blob => blob.is_unique(part))
    }

    /// Makes a memory this blob's alone; see [`Blob::make_unique`].
    ///
    /// # Errors
    /// As there.
    pub fn make_unique(&mut self, part: Part) -> Result<()> {
        each!(self, blob => blob.make_unique(part))
    }

    /// A copy of shape, data and diff, in the same context; see [`Blob::try_clone`].
    ///
    /// # Errors
    /// As [`Blob::try_clone`].
    pub fn try_clone(&self) -> Result<Self> {
        each!(self, blob => Ok(blob.try_clone()?.into()))
    }

    /// The blob, if its elements are `T`; else `self` back.
    ///
    /// # Errors
    /// `self`, when the elements are of another type.
    pub fn downcast<T: Element>(self) -> Result<Blob<T>, Self> {
        T::unwrap(self)
    }

    /// The blob, if its elements are `T`.
    pub fn downcast_ref<T: Element>(&self) -> Option<&Blob<T>> {
        T::unwrap_ref(self)
    }

    /// The blob, for changing, if its elements are `T`.
    pub fn downcast_mut<T: Element>(&mut self) -> Option<&mut Blob<T>> {
        T::unwrap_mut(self)
    }
}

impl<T: Element> From<Blob<T>> for BlobAny {
    fn from(blob: Blob<T>) -> Self {
        T::wrap(blob)
    }
}

/// Caffe's form: `2 3 4 (24)`.
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
