use std::ffi::c_void;
use std::slice;

use syncblob_sys as sys;

use super::{Blob, Part};
use crate::ffi::get;
use crate::{Element, Error, ErrorKind, Head, MemoryHandle, Result, SyncedMemory};

/// Access to elements. A method that returns host memory first copies newer elements from the
/// device, and a method that returns a device pointer copies newer elements from the host.
impl<T: Element> Blob<T> {
    /// Returns the data on the host, for reading.
    ///
    /// # Errors
    /// Out of memory, a cap that is reached, a device that fails.
    #[doc(alias = "cpu_data")]
    #[inline]
    pub fn data(&self) -> Result<&[T]> {
        self.host(Part::Data)
    }

    /// Returns the diff on the host, for reading.
    ///
    /// # Errors
    /// Errors of [`data`](Blob::data).
    #[doc(alias = "cpu_diff")]
    #[inline]
    pub fn diff(&self) -> Result<&[T]> {
        self.host(Part::Diff)
    }

    /// Returns the data on the host, for writing; the [head](Head) moves to the host.
    ///
    /// # Errors
    /// [`Shared`](crate::ErrorKind::Shared) when the memory has another owner; errors of
    /// [`data`](Blob::data).
    #[doc(alias = "mutable_cpu_data")]
    #[inline]
    pub fn data_mut(&mut self) -> Result<&mut [T]> {
        self.host_mut(Part::Data)
    }

    /// Returns the diff on the host, for writing; see [`data_mut`](Blob::data_mut).
    ///
    /// # Errors
    /// Errors of [`data_mut`](Blob::data_mut).
    #[doc(alias = "mutable_cpu_diff")]
    #[inline]
    pub fn diff_mut(&mut self) -> Result<&mut [T]> {
        self.host_mut(Part::Diff)
    }

    /// Returns both data and diff on the host, for writing.
    ///
    /// ```
    /// use syncblob::Blob;
    /// # fn main() -> syncblob::Result<()> {
    /// let mut blob = Blob::<f32>::full([3], 2.0)?;
    /// let (data, diff) = blob.data_and_diff_mut()?;
    /// diff.copy_from_slice(data);
    /// # assert_eq!(blob.diff()?, [2.0; 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of [`data_mut`](Blob::data_mut), for data or diff;
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) if data and diff are the same memory.
    pub fn data_and_diff_mut(&mut self) -> Result<(&mut [T], &mut [T])> {
        let data = self.pointer_mut(Part::Data, sys::sb_blob_mutable_cpu)?;
        let diff = self.pointer_mut(Part::Diff, sys::sb_blob_mutable_cpu)?;
        let count = self.count();
        if data == diff && count > 0 {
            // Without `allow_shared_writes`, `pointer_mut` refuses a memory that is both data and
            // diff.
            let message = "data and diff are one memory";
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        // SAFETY: each slice is valid as in `host_mut`. Data and diff are different memories, so
        // the slices do not overlap.
        Ok(unsafe {
            (slice::from_raw_parts_mut(data, count), slice::from_raw_parts_mut(diff, count))
        })
    }

    /// Returns data or diff on the host, for writing even if the memory is shared.
    ///
    /// # Errors
    /// Errors of [`data`](Blob::data).
    ///
    /// # Safety
    /// While the slice lives, no thread uses the memory through another owner: neither by a call
    /// nor by a slice that exists already.
    pub unsafe fn shared_mut(&mut self, part: Part) -> Result<&mut [T]> {
        // SAFETY: the blob is live, and the caller promises that no other sharer uses the memory.
        let elements =
            get(|out, err| unsafe { sys::sb_blob_mutable_cpu(self.raw(), part.code(), out, err) })?;
        // SAFETY: as in `host_mut`, with the caller's promise instead of a single owner.
        Ok(unsafe { slice::from_raw_parts_mut(elements.cast(), self.count()) })
    }

    /// Returns a device pointer to the [`count`](Blob::count) elements of data or diff, for
    /// reading. The memory stays allocated until a call replaces, evicts or releases it, or the
    /// blob is dropped. The values at the pointer are current until the next call that writes on
    /// the host.
    ///
    /// # Errors
    /// [`NoDevice`](crate::ErrorKind::NoDevice) in a host-only context; out of memory,
    /// a device that fails.
    #[doc(alias("gpu_data", "gpu_diff"))]
    pub fn gpu_ptr(&self, part: Part) -> Result<*const T> {
        self.pointer(part, sys::sb_blob_gpu)
    }

    /// Returns a device pointer to data or diff, for writing; the [head](Head) moves to the device.
    /// You may write through the pointer until the next call that reads or writes the host side;
    /// after such a call, request the pointer again.
    ///
    /// # Errors
    /// [`Shared`](crate::ErrorKind::Shared); errors of [`gpu_ptr`](Blob::gpu_ptr).
    #[doc(alias("mutable_gpu_data", "mutable_gpu_diff"))]
    pub fn gpu_mut_ptr(&mut self, part: Part) -> Result<*mut T> {
        self.pointer_mut(part, sys::sb_blob_mutable_gpu)
    }

    pub(crate) fn host(&self, part: Part) -> Result<&[T]> {
        let elements = self.pointer(part, sys::sb_blob_cpu)?;
        // SAFETY: the host pointer is aligned, is not null, and points to at least `count` elements
        // that were filled with zeros or written. The pointer stays valid, and the elements stay
        // unchanged, while the blob is borrowed (see the crate's Safety section).
        Ok(unsafe { slice::from_raw_parts(elements, self.count()) })
    }

    pub(crate) fn host_mut(&mut self, part: Part) -> Result<&mut [T]> {
        let elements = self.pointer_mut(part, sys::sb_blob_mutable_cpu)?;
        // SAFETY: as in `host`. This blob is the memory's only owner and is mutably borrowed.
        Ok(unsafe { slice::from_raw_parts_mut(elements, self.count()) })
    }

    fn pointer(&self, part: Part, call: ConstAccess) -> Result<*const T> {
        // SAFETY: `call` is a C function of the library, and the blob is live.
        let elements = get(|out, err| unsafe { call(self.raw(), part.code(), out, err) })?;
        Ok(elements.cast())
    }

    pub(super) fn pointer_mut(&mut self, part: Part, call: MutAccess) -> Result<*mut T> {
        self.need_unique(part)?;
        // SAFETY: `call` is a C function of the library; the blob is live and mutably borrowed.
        let elements = get(|out, err| unsafe { call(self.raw(), part.code(), out, err) })?;
        Ok(elements.cast())
    }

    /// Returns where the newest bytes of data or diff are. Never waits.
    ///
    /// # Errors
    /// Out of memory, or a cap that is reached, when the memory's handle is allocated.
    pub fn head(&self, part: Part) -> Result<Head> {
        Ok(self.memory(part)?.head())
    }
}

