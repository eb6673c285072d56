//! Tensors of DLPack, the format in which programs exchange arrays.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::{fmt, slice};

use syncblob_sys as sys;

use crate::any::BlobAny;
use crate::ffi::{check, get};
use crate::{Blob, BlobBuilder, Context, Element, Error, ErrorKind, Part, Result, Side};

macro_rules! tensor {
    ($(#[$about:meta])* $name:ident, $raw:ident, $create:ident, $set:ident) => {
        $(#[$about])*
        pub struct $name {
            raw: NonNull<sys::$raw>,
        }

        // SAFETY: the deleter of the library's tensors may be called on any thread. The caller of
        // `from_raw` promises the same for other tensors.
        unsafe impl Send for $name {}
        // SAFETY: `&self` methods read the struct, which never changes.
        unsafe impl Sync for $name {}

        impl $name {
            /// Passes ownership of the tensor to other code, such as a Python capsule, which must
            /// call the tensor's deleter. `dlpack.h` defines the layout of the struct.
            pub fn into_raw(self) -> NonNull<sys::$raw> {
                ManuallyDrop::new(self).raw
            }

            fn tensor(&self) -> &sys::sb_dl_tensor {
                // SAFETY: the tensor is live.
                unsafe { &self.raw.as_ref().dl_tensor }
            }

            /// Returns the pointer to the first element, on the host or on a device.
            pub fn data_ptr(&self) -> *const u8 {
                let tensor = self.tensor();
                tensor.data.cast_const().cast::<u8>().wrapping_add(tensor.byte_offset as usize)
            }

            /// Returns the dimensions.
            pub fn shape(&self) -> &[i64] {
                // SAFETY: there are `ndim` dimensions.
                unsafe { elements(self.tensor().shape, self.tensor().ndim) }
            }

            /// Returns the strides, in elements. An empty slice, allowed before DLPack 1.2, means
            /// row-major order.
            pub fn strides(&self) -> &[i64] {
                // SAFETY: there are `ndim` strides.
                unsafe { elements(self.tensor().strides, self.tensor().ndim) }
            }

            /// Returns the device type and the device number, as defined in `dlpack.h`.
            pub fn device(&self) -> (i32, i32) {
                (self.tensor().device.device_type, self.tensor().device.device_id)
            }
        }

        impl Tensor for $name {}

        impl sealed::Tensor for $name {
            fn into_blob(self, context: &Context) -> Result<*mut sys::sb_blob> {
                // SAFETY: the tensor is valid. If the call succeeds, the library owns the tensor.
                let blob = get(|out, err| unsafe {
                    sys::$create(context.as_ptr(), self.raw.as_ptr(), out, err)
                })?;
                std::mem::forget(self);
                Ok(blob)
            }

            unsafe fn set(self, blob: *mut sys::sb_blob, part: sys::sb_part) -> Result<()> {
                // SAFETY: as in `into_blob`. The caller promises that the blob may be changed.
                check(|err| unsafe { sys::$set(blob, part, self.raw.as_ptr(), 0, err) })?;
                std::mem::forget(self);
                Ok(())
            }
        }

        /// Calls the tensor's deleter.
        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: `self` owns the tensor, and its deleter is called only here.
                unsafe {
                    if let Some(deleter) = self.raw.as_ref().deleter {
                        deleter(self.raw.as_ptr());
                    }
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("shape", &self.shape())
                    .field("strides", &self.strides())
                    .field("device", &self.device())
                    .finish_non_exhaustive()
            }
        }
    };
}

tensor! {
    /// A tensor of DLPack 1.x (`DLManagedTensorVersioned`). Dropping the tensor calls its deleter.
    ///
    /// [`Blob::to_dlpack`] and [`Blob::into_dlpack`] make a tensor from a blob.
    /// [`from_dlpack`](Blob::from_dlpack) makes a blob from a tensor. Nothing is copied.
    Dlpack, sb_dl_managed_versioned, sb_blob_create_from_dlpack, sb_blob_from_dlpack
}

tensor! {
    /// A tensor of DLPack before 1.0 (`DLManagedTensor`), which has no read-only flag. Dropping the
    /// tensor calls its deleter.
    LegacyDlpack, sb_dl_managed, sb_blob_create_from_legacy_dlpack, sb_blob_from_legacy_dlpack
}

/// # Safety
/// `start` is null or points to `count` numbers that live for `'a`.
unsafe fn elements<'a>(start: *const i64, count: i32) -> &'a [i64] {
    match usize::try_from(count) {
        // SAFETY: the caller fulfils the Safety section.
        Ok(count) if !start.is_null() => unsafe { slice::from_raw_parts(start, count) },
        _ => &[],
    }
}

impl Dlpack {
    /// Takes ownership of a tensor. On failure calls the tensor's deleter.
    ///
    /// # Errors
    /// [`AbiMismatch`](ErrorKind::AbiMismatch) for a major version other than 1.
    ///
    /// # Safety
    /// `tensor` points to a valid tensor that the caller owns, and its deleter may be called on any
    /// thread. Until the deleter is called, no other code writes the tensor's elements. Unless the
    /// tensor is read-only, no other code reads the elements either.
    pub unsafe fn from_raw(tensor: NonNull<sys::sb_dl_managed_versioned>) -> Result<Self> {
        let tensor = Self { raw: tensor };
        // SAFETY: the tensor is live, and the struct of every version begins with the version.
        let major = unsafe { tensor.raw.as_ref().version.major };
        if major == sys::SB_DL_MAJOR_VERSION {
            return Ok(tensor);
        }
        let message = format!("the tensor is of DLPack {major}, not {}", sys::SB_DL_MAJOR_VERSION);
        Err(Error::new(ErrorKind::AbiMismatch, message))
    }

    /// Returns whether the tensor is read-only: if so, no code may write its elements.
    pub fn is_read_only(&self) -> bool {
        self.flags() & u64::from(sys::SB_DL_READ_ONLY) != 0
    }

    /// Returns the flags, as in `dlpack.h`.
    pub fn flags(&self) -> u64 {
        // SAFETY: the tensor is live.
        unsafe { self.raw.as_ref().flags }
    }
}

impl LegacyDlpack {
    /// Takes ownership of a tensor.
    ///
    /// # Safety
    /// `tensor` points to a valid tensor that the caller owns, and its deleter may be called on any
    /// thread. Until the deleter is called, no other code reads or writes the tensor's elements.
    pub unsafe fn from_raw(tensor: NonNull<sys::sb_dl_managed>) -> Self {
        Self { raw: tensor }
    }
}

/// A tensor that [`Blob::from_dlpack`] accepts: [`Dlpack`] or [`LegacyDlpack`].
pub trait Tensor: sealed::Tensor {}

mod sealed {
    use crate::{Context, Result};
    use syncblob_sys::{sb_blob, sb_part};

    /// The library's functions for one of DLPack's two structs.
    pub trait Tensor {
        fn into_blob(self, context: &Context) -> Result<*mut sb_blob>;

        /// # Safety
        /// `blob` is live and may be changed.
        unsafe fn set(self, blob: *mut sb_blob, part: sb_part) -> Result<()>;
    }
}

/// Tensors of DLPack: memory that NumPy, PyTorch and others use without a copy.
impl<T: Element> Blob<T> {
    /// Returns a memory as a read-only tensor. Bytes are copied only if the newest bytes are on the
    /// other side. While the tensor lives, the memory is shared and cannot be written.
    ///
    /// ```
    /// use syncblob::{Blob, ErrorKind, Part, Side};
    /// # fn main() -> syncblob::Result<()> {
    /// let mut blob = Blob::<f32>::full([2, 3], 1.0)?;
    /// let tensor = blob.to_dlpack(Part::Data, Side::Host)?;
    /// assert_eq!((tensor.shape(), tensor.strides()), (&[2, 3][..], &[3, 1][..]));
    /// assert_eq!(tensor.data_ptr(), blob.data()?.as_ptr().cast());
    /// assert_eq!(blob.data_mut().unwrap_err().kind(), ErrorKind::Shared);
    /// drop(tensor);
    /// blob.data_mut()?[0] = 2.0;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for a blob without a shape;
    /// [`Unsupported`](ErrorKind::Unsupported) for a device without a number in DLPack; errors of
    /// [`data`](Blob::data) and [`gpu_ptr`](Blob::gpu_ptr).
    #[doc(alias("sb_blob_to_dlpack", "__dlpack__"))]
    pub fn to_dlpack(&self, part: Part, side: Side) -> Result<Dlpack> {
        let (part, side) = (part.code(), side.code());
        // SAFETY: the blob is live.
        let raw =
            get(|out, err| unsafe { sys::sb_blob_to_dlpack(self.as_ptr(), part, side, out, err) })?;
        Ok(Dlpack { raw: given(raw) })
    }

    /// Returns the data's memory as a writable tensor. Consumes the blob, also on failure. To avoid
    /// such a failure, first check with [`is_unique`](Blob::is_unique) that the memory has one
    /// owner.
    ///
    /// # Errors
    /// [`Shared`](ErrorKind::Shared); errors of [`to_dlpack`](Blob::to_dlpack).
    #[doc(alias = "sb_blob_to_mutable_dlpack")]
    pub fn into_dlpack(mut self, side: Side) -> Result<Dlpack> {
        self.need_unique(Part::Data)?;
        // SAFETY: the blob was the memory's only owner and is dropped here. The tensor is then the
        // only owner.
        unsafe { self.to_dlpack_mut(Part::Data, side) }
    }

    /// Like [`into_dlpack`](Blob::into_dlpack), but returns a tensor of DLPack before 1.0.
    ///
    /// # Errors
    /// Errors of [`into_dlpack`](Blob::into_dlpack).
    #[doc(alias = "sb_blob_to_legacy_dlpack")]
    pub fn into_legacy_dlpack(mut self, side: Side) -> Result<LegacyDlpack> {
        self.need_unique(Part::Data)?;
        // SAFETY: as in `into_dlpack`.
        unsafe { self.to_legacy_dlpack_mut(Part::Data, side) }
    }

    /// Returns a memory as a writable tensor. The blob keeps using the memory. Writes through the
    /// tensor change the blob until the next call that accesses the other side. After such a call,
    /// request this side for writing before the next write through the tensor.
    ///
    /// # Errors
    /// Errors of [`to_dlpack`](Blob::to_dlpack).
    ///
    /// # Safety
    /// While other code writes through the tensor, no code reads or writes the memory in another
    /// way. During that time, no slice of the memory is alive.
    #[doc(alias = "sb_blob_to_mutable_dlpack")]
    pub unsafe fn to_dlpack_mut(&mut self, part: Part, side: Side) -> Result<Dlpack> {
        let (part, side) = (part.code(), side.code());
        // SAFETY: the blob is live. The caller promises what this method's Safety section requires.
        let raw = get(|out, err| unsafe {
            sys::sb_blob_to_mutable_dlpack(self.as_ptr(), part, side, out, err)
        })?;
        Ok(Dlpack { raw: given(raw) })
    }

    /// Like [`to_dlpack_mut`](Blob::to_dlpack_mut), but returns a tensor of DLPack before 1.0.
    ///
    /// # Errors
    /// Errors of [`to_dlpack`](Blob::to_dlpack).
    ///
    /// # Safety
    /// The requirements of [`to_dlpack_mut`](Blob::to_dlpack_mut).
    #[doc(alias = "sb_blob_to_legacy_dlpack")]
    pub unsafe fn to_legacy_dlpack_mut(&mut self, part: Part, side: Side) -> Result<LegacyDlpack> {
        let (part, side) = (part.code(), side.code());
        // SAFETY: as in `to_dlpack_mut`.
        let raw = get(|out, err| unsafe {
            sys::sb_blob_to_legacy_dlpack(self.as_ptr(), part, side, out, err)
        })?;
        Ok(LegacyDlpack { raw: given(raw) })
    }

    /// Makes a blob whose data is a tensor's memory, without a copy. The memory is on the host, or
    /// on the device of the context. The library never writes the memory of a read-only tensor.
    /// Before its first write, the library copies the bytes to its own memory. The library calls
    /// the tensor's deleter when the memory has no user left or, on failure, at once.
    ///
    /// ```
    /// use syncblob::{Blob, Side};
    /// # fn main() -> syncblob::Result<()> {
    /// let blob = Blob::<f32>::from_slice([2], &[1.0, 2.0])?;
    /// let mut again = Blob::<f32>::from_dlpack(blob.into_dlpack(Side::Host)?)?;
    /// again.data_mut()?[0] = 5.0;
    /// assert_eq!(again.data()?, [5.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DtypeMismatch`](ErrorKind::DtypeMismatch) for elements that are not `T`.
    /// - [`Unsupported`](ErrorKind::Unsupported) for strides that are not row-major, and for
    ///   element types that no blob has.
    /// - [`WrongDevice`](ErrorKind::WrongDevice) and [`NoDevice`](ErrorKind::NoDevice) for memory
    ///   of another device.
    /// - Errors of [`zeros`](Blob::zeros) for the tensor's shape.
    /// - [`InvalidArgument`](ErrorKind::InvalidArgument) for memory that is not aligned for `T`.
    #[doc(alias = "sb_blob_create_from_dlpack")]
    pub fn from_dlpack(tensor: impl Tensor) -> Result<Self> {
        Self::in_context(&Context::host()).from_dlpack(tensor)
    }

    /// Uses a tensor's memory as this blob's data or diff, without a copy. Releases this blob's
    /// share of the old memory. Other owners keep the memory.
    ///
    /// # Errors
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch) when the shapes differ; errors of
    /// [`from_dlpack`](Blob::from_dlpack).
    #[doc(alias = "sb_blob_from_dlpack")]
    pub fn set_dlpack(&mut self, part: Part, tensor: impl Tensor) -> Result<()> {
        // SAFETY: the blob is live and mutably borrowed.
        unsafe { tensor.set(self.as_ptr(), part.code()) }
    }
}

