use std::fmt;

use syncblob_sys as sys;

use crate::{Blob, Dtype, Element, Error, ErrorKind, Result};

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

fn dtype_of<T: Element>(_: &Blob<T>) -> Dtype {
    T::DTYPE
}

impl BlobAny {
    /// Takes over a blob of any element type.
    ///
    /// # Safety
    /// `raw` is a live blob that nobody else has.
    pub(crate) unsafe fn from_raw(raw: *mut sys::sb_blob) -> Result<Self> {
        // SAFETY: the blob is live.
        let code = unsafe { sys::sb_blob_dtype(raw) };
        match Dtype::from_code(code) {
            Some(Dtype::F32) => Ok(Self::F32(Blob::from_raw(raw))),
            Some(Dtype::F64) => Ok(Self::F64(Blob::from_raw(raw))),
            Some(Dtype::I32) => Ok(Self::I32(Blob::from_raw(raw))),
            Some(Dtype::U32) => Ok(Self::U32(Blob::from_raw(raw))),
            Some(Dtype::I8) => Ok(Self::I8(Blob::from_raw(raw))),
            Some(Dtype::U8) => Ok(Self::U8(Blob::from_raw(raw))),
            #[cfg(feature = "half")]
            Some(Dtype::F16) => Ok(Self::F16(Blob::from_raw(raw))),
            #[cfg(feature = "half")]
            Some(Dtype::Bf16) => Ok(Self::Bf16(Blob::from_raw(raw))),
            other => {
                // SAFETY: the blob is ours.
                unsafe { sys::sb_blob_destroy(raw) };
                let name = other.map_or("elements of an unknown type", Dtype::name);
                let message = format!("{name}: not without the feature `half` of this crate");
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::sb_blob {
        each!(self, blob => blob.as_ptr())
    }

    /// The element type.
    pub fn dtype(&self) -> Dtype {
        each!(self, blob => dtype_of(blob))
    }

    /// The dimensions; see [`Blob::shape`].
    pub fn shape(&self) -> &[usize] {
        each!(self, blob => blob.shape())
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        each!(self, blob => blob.count())
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