/// Access to the memories of data and diff: their bytes, storage and queued copies.
impl<T: Element> Blob<T> {
    /// Returns a reference to the memory of data or diff. The reference is not an owner of the
    /// memory: it borrows the blob.
    ///
    /// # Errors
    /// Out of memory, or a cap that is reached, when the memory's handle is allocated.
    #[doc(alias("data", "diff", "SyncedMemory"))]
    pub fn memory(&self, part: Part) -> Result<&SyncedMemory> {
        let raw = self.raw_memory(part)?;
        // SAFETY: the memory lives until the blob replaces it, which needs `&mut self`.
        Ok(unsafe { SyncedMemory::from_ptr(raw) })
    }

    /// Returns a mutable reference to the memory of data or diff.
    ///
    /// ```
    /// use syncblob::{Blob, Context, Head, Part, Side};
    /// # fn main() -> syncblob::Result<()> {
    /// let context = Context::builder().device("sim:0").build()?;
    /// let mut blob = Blob::<f32>::in_context(&context).full([1000], 1.0)?;
    /// blob.gpu_ptr(Part::Data)?;
    /// blob.memory_mut(Part::Data)?.evict(Side::Host)?;
    /// assert_eq!(blob.head(Part::Data)?, Head::AtGpu);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of [`memory`](Blob::memory).
    pub fn memory_mut(&mut self, part: Part) -> Result<&mut SyncedMemory> {
        let raw = self.raw_memory(part)?;
        // SAFETY: as in `memory`; the blob is mutably borrowed.
        Ok(unsafe { SyncedMemory::from_ptr_mut(raw) })
    }

    /// Returns a handle that shares the memory of data or diff. The memory lives at least as long
    /// as the handle, and cannot be written while it has two owners.
    ///
    /// # Errors
    /// Errors of [`memory`](Blob::memory).
    pub fn handle(&self, part: Part) -> Result<MemoryHandle> {
        let memory = self.memory(part)?;
        self.note_share();
        Ok(memory.retain())
    }

    #[inline]
    fn raw_memory(&self, part: Part) -> Result<*mut sys::sb_mem> {
        // SAFETY: the blob is live; this call may run concurrently with const calls.
        get(|out, err| unsafe { sys::sb_blob_mutable_mem(self.raw(), part.code(), out, err) })
    }
}

pub(super) type ConstAccess = unsafe extern "C" fn(
    *const sys::sb_blob,
    sys::sb_part,
    *mut *const c_void,
    *mut sys::sb_error,
) -> sys::sb_status;

pub(super) type MutAccess = unsafe extern "C" fn(
    *mut sys::sb_blob,
    sys::sb_part,
    *mut *mut c_void,
    *mut sys::sb_error,
) -> sys::sb_status;
