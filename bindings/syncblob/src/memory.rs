use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomPinned;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::slice;

use syncblob_sys as sys;

use crate::ffi::{check, get};
use crate::owner::{lend, lend_shared};
use crate::{Access, Context, Element, Error, ErrorKind, Result, Stream};

/// Where the newest bytes of a memory are.
#[doc(alias = "SyncedHead")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Head {
    /// Nothing was written yet.
    #[doc(alias = "UNINITIALIZED")]
    Uninitialized,
    /// On the host.
    #[doc(alias = "HEAD_AT_CPU")]
    AtCpu,
    /// On the device.
    #[doc(alias = "HEAD_AT_GPU")]
    AtGpu,
    /// On both sides, or on one side while a copy to the other side is queued.
    #[doc(alias = "SYNCED")]
    Synced,
    /// Nowhere: the bytes were lost with the device, or by queued work that failed.
    Lost,
    /// A value that only a newer library defines, as its number in C.
    Other(i32),
}

impl Head {
    fn from_code(code: i32) -> Self {
        match code {
            sys::SB_HEAD_UNINITIALIZED => Self::Uninitialized,
            sys::SB_HEAD_AT_CPU => Self::AtCpu,
            sys::SB_HEAD_AT_GPU => Self::AtGpu,
            sys::SB_HEAD_SYNCED => Self::Synced,
            sys::SB_HEAD_LOST => Self::Lost,
            other => Self::Other(other),
        }
    }
}

/// Writes Caffe's name, such as `SYNCED`.
impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uninitialized => "UNINITIALIZED",
            Self::AtCpu => "HEAD_AT_CPU",
            Self::AtGpu => "HEAD_AT_GPU",
            Self::Synced => "SYNCED",
            Self::Lost => "LOST",
            Self::Other(_) => "UNKNOWN",
        })
    }
}

/// One of the two sides of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Host memory.
    Host,
    /// Memory of the context's device.
    Device,
}

impl Side {
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Host => sys::SB_SIDE_CPU,
            Self::Device => sys::SB_SIDE_GPU,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Device => "device",
        })
    }
}

/// The kind of storage of a side, independent of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Storage {
    /// No storage yet.
    None,
    /// The library's own memory.
    Owned,
    /// The library's own page-locked memory.
    Pinned,
    /// Memory that the caller owns, and that the library reads and writes.
    Borrowed,
    /// Memory that the caller owns, and that the library only reads.
    ReadOnly,
    /// A value that only a newer library defines, as its number in C.
    Other(i32),
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Owned => "owned",
            Self::Pinned => "page-locked",
            Self::Borrowed => "borrowed",
            Self::ReadOnly => "borrowed, read-only",
            Self::Other(_) => "unknown",
        })
    }
}

/// Caffe's `SyncedMemory`: one buffer that lives on the host, on the device of its [`Context`], or
/// both. The bytes are copied only when a call needs a side that is not current.
///
/// As with `str`, a program has only references to this type. [`Blob::memory`](crate::Blob::memory)
/// returns a reference that borrows the blob. A [`MemoryHandle`] is an owner of a memory.
///
/// Every method that writes takes `&mut self` and needs the memory to have one owner. If the memory
/// has more owners, the method returns [`ErrorKind::Shared`] and changes nothing.
#[doc(alias = "sb_mem")]
pub struct SyncedMemory {
    // Two owners may each have a `&mut` to the same object. Without this field the compiler could
    // assume that no other reference to the object exists.
    _pinned: PhantomPinned,
    // Represents the C object. The field has no size, so a Rust reference covers none of the C
    // object's bytes. The field is a slice, because code cannot move or swap an unsized value.
    _object: UnsafeCell<[()]>,
}

// SAFETY: the library keeps no state per thread.
unsafe impl Send for SyncedMemory {}
// SAFETY: `&self` methods make only calls that take a const memory and may run concurrently.
unsafe impl Sync for SyncedMemory {}