/// Making blobs in a context.
impl<T: Element> BlobBuilder<'_, T> {
    /// Does the same as [`Blob::from_dlpack`] in the builder's context.
    ///
    /// # Errors
    /// Errors of [`Blob::from_dlpack`].
    pub fn from_dlpack(self, tensor: impl Tensor) -> Result<Blob<T>> {
        let any = BlobAny::from_dlpack(self.context, tensor)?;
        any.downcast().map_err(|any| {
            let message = format!("the tensor holds {}, not {}", any.dtype(), T::DTYPE);
            Error::new(ErrorKind::DtypeMismatch, message)
        })
    }
}

impl BlobAny {
    /// Makes a blob with the element type of a tensor. See [`Blob::from_dlpack`].
    ///
    /// # Errors
    /// Errors of [`Blob::from_dlpack`], without `DtypeMismatch`;
    /// [`Unsupported`](ErrorKind::Unsupported) for `f16` and `bf16` without the feature `half`.
    pub fn from_dlpack(context: &Context, tensor: impl Tensor) -> Result<Self> {
        let raw = tensor.into_blob(context)?;
        // SAFETY: the library has just made the blob.
        unsafe { Self::own(raw) }
    }
}

fn given<R>(raw: *mut R) -> NonNull<R> {
    NonNull::new(raw).expect("the library returned neither a tensor nor an error")
}
