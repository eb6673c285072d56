use std::ffi::c_void;

use syncblob_sys as sys;

use super::{reserve, Blob, BlobBuilder, Part};
use crate::ffi::{check, get};
use crate::owner::{lend, lend_shared, reclaim};
use crate::{Access, Context, Element, Error, ErrorKind, Result, Shape};

/// Blobs that use the caller's memory, without a copy.
///
/// The blob takes ownership of the value that owns the memory. The library drops this owner when
/// the blob and all sharers have released the memory and no queued copy uses the memory. The drop
/// may happen on any thread. A borrowed slice is not accepted, because the borrow could end during
/// a device's copy.
impl<T: Element> Blob<T> {
    /// Makes a blob that uses a vector's elements, without a copy. ([`into_vec`](slice::into_vec)
    /// converts a `Box<[T]>` to a vector at no cost.)
    ///
    /// ```
    /// use syncblob::Blob;
    /// # fn main() -> syncblob::Result<()> {
    /// let values = vec![1.0_f32, 2.0, 3.0, 4.0];
    /// let start = values.as_ptr();
    /// let blob = Blob::from_vec([2, 2], values)?;
    /// assert_eq!(blob.data()?.as_ptr(), start);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of [`from_slice`](Blob::from_slice).
    pub fn from_vec(shape: impl Into<Shape>, values: Vec<T>) -> Result<Self> {
        Self::in_context(&Context::host()).from_vec(shape, values)
    }

    /// Makes a blob that uses shared elements, such as an `Arc<[T]>`, without a copy. Other code
    /// may read the elements. Before the library's first write, the library makes a private copy.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use syncblob::Blob;
    /// # fn main() -> syncblob::Result<()> {
    /// let values: Arc<[f32]> = Arc::from([1.0, 2.0]);
    /// let mut blob = Blob::from_shared([2], Arc::clone(&values))?;
    /// assert_eq!(blob.data()?.as_ptr(), values.as_ptr());
    /// blob.data_mut()?[0] = 5.0;
    /// assert_eq!((blob.data()?, &*values), (&[5.0, 2.0][..], &[1.0, 2.0][..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of [`from_slice`](Blob::from_slice).
    pub fn from_shared<O>(shape: impl Into<Shape>, owner: O) -> Result<Self>
    where
        O: AsRef<[T]> + Send + Sync + 'static,
    {
        Self::in_context(&Context::host()).from_shared(shape, owner)
    }

    /// Makes a blob that uses bytes, such as `bytes::Bytes`, a mapped file or an `Arc<[u8]>`,
    /// without a copy. The bytes are elements in the machine's byte order. As in
    /// [`from_shared`](Blob::from_shared), the bytes are never written. To read a Caffe message,
    /// call `from_proto` instead.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for bytes that are not aligned for `T`, or
    /// whose number is not a multiple of the element size; errors of
    /// [`from_slice`](Blob::from_slice).
    pub fn from_ne_bytes<O>(shape: impl Into<Shape>, owner: O) -> Result<Self>
    where
        O: AsRef<[u8]> + Send + Sync + 'static,
    {
        Self::in_context(&Context::host()).from_ne_bytes(shape, owner)
    }

    /// Like [`from_ne_bytes`](Blob::from_ne_bytes), but bytes that are not aligned for `T` are
    /// copied.
    ///
    /// # Errors
    /// Errors of [`from_ne_bytes`](Blob::from_ne_bytes), except for misaligned bytes.
    pub fn from_ne_bytes_or_copy<O>(shape: impl Into<Shape>, owner: O) -> Result<Self>
    where
        O: AsRef<[u8]> + Send + Sync + 'static,
    {
        Self::in_context(&Context::host()).from_ne_bytes_or_copy(shape, owner)
    }

    /// Uses a vector as the memory of data or diff, without a copy. Releases this blob's share of
    /// the old memory. Other owners keep the memory. Elements beyond [`count`](Blob::count) are
    /// spare capacity.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for fewer than `count` elements; out of
    /// memory, a cap that is reached.
    #[doc(alias("set_cpu_data", "sb_blob_set_cpu"))]
    pub fn set(&mut self, part: Part, values: Vec<T>) -> Result<()> {
        let mut owner = Box::new(values);
        let values: *mut [T] = owner.as_mut_slice();
        lend(owner, |deleter, user| {
            // SAFETY: the deleter drops the vector, which has no other owner.
            unsafe { self.lend(part, values, 0, deleter, user) }
        })
    }