type ConstAccess = unsafe extern "C" fn(
    *const sys::sb_mem,
    *mut *const c_void,
    *mut sys::sb_error,
) -> sys::sb_status;

type MutAccess =
    unsafe extern "C" fn(*mut sys::sb_mem, *mut *mut c_void, *mut sys::sb_error) -> sys::sb_status;

/// The alignment that suits every element type, because a memory does not record its element type.
const ALIGNMENT: usize = align_of::<f64>();

impl SyncedMemory {
    /// # Safety
    /// `raw` is a memory that lives for `'a`. During `'a` this crate accesses the memory only
    /// through the reference's owner.
    pub(crate) unsafe fn from_ptr<'a>(raw: *mut sys::sb_mem) -> &'a Self {
        // SAFETY: the caller fulfils the Safety section. The type has no bytes.
        unsafe { &*Self::of_c(raw) }
    }

    /// # Safety
    /// The requirements of `from_ptr`.
    pub(crate) unsafe fn from_ptr_mut<'a>(raw: *mut sys::sb_mem) -> &'a mut Self {
        // SAFETY: the caller fulfils the Safety section. The type has no bytes, so the references
        // of two owners do not overlap.
        unsafe { &mut *Self::of_c(raw) }
    }

    fn of_c(raw: *mut sys::sb_mem) -> *mut Self {
        ptr::slice_from_raw_parts_mut(raw.cast::<()>(), 0) as *mut Self
    }