    /// Returns the data as a vector, and drops the diff. If the blob [was made of a
    /// vector](Blob::from_vec) and nothing else uses the vector, returns that vector. Otherwise
    /// copies the elements.
    ///
    /// ```
    /// use syncblob::{Blob, Part};
    /// # fn main() -> syncblob::Result<()> {
    /// let values = vec![1.0_f32, 2.0, 3.0];
    /// let start = values.as_ptr();
    /// let mut blob = Blob::from_vec([3], values)?;
    /// blob.scale(Part::Data, 2.0)?;
    /// let values = blob.into_vec()?;
    /// assert_eq!((values.as_ptr(), &*values), (start, &[2.0, 4.0, 6.0][..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of [`data`](Blob::data); out of memory.
    pub fn into_vec(self) -> Result<Vec<T>> {
        let (lent, count) = (self.data()?.as_ptr(), self.count());
        // SAFETY: the blob is live. Only `self` uses the blob, and no slice of it exists.
        let owner = unsafe {
            reclaim(|deleter| {
                get(|out, err| {
                    sys::sb_blob_reclaim_cpu(self.raw(), sys::SB_DATA, deleter, out, err)
                })
            })
        };
        match owner.map(|owner| owner.downcast::<Vec<T>>()) {
            Ok(Ok(mut values)) => {
                values.truncate(count);
                Ok(*values)
            }
            // SAFETY: the owner of the elements lives until the copy is made.
            Ok(Err(_owner)) => copied(unsafe { std::slice::from_raw_parts(lent, count) }),
            // The library owns the memory, or the memory has other users.
            Err(error) if error.kind() == ErrorKind::InvalidArgument => copied(self.data()?),
            Err(error) => Err(error),
        }
    }

    /// Uses elements, which other code may also read, as the memory of data or diff. See
    /// [`from_shared`](Blob::from_shared) and [`set`](Blob::set).
    ///
    /// # Errors
    /// Errors of [`set`](Blob::set).
    #[doc(alias("set_cpu_data", "sb_blob_set_cpu"))]
    pub fn set_shared<O>(&mut self, part: Part, owner: O) -> Result<()>
    where
        O: AsRef<[T]> + Send + Sync + 'static,
    {
        lend_shared(owner, |values: &[T], deleter, user| {
            // SAFETY: the elements live until the deleter drops their owner, and are not written.
            unsafe { self.lend(part, values, sys::SB_READ_ONLY, deleter, user) }
        })
    }

    /// # Safety
    /// The elements stay valid until the deleter runs. Unless the flags forbid writing, no other
    /// code uses the elements.
    unsafe fn lend(
        &mut self,
        part: Part,
        values: *const [T],
        flags: u32,
        deleter: sys::sb_deleter,
        user: *mut c_void,
    ) -> Result<()> {
        let (start, bytes) = (values.cast::<c_void>().cast_mut(), values.len() * size_of::<T>());
        // SAFETY: the caller fulfils the Safety section.
        check(|err| unsafe {
            sys::sb_blob_set_cpu(self.raw(), part.code(), start, bytes, flags, deleter, user, err)
        })
    }

    /// Uses the caller's device memory as the memory of data or diff: `len` elements at `ptr`.
    /// `owner` is dropped when the library no longer uses the memory.
    ///
    /// # Errors
    /// [`NoDevice`](ErrorKind::NoDevice); [`WrongDevice`](ErrorKind::WrongDevice) for memory that
    /// is not on the context's device; errors of [`set`](Blob::set).
    ///
    /// # Safety
    /// `ptr` points to `len` initialised elements on the device of the blob's context, which stay
    /// valid until `owner` is dropped. Until then no other code writes the memory and, unless
    /// `access` is [`ReadOnly`](Access::ReadOnly), no other code reads it.
    pub unsafe fn set_gpu<O>(
        &mut self,
        part: Part,
        ptr: *mut T,
        len: usize,
        access: Access,
        owner: O,
    ) -> Result<()>
    where
        O: Send + Sync + 'static,
    {
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| {
            let message = format!("{len} elements of {} exceed the address space", T::DTYPE);
            Error::new(ErrorKind::SizeOverflow, message)
        })?;
        lend(Box::new(owner), |deleter, user| {
            let (ptr, flags) = (ptr.cast(), access.flags());
            // SAFETY: the caller fulfils the Safety section.
            check(|err| unsafe {
                sys::sb_blob_set_gpu(self.raw(), part.code(), ptr, bytes, flags, deleter, user, err)
            })
        })
    }
}