    /// Returns the C handle, for calls that add no owner.
    fn raw(&self) -> *mut sys::sb_mem {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// Returns the number of bytes.
    pub fn size(&self) -> usize {
        // SAFETY: the memory is live.
        unsafe { sys::sb_mem_size(self.raw()) }
    }

    /// Returns where the newest bytes are. Never waits.
    pub fn head(&self) -> Head {
        // SAFETY: the memory is live.
        Head::from_code(unsafe { sys::sb_mem_head(self.raw()) })
    }

    /// Returns the kind of storage of a side.
    pub fn storage(&self, side: Side) -> Storage {
        // SAFETY: the memory is live.
        match unsafe { sys::sb_mem_storage(self.raw(), side.code()) } {
            sys::SB_STORAGE_OWNED => Storage::Owned,
            sys::SB_STORAGE_PINNED => Storage::Pinned,
            sys::SB_STORAGE_BORROWED => Storage::Borrowed,
            sys::SB_STORAGE_BORROWED_READ_ONLY => Storage::ReadOnly,
            sys::SB_STORAGE_NONE => Storage::None,
            other => Storage::Other(other),
        }
    }

    /// Returns the context that the memory was made in.
    pub fn context(&self) -> Context {
        // SAFETY: the memory keeps its context alive.
        unsafe { Context::retain(sys::sb_mem_context(self.raw())) }
    }

    /// Adds an owner. Not public: programs call `Blob::handle`, which also records that the blob's
    /// memory is shared.
    pub(crate) fn retain(&self) -> MemoryHandle {
        // SAFETY: the memory is live.
        let raw = unsafe { sys::sb_mem_retain(self.raw()) };
        MemoryHandle { raw: NonNull::new(raw).expect("a live memory is not null") }
    }

    /// Returns whether the memory has one owner and so may be written.
    pub fn is_unique(&self) -> bool {
        // SAFETY: the memory is live.
        unsafe { sys::sb_mem_is_unique(self.raw()) != 0 }
    }

    fn need_unique(&mut self) -> Result<()> {
        if self.is_unique() {
            return Ok(());
        }
        let message = format!("a memory of {} bytes is shared and cannot be written", self.size());
        Err(Error::new(ErrorKind::Shared, message))
    }

    /// Returns the bytes on the host, for reading.
    ///
    /// # Errors
    /// Out of memory, a cap that is reached, a device that fails.
    #[doc(alias = "cpu_data")]
    pub fn data(&self) -> Result<&[u8]> {
        let bytes = self.read(sys::sb_mem_cpu)?;
        // SAFETY: the host pointer points to `size` bytes that were filled with zeros or written.
        // The bytes stay valid and unchanged while the memory is borrowed (see the crate's Safety).
        Ok(unsafe { slice::from_raw_parts(bytes, self.size()) })
    }

    /// Returns the bytes on the host, for writing. The [head](Head) moves to the host.
    ///
    /// # Errors
    /// [`Shared`](ErrorKind::Shared); errors of [`data`](SyncedMemory::data).
    #[doc(alias = "mutable_cpu_data")]
    pub fn data_mut(&mut self) -> Result<&mut [u8]> {
        let bytes = self.write(sys::sb_mem_mutable_cpu)?;
        // SAFETY: as in `data`. The memory has one owner, which is mutably borrowed.
        Ok(unsafe { slice::from_raw_parts_mut(bytes, self.size()) })
    }

    /// Replaces all bytes with a copy of `bytes`, without copying the old bytes to the host first.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) when the sizes differ; errors of
    /// [`data_mut`](SyncedMemory::data_mut).
    #[doc(alias = "sb_mem_overwrite_cpu")]
    pub fn overwrite(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() != self.size() {
            let message = format!("{} bytes for a memory of {}", bytes.len(), self.size());
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        let to = self.write(sys::sb_mem_overwrite_cpu)?;
        // SAFETY: `to` is valid for `size` bytes and not aliased.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Returns a device pointer through which work on any stream may read immediately.
    ///
    /// # Errors
    /// [`NoDevice`](ErrorKind::NoDevice); errors of [`data`](SyncedMemory::data).
    #[doc(alias = "gpu_data")]
    pub fn gpu_ptr(&self) -> Result<*const u8> {
        self.read(sys::sb_mem_gpu)
    }

    /// Returns a device pointer through which work on `stream` may read. The host does not wait.
    /// Later calls on the memory are ordered after the work that is queued on the stream. Several
    /// streams may use a memory at the same time.
    ///
    /// # Errors
    /// [`WrongDevice`](ErrorKind::WrongDevice): another context's stream; errors of `gpu_ptr`;
    /// [`Unsupported`](ErrorKind::Unsupported) for a stream that is being captured.
    pub fn gpu_ptr_on(&self, stream: Stream<'_>) -> Result<*const u8> {
        let stream = self.stream(stream)?;
        // SAFETY: the memory and the stream are live.
        let pointer = get(|out, err| unsafe { sys::sb_mem_gpu_on(self.raw(), stream, out, err) })?;
        Ok(pointer.cast())
    }

    /// Returns a device pointer to the bytes, for writing. The [head](Head) moves to the device.
    /// You may write through the pointer until the next call that reads or writes the host side.
    /// After such a call, request the pointer again.
    ///
    /// # Errors
    /// [`Shared`](ErrorKind::Shared); errors of [`gpu_ptr`](SyncedMemory::gpu_ptr).
    #[doc(alias = "mutable_gpu_data")]
    pub fn gpu_mut_ptr(&mut self) -> Result<*mut u8> {
        self.write(sys::sb_mem_mutable_gpu)
    }

    /// Returns a device pointer through which work on `stream` may write. See
    /// [`gpu_ptr_on`](SyncedMemory::gpu_ptr_on).
    ///
    /// # Errors
    /// Errors of [`gpu_ptr_on`](SyncedMemory::gpu_ptr_on), and [`Shared`](ErrorKind::Shared).
    pub fn gpu_mut_ptr_on(&mut self, stream: Stream<'_>) -> Result<*mut u8> {
        self.need_unique()?;
        let stream = self.stream(stream)?;
        // SAFETY: the memory and the stream are live, and the memory has one owner.
        let pointer =
            get(|out, err| unsafe { sys::sb_mem_mutable_gpu_on(self.raw(), stream, out, err) })?;
        Ok(pointer.cast())
    }

    /// Returns a device pointer for overwriting: the old bytes are not copied to the device first.
    /// Only work on `stream` may use the pointer. If `stream` is `None`, work on any stream may use
    /// the pointer.
    ///
    /// # Errors
    /// Errors of [`gpu_mut_ptr_on`](SyncedMemory::gpu_mut_ptr_on).
    ///
    /// # Safety
    /// The contents are unspecified. The caller writes every byte before any code reads the memory.
    #[doc(alias = "sb_mem_overwrite_gpu")]
    pub unsafe fn overwrite_gpu_ptr(&mut self, stream: Option<Stream<'_>>) -> Result<*mut u8> {
        let Some(stream) = stream else { return self.write(sys::sb_mem_overwrite_gpu) };
        self.need_unique()?;
        let stream = self.stream(stream)?;
        // SAFETY: the memory and the stream are live, and the memory has one owner.
        let pointer =
            get(|out, err| unsafe { sys::sb_mem_overwrite_gpu_on(self.raw(), stream, out, err) })?;
        Ok(pointer.cast())
    }

    /// Returns the handle of a stream that may be used with this memory.
    fn stream(&self, stream: Stream<'_>) -> Result<sys::sb_stream> {
        stream.for_use_in(&self.context())
    }

    fn read(&self, call: ConstAccess) -> Result<*const u8> {
        // SAFETY: `call` is a C function of the library, and the memory is live.
        let pointer = get(|out, err| unsafe { call(self.raw(), out, err) })?;
        Ok(pointer.cast())
    }

    fn write(&mut self, call: MutAccess) -> Result<*mut u8> {
        self.need_unique()?;
        // SAFETY: `call` is a C function of the library. The memory is live, has one owner and is
        // mutably borrowed.
        let pointer = get(|out, err| unsafe { call(self.raw(), out, err) })?;
        Ok(pointer.cast())
    }
}

/// Replacing, evicting and clearing the storage of a side.
impl SyncedMemory {
    /// Uses a vector as the host side, without a copy. The [head](Head) moves to the host. The
    /// library may write the vector, and drops it when the memory no longer uses it.
    ///
    /// # Errors
    /// [`Shared`](ErrorKind::Shared); [`InvalidArgument`](ErrorKind::InvalidArgument) when the
    /// vector's size in bytes is not [`size`](SyncedMemory::size), or the vector is not aligned to
    /// 8 bytes, as the largest element types need.
    #[doc(alias = "set_cpu_data")]
    pub fn set<T: Element>(&mut self, values: Vec<T>) -> Result<()> {
        self.need_unique()?;
        let mut owner = Box::new(values);
        let bytes = size_of_val(owner.as_slice());
        let start = aligned(owner.as_mut_ptr().cast(), bytes)?;
        lend(owner, |deleter, user| {
            // SAFETY: `start` is valid for `bytes` until the deleter drops its owner.
            check(|err| unsafe {
                sys::sb_mem_set_cpu(self.raw(), start.cast(), bytes, 0, deleter, user, err)
            })
        })
    }

    /// Uses the owner's bytes as the host side, without a copy. The library never writes the bytes:
    /// before its first write, the library copies the bytes to its own memory. The owner is dropped
    /// when the memory no longer uses the bytes.
    ///
    /// # Errors
    /// Errors of [`set`](SyncedMemory::set).
    pub fn set_shared<O>(&mut self, owner: O) -> Result<()>
    where
        O: AsRef<[u8]> + Send + Sync + 'static,
    {
        self.need_unique()?;
        lend_shared(owner, |bytes: &[u8], deleter, user| {
            let size = bytes.len();
            let start = aligned(bytes.as_ptr().cast_mut(), size)?;
            // SAFETY: the bytes are valid until the deleter drops their owner, and the flag forbids
            // writing.
            check(|err| unsafe {
                let flags = sys::SB_READ_ONLY;
                sys::sb_mem_set_cpu(self.raw(), start.cast(), size, flags, deleter, user, err)
            })
        })
    }

    /// Uses the caller's device memory as the device side. The [head](Head) moves to the device.
    /// `owner` is dropped when the library no longer uses the memory.
    ///
    /// # Errors
    /// [`Shared`](ErrorKind::Shared); [`NoDevice`](ErrorKind::NoDevice);
    /// [`WrongDevice`](ErrorKind::WrongDevice) for memory of another device;
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) when `bytes` is not
    /// [`size`](SyncedMemory::size).
    ///
    /// # Safety
    /// `ptr` points to `bytes` initialised bytes on the device of this memory's context, which
    /// stay valid until `owner` is dropped. Until then no other code writes the memory and, unless
    /// `access` is [`ReadOnly`](Access::ReadOnly), no other code reads it.
    #[doc(alias = "set_gpu_data")]
    pub unsafe fn set_gpu<O>(
        &mut self,
        ptr: *mut c_void,
        bytes: usize,
        access: Access,
        owner: O,
    ) -> Result<()>
    where
        O: Send + Sync + 'static,
    {
        self.need_unique()?;
        lend(Box::new(owner), |deleter, user| {
            let flags = access.flags();
            // SAFETY: the caller fulfils the Safety section.
            check(|err| unsafe {
                sys::sb_mem_set_gpu(self.raw(), ptr, bytes, flags, deleter, user, err)
            })
        })
    }

    /// Releases the storage of a side.
    ///
    /// # Errors
    /// [`Shared`](ErrorKind::Shared); [`InvalidArgument`](ErrorKind::InvalidArgument) when only
    /// this side has the newest bytes.
    #[doc(alias("sb_mem_evict_cpu", "sb_mem_evict_gpu"))]
    pub fn evict(&mut self, side: Side) -> Result<()> {
        self.need_unique()?;
        // SAFETY: the memory is live and has one owner, which is mutably borrowed.
        check(|err| unsafe {
            match side {
                Side::Host => sys::sb_mem_evict_cpu(self.raw(), err),
                Side::Device => sys::sb_mem_evict_gpu(self.raw(), err),
            }
        })
    }

    /// Sets all bytes to zero, on the side with the newest bytes.
    ///
    /// # Errors
    /// [`Shared`](ErrorKind::Shared); a device that fails.
    pub fn clear(&mut self) -> Result<()> {
        self.need_unique()?;
        // SAFETY: the memory is live and has one owner, which is mutably borrowed.
        check(|err| unsafe { sys::sb_mem_clear(self.raw(), err) })
    }
}

/// Returns the start of the caller's memory. Refuses memory that is not aligned for every element
/// type. Empty memory may start anywhere.
fn aligned(start: *mut u8, bytes: usize) -> Result<*mut u8> {
    if bytes == 0 {
        return Ok(ptr::without_provenance_mut(ALIGNMENT));
    }
    if start.addr() % ALIGNMENT == 0 {
        return Ok(start);
    }
    let message = format!("memory at {start:p} is not aligned to {ALIGNMENT} bytes");
    Err(Error::new(ErrorKind::InvalidArgument, message))
}

/// Queued copies: the methods return without waiting for the copy.
///
/// ```
/// use syncblob::{Blob, Context, Part};
///
/// # fn main() -> syncblob::Result<()> {
/// let context = Context::builder().device("sim:0").build()?;
/// let blob = Blob::<f32>::in_context(&context).from_slice([3], &[1.0, 2.0, 3.0])?;
/// let copy = blob.memory(Part::Data)?.push(context.stream()?)?;
/// // ... something else meanwhile ...
/// copy.wait()?;
/// # Ok(())
/// # }
/// ```
impl SyncedMemory {
    /// Queues a copy of the bytes from the host to the device.
    ///
    /// # Errors
    /// [`NoDevice`](ErrorKind::NoDevice); [`Uninitialized`](ErrorKind::Uninitialized) for memory
    /// never written; [`InvalidArgument`](ErrorKind::InvalidArgument) when the newest bytes are
    /// only on the device; errors of the stream, as in [`gpu_ptr_on`](SyncedMemory::gpu_ptr_on).
    #[doc(alias = "async_gpu_push")]
    pub fn push(&self, stream: Stream<'_>) -> Result<Pending<'_>> {
        self.queue(stream, sys::sb_mem_async_gpu_push)
    }

    /// Queues a copy of the bytes from the device to the host.
    ///
    /// # Errors
    /// Errors of [`push`](SyncedMemory::push), with the sides exchanged.
    #[doc(alias = "sb_mem_async_cpu_pull")]
    pub fn pull(&self, stream: Stream<'_>) -> Result<Pending<'_>> {
        self.queue(stream, sys::sb_mem_async_cpu_pull)
    }

    /// Queues a copy of the newest bytes to `side`, unless `side` already has them.
    ///
    /// # Errors
    /// Errors of [`data`](SyncedMemory::data) and [`gpu_ptr_on`](SyncedMemory::gpu_ptr_on).
    pub fn prefetch(&self, side: Side, stream: Stream<'_>) -> Result<Pending<'_>> {
        match side {
            Side::Host => self.queue(stream, sys::sb_mem_prefetch_cpu),
            Side::Device => self.queue(stream, sys::sb_mem_prefetch_gpu),
        }
    }

    fn queue(&self, stream: Stream<'_>, call: QueuedCall) -> Result<Pending<'_>> {
        let stream = self.stream(stream)?;
        // SAFETY: `call` is a C function of the library. Memory and stream are live.
        check(|err| unsafe { call(self.raw(), stream, err) })?;
        Ok(Pending { memory: self })
    }

    /// Waits for a queued copy.
    ///
    /// # Errors
    /// Errors of the copy. Afterwards, the head is on the side from which the bytes were copied. If
    /// the earlier work that wrote these bytes failed, the head is [`Lost`](Head::Lost).
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the memory is live.
        check(|err| unsafe { sys::sb_mem_synchronize(self.raw(), err) })
    }
}

type QueuedCall =
    unsafe extern "C" fn(*const sys::sb_mem, sys::sb_stream, *mut sys::sb_error) -> sys::sb_status;

/// A queued copy of a memory's bytes. Dropping a `Pending` waits for the copy.
///
/// Forgetting a `Pending` is safe: the library waits for the copy before it frees, writes or
/// exposes the memory.
#[must_use = "dropping a `Pending` waits at once"]
pub struct Pending<'m> {
    memory: &'m SyncedMemory,
}

impl Pending<'_> {
    /// Waits for the copy and returns its result.
    ///
    /// # Errors
    /// Errors of [`synchronize`](SyncedMemory::synchronize).
    pub fn wait(self) -> Result<()> {
        let memory = self.memory;
        std::mem::forget(self);
        memory.synchronize()
    }
}

impl Pending<'_> {
    /// Ends the borrow without a wait. The program may then use the memory during the copy, as in
    /// double buffering. The library waits for the copy before it writes, frees or exposes the
    /// memory. If the copy fails, the first call that waits for the bytes returns the failure.
    ///
    /// ```
    /// use syncblob::{Blob, Context, Part, Side};
    /// # fn main() -> syncblob::Result<()> {
    /// let context = Context::builder().device("sim:0").build()?;
    /// let stream = context.stream()?;
    /// let mut batches =
    ///     [1.0, 2.0].map(|x| Blob::<f32>::in_context(&context).full([100], x).unwrap());
    /// for batch in 0..6 {
    ///     let next = (batch + 1) % 2;
    ///     batches[next].memory(Part::Data)?.prefetch(Side::Device, stream)?.detach();
    ///     batches[batch % 2].scale_on(Part::Data, 0.5, stream)?;
    /// }
    /// assert_eq!(batches[0].data()?[0], 0.125);
    /// # Ok(())
    /// # }
    /// ```
    pub fn detach(self) {
        std::mem::forget(self);
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        // Ignores a failure: the next call that needs this side of the memory returns the failure.
        let _ = self.memory.synchronize();
    }
}

impl fmt::Debug for Pending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("memory", &self.memory).finish()
    }
}

/// Writes size, head and storage, without a copy or a wait.
impl fmt::Debug for SyncedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncedMemory")
            .field("size", &self.size())
            .field("head", &self.head())
            .field("host", &self.storage(Side::Host))
            .field("device", &self.storage(Side::Device))
            .finish()
    }
}

/// One owner of a [`SyncedMemory`].
///
/// ```
/// use syncblob::{Blob, ErrorKind, Part};
///
/// # fn main() -> syncblob::Result<()> {
/// let mut blob = Blob::<f32>::full([2], 1.0)?;
/// let handle = blob.handle(Part::Data)?;
/// assert_eq!(blob.data_mut().unwrap_err().kind(), ErrorKind::Shared);
/// drop(blob);
/// assert_eq!(handle.data()?, [1.0_f32, 1.0].map(f32::to_ne_bytes).as_flattened());
/// # Ok(())
/// # }
/// ```
pub struct MemoryHandle {
    raw: NonNull<sys::sb_mem>,
}

// SAFETY: as for `SyncedMemory`. Owners are counted atomically.
unsafe impl Send for MemoryHandle {}
// SAFETY: as for `SyncedMemory`.
unsafe impl Sync for MemoryHandle {}

impl Context {
    /// Makes a memory of zeros in the context. The first use allocates the bytes.
    ///
    /// # Errors
    /// [`SizeOverflow`](ErrorKind::SizeOverflow) above `isize::MAX` bytes; out of memory, a cap
    /// that is reached.
    #[doc(alias = "sb_mem_create")]
    pub fn memory(&self, bytes: usize) -> Result<MemoryHandle> {
        // SAFETY: the context is live. The memory retains the context.
        let raw = get(|out, err| unsafe { sys::sb_mem_create(self.as_ptr(), bytes, out, err) })?;
        let raw = NonNull::new(raw).expect("the library returned neither a memory nor an error");
        Ok(MemoryHandle { raw })
    }
}