fn copied<T: Element>(values: &[T]) -> Result<Vec<T>> {
    let mut copy = Vec::new();
    reserve(&mut copy, values.len())?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// An owner in a box: the owner's bytes stay in place when this value moves.
struct Boxed<O>(Box<O>);

impl<O: AsRef<[u8]>> AsRef<[u8]> for Boxed<O> {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// Returns the bytes as elements, or `None` if the bytes are not aligned.
fn elements_of<T: Element>(bytes: &[u8]) -> Result<Option<&[T]>> {
    if bytes.len() % size_of::<T>() != 0 {
        let message = format!("{} bytes are not a whole number of {}", bytes.len(), T::DTYPE);
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    if bytes.is_empty() {
        return Ok(Some(&[])); // an empty slice needs no alignment
    }
    if bytes.as_ptr().addr() % align_of::<T>() != 0 {
        return Ok(None);
    }
    // SAFETY: the bytes are aligned, their number is a multiple of the element size, and any bytes
    // are valid elements.
    Ok(Some(unsafe {
        std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>())
    }))
}

fn misaligned<T: Element>(bytes: &[u8]) -> Error {
    let message = format!("bytes at {:p} are not aligned for {}", bytes.as_ptr(), T::DTYPE);
    Error::new(ErrorKind::InvalidArgument, message)
}

/// Making blobs in a context.
impl<T: Element> BlobBuilder<'_, T> {
    /// Does the same as [`Blob::from_vec`] in the builder's context.
    ///
    /// # Errors
    /// Errors of [`from_slice`](Blob::from_slice).
    pub fn from_vec(self, shape: impl Into<Shape>, values: Vec<T>) -> Result<Blob<T>> {
        let mut blob = self.zeros(shape)?;
        blob.need_count(values.len())?;
        blob.set(Part::Data, values)?;
        Ok(blob)
    }

    /// Does the same as [`Blob::from_shared`] in the builder's context.
    ///
    /// # Errors
    /// Errors of [`from_slice`](Blob::from_slice).
    pub fn from_shared<O>(self, shape: impl Into<Shape>, owner: O) -> Result<Blob<T>>
    where
        O: AsRef<[T]> + Send + Sync + 'static,
    {
        let mut blob = self.zeros(shape)?;
        lend_shared(owner, |values: &[T], deleter, user| {
            blob.need_count(values.len())?;
            // SAFETY: the elements live until the deleter drops their owner, and are not written.
            unsafe { blob.lend(Part::Data, values, sys::SB_READ_ONLY, deleter, user) }
        })?;
        Ok(blob)
    }

    /// Does the same as [`Blob::from_ne_bytes`] in the builder's context.
    ///
    /// # Errors
    /// Errors of [`from_ne_bytes`](Blob::from_ne_bytes).
    pub fn from_ne_bytes<O>(self, shape: impl Into<Shape>, owner: O) -> Result<Blob<T>>
    where
        O: AsRef<[u8]> + Send + Sync + 'static,
    {
        let mut blob = self.zeros(shape)?;
        lend_shared(owner, |bytes: &[u8], deleter, user| {
            let values = elements_of::<T>(bytes)?.ok_or_else(|| misaligned::<T>(bytes))?;
            blob.need_count(values.len())?;
            // SAFETY: the elements live until the deleter drops their owner, and are not written.
            unsafe { blob.lend(Part::Data, values, sys::SB_READ_ONLY, deleter, user) }
        })?;
        Ok(blob)
    }

    /// Does the same as [`Blob::from_ne_bytes_or_copy`] in the builder's context.
    ///
    /// # Errors
    /// Errors of [`from_ne_bytes_or_copy`](Blob::from_ne_bytes_or_copy).
    pub fn from_ne_bytes_or_copy<O>(self, shape: impl Into<Shape>, owner: O) -> Result<Blob<T>>
    where
        O: AsRef<[u8]> + Send + Sync + 'static,
    {
        // Boxes the owner before the check, because the alignment of the bytes can depend on the
        // owner's address.
        let owner = Box::new(owner);
        let bytes = (*owner).as_ref();
        if elements_of::<T>(bytes)?.is_some() {
            return self.from_ne_bytes(shape, Boxed(owner));
        }
        let blob = self.zeros(shape)?;
        blob.need_count(bytes.len() / size_of::<T>())?;
        let elements = blob.unfilled()?;
        // SAFETY: the fresh memory has room for `bytes`, and any bytes are valid elements.
        unsafe { elements.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(blob)
    }
}