impl MemoryHandle {
    /// Makes a memory of zeros in the built-in context. See [`Context::memory`].
    ///
    /// # Errors
    /// [`SizeOverflow`](ErrorKind::SizeOverflow) above `isize::MAX` bytes.
    #[doc(alias = "sb_mem_create")]
    pub fn new(bytes: usize) -> Result<Self> {
        Context::host().memory(bytes)
    }

    /// Makes an owner of a memory from the reference that C code owns.
    ///
    /// # Safety
    /// `raw` is a live memory to which the caller owns a reference. Other owners in C code must
    /// obey this crate's rule: only the sole owner of a memory writes the memory.
    pub unsafe fn from_raw(raw: NonNull<sys::sb_mem>) -> Self {
        Self { raw }
    }

    /// Returns the C handle, for code that also calls the C library. The handle lives as long as
    /// `self`. C calls on the handle must follow the rules of the crate's Safety section.
    pub fn as_ptr(&self) -> *mut sys::sb_mem {
        self.raw.as_ptr()
    }

    /// Passes the reference to C code, which must release it with `sb_mem_release`.
    pub fn into_raw(self) -> NonNull<sys::sb_mem> {
        ManuallyDrop::new(self).raw
    }
}

impl Deref for MemoryHandle {
    type Target = SyncedMemory;

    fn deref(&self) -> &SyncedMemory {
        // SAFETY: `self` is an owner of the memory, and is borrowed.
        unsafe { SyncedMemory::from_ptr(self.raw.as_ptr()) }
    }
}

impl DerefMut for MemoryHandle {
    fn deref_mut(&mut self) -> &mut SyncedMemory {
        // SAFETY: `self` is an owner of the memory, and is mutably borrowed.
        unsafe { SyncedMemory::from_ptr_mut(self.raw.as_ptr()) }
    }
}

/// Makes another owner of the same memory. While the memory has two owners, it cannot be written.
impl Clone for MemoryHandle {
    fn clone(&self) -> Self {
        self.retain()
    }
}

impl Drop for MemoryHandle {
    fn drop(&mut self) {
        // SAFETY: releases the reference that `self` owns.
        unsafe { sys::sb_mem_release(self.raw.as_ptr()) }
    }
}

impl fmt::Debug for MemoryHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
