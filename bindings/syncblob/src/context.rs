use std::alloc::GlobalAlloc;
use std::ffi::CStr;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use syncblob_sys as sys;

use crate::callbacks::{allocator_to_c, parallel_for_to_c, ParallelFor, Spread};
use crate::ffi::{c_text, check, get};
use crate::sim::Sim;
use crate::{Error, ErrorKind, Result, Shape, Stream};

/// Where memory comes from: the allocator's caps, the limits for bytes from
/// strangers, the caches and at most one device.
///
/// Cheap to clone; clones are the same context. All that is made from a context
/// keeps it alive.
pub struct Context {
    /// None: the built-in host-only one.
    raw: Option<NonNull<sys::sb_context>>,
}

// SAFETY: a context is reference counted atomically and may be shared between
// threads; the library locks what it changes inside.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// The built-in context: the host alone, default limits. It always exists.
    pub const fn host() -> Self {
        Self { raw: None }
    }

    /// A context with choices.
    pub fn builder() -> ContextBuilder {
        ContextBuilder::default()
    }

    /// Takes over a share that C code has; NULL is the built-in context.
    ///
    /// # Safety
    /// `raw` is NULL or a live context, of which the caller has a share.
    pub unsafe fn from_raw(raw: *mut sys::sb_context) -> Self {
        Self { raw: NonNull::new(raw) }
    }

    /// Gives the share to C code, which is to end it by `sb_context_release`.
    pub fn into_raw(self) -> *mut sys::sb_context {
        ManuallyDrop::new(self).as_ptr()
    }

    /// Adds an owner to a context that the library lends.
    ///
    /// # Safety
    /// `raw` is NULL or a live context.
    pub(crate) unsafe fn retain(raw: *mut sys::sb_context) -> Self {
        // SAFETY: the caller's promise.
        let raw = unsafe { sys::sb_context_retain(raw) };
        Self { raw: NonNull::new(raw) }
    }

    /// The C handle, for code that calls the C library too; null for the
    /// built-in context. Lives as long as `self`.
    pub fn as_ptr(&self) -> *mut sys::sb_context {
        self.raw.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    /// `"cpu"`, or the device's name, such as `"sim:0"`.
    pub fn device(&self) -> &str {
        // SAFETY: the text lives as long as the context.
        let name = unsafe { CStr::from_ptr(sys::sb_context_device(self.as_ptr())) };
        name.to_str().unwrap_or("?")
    }

    /// Whether there is a device beside the host.
    pub fn has_device(&self) -> bool {
        // SAFETY: NULL and live contexts are allowed.
        unsafe { sys::sb_context_has_device(self.as_ptr()) != 0 }
    }

    /// Whether the device can be used.
    ///
    /// # Errors
    /// [`NoDevice`](crate::ErrorKind::NoDevice) in a host-only context,
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost),
    /// [`Forked`](crate::ErrorKind::Forked).
    pub fn device_status(&self) -> Result<()> {
        // SAFETY: NULL and live contexts are allowed.
        match unsafe { sys::sb_context_device_status(self.as_ptr()) } {
            sys::SB_OK => Ok(()),
            code => Err(Error::from_code(code)),
        }
    }

    /// The stream that the library's own work is queued on.
    ///
    /// # Errors
    /// [`NoDevice`](crate::ErrorKind::NoDevice);
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a device without streams.
    pub fn stream(&self) -> Result<Stream<'_>> {
        // SAFETY: NULL and live contexts are allowed.
        let raw = get(|out, err| unsafe { sys::sb_context_stream(self.as_ptr(), out, err) })?;
        // SAFETY: the stream lives as long as the context, which the memories
        // that it is used with keep alive.
        Ok(unsafe { Stream::of(self, raw) })
    }

    /// Waits for the work on a stream that this context's memories depend on,
    /// and drops it from their users: to be called before it is destroyed.
    ///
    /// # Errors
    /// [`NoDevice`](crate::ErrorKind::NoDevice); a device that fails;
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost): the stream is forgotten all the same.
    pub fn forget_stream(&self, stream: Stream<'_>) -> Result<()> {
        // SAFETY: NULL and live contexts are allowed; the stream is live.
        check(|err| unsafe {
            sys::sb_context_forget_stream(self.as_ptr(), stream.as_raw().cast(), err)
        })
    }

    /// The simulated device, where the device is one.
    pub fn sim(&self) -> Option<Sim<'_>> {
        self.device().starts_with("sim:").then(|| Sim::new(self))
    }

    /// Bytes and copies so far.
    pub fn stats(&self) -> Result<Stats> {
        let mut raw =
            sys::sb_stats { struct_size: size_of::<sys::sb_stats>(), ..Default::default() };
        // SAFETY: `raw` says its size; the context is live.
        check(|err| unsafe { sys::sb_context_stats(self.as_ptr(), &mut raw, err) })?;
        Ok(Stats::from_c(&raw))
    }

    /// Waits until the library's work on the device is done, and gives back what is in
    /// quarantine and over by then.
    ///
    /// # Errors
    /// A device that fails.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: NULL and live contexts are allowed.
        check(|err| unsafe { sys::sb_context_synchronize(self.as_ptr(), err) })
    }

    /// Waits as [`synchronize`](Context::synchronize) does and gives this
    /// handle up, telling what dropping it would not.
    ///
    /// # Errors
    /// A device that fails.
    pub fn close(self) -> Result<()> {
        self.synchronize()
    }

    /// Gives cached memory back, the device's too, and what is in quarantine and over by now.
    pub fn trim(&self) {
        // SAFETY: NULL and live contexts are allowed.
        unsafe { sys::sb_context_trim(self.as_ptr()) }
    }
}

impl Clone for Context {
    fn clone(&self) -> Self {
        // SAFETY: the context is live.
        unsafe { Self::retain(self.as_ptr()) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: gives back the one owner that `self` is.
        unsafe { sys::sb_context_release(self.as_ptr()) }
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::host()
    }
}

/// Two are equal when they are the same context.
impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Context {}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("device", &self.device()).finish_non_exhaustive()
    }
}

/// Chooses what a [`Context`] is made of.
///
/// ```
/// use syncblob::{Blob, Context, ErrorKind};
///
/// # fn main() -> syncblob::Result<()> {
/// let small = Context::builder().max_host_bytes(1 << 20).build()?;
/// let blob = Blob::<f32>::in_context(&small).zeros([1 << 20])?; // nothing allocated yet
/// assert_eq!(blob.data().unwrap_err().kind(), ErrorKind::CapReached);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
#[must_use = "a builder makes nothing until `build`"]
pub struct ContextBuilder {
    device: Option<String>,
    allocator: Option<sys::sb_allocator>,
    parallel_for: Option<Spread>,
    limits: Option<Limits>,
    flags: u32,
    max_host_bytes: usize,
    max_device_bytes: usize,
    max_pinned_bytes: usize,
    max_cache_bytes: usize,
}

// SAFETY: the allocator and the function that it holds are static ones that threads may share.
unsafe impl Send for ContextBuilder {}
// SAFETY: as above.
unsafe impl Sync for ContextBuilder {}

impl ContextBuilder {
    /// The device: `"cpu"` (none beside the host, the default), `"cuda:0"` and so
    /// on, or the simulated `"sim:0"`.
    pub fn device(mut self, name: impl Into<String>) -> Self {
        self.device = Some(name.into());
        self
    }

    /// What one read of untrusted bytes may ask for.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// A hard cap on live host memory; above it allocations fail. 0: none.
    pub fn max_host_bytes(mut self, bytes: usize) -> Self {
        self.max_host_bytes = bytes;
        self
    }

    /// A hard cap on live device memory. 0: none.
    pub fn max_device_bytes(mut self, bytes: usize) -> Self {
        self.max_device_bytes = bytes;
        self
    }

    /// Page-locked memory at most; above it host memory is ordinary. 0: 1 GiB.
    pub fn max_pinned_bytes(mut self, bytes: usize) -> Self {
        self.max_pinned_bytes = bytes;
        self
    }

    /// Freed host memory that is kept for reuse, at most. 0: 256 MiB. Together with the memory in
    /// use it is never more than was once in use.
    pub fn max_cache_bytes(mut self, bytes: usize) -> Self {
        self.max_cache_bytes = bytes;
        self
    }

    /// Whether freed host buffers are kept for reuse (they are by default).
    pub fn host_cache(mut self, keep: bool) -> Self {
        self.set_flag(sys::SB_CONTEXT_NO_HOST_CACHE, !keep);
        self
    }

    /// Whether host memory may be page-locked (it may by default).
    pub fn pinned(mut self, allow: bool) -> Self {
        self.set_flag(sys::SB_CONTEXT_NO_PINNED, !allow);
        self
    }

    /// Where host memory comes from, instead of the built-in allocator. It is
    /// called on any thread, and must not call this library. A panic in it
    /// counts as a failure.
    pub fn allocator<A: GlobalAlloc + Sync>(mut self, allocator: &'static A) -> Self {
        self.allocator = Some(allocator_to_c(allocator));
        self
    }

    /// Spreads large operations over the caller's threads; without it, the
    /// calling thread does it all. Results do not depend on it. What the
    /// function leaves undone, the calling thread does. It is static, because a context
    /// may outlive every handle of it; a closure that owns a thread pool may be a
    /// `LazyLock`'s, or leaked by [`Box::leak`].
    ///
    /// ```
    /// use syncblob::{Blob, Context, Part};
    ///
    /// # fn main() -> syncblob::Result<()> {
    /// let context = Context::builder()
    ///     .parallel_for(&|tasks, task| {
    ///         std::thread::scope(|scope| {
    ///             for _ in 0..tasks {
    ///                 scope.spawn(task);
    ///             }
    ///         })
    ///     })
    ///     .build()?;
    /// let blob = Blob::<f32>::in_context(&context).from_fn([1 << 20], |_| 1.0)?;
    /// assert_eq!(blob.asum(Part::Data)?, f64::from(1 << 20));
    /// # Ok(())
    /// # }
    /// ```
    pub fn parallel_for<F: ParallelFor>(mut self, spread: &'static F) -> Self {
        self.parallel_for = Some(parallel_for_to_c(spread));
        self
    }

    /// Spreads large operations over rayon's current thread pool.
    #[cfg(feature = "rayon")]
    pub fn rayon(self) -> Self {
        self.parallel_for(&crate::callbacks::rayon_for)
    }

    fn set_flag(&mut self, flag: u32, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }

    /// Makes the context.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a device name of
    /// another form or with a NUL byte, [`Unsupported`](crate::ErrorKind::Unsupported)
    /// for one of another kind, [`NoDevice`](crate::ErrorKind::NoDevice) where there is
    /// none of that name; [`CapReached`](crate::ErrorKind::CapReached) when
    /// [`max_host_bytes`](ContextBuilder::max_host_bytes) has no room for the context
    /// itself; [`DeviceFailure`](crate::ErrorKind::DeviceFailure),
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost) and
    /// [`Forked`](crate::ErrorKind::Forked) of a device; out of memory.
    pub fn build(self) -> Result<Context> {
        let device = self.device.as_deref().map(|name| c_text("the device name", name.as_bytes()));
        let device = device.transpose()?;
        let limits = self.limits.map(Limits::to_c).transpose()?;
        let mut options = sys::sb_context_options {
            struct_size: size_of::<sys::sb_context_options>(),
            ..Default::default()
        };
        options.flags = self.flags;
        options.device = device.as_ref().map_or(ptr::null(), |name| name.as_ptr());
        if let Some(allocator) = self.allocator {
            options.allocator = allocator;
        }
        if let Some(spread) = self.parallel_for {
            (options.parallel_for, options.parallel_for_user) = spread;
        }
        options.limits = limits.as_ref().map_or(ptr::null(), ptr::from_ref);
        options.max_host_bytes = self.max_host_bytes;
        options.max_device_bytes = self.max_device_bytes;
        options.max_pinned_bytes = self.max_pinned_bytes;
        options.max_cache_bytes = self.max_cache_bytes;
        // SAFETY: `options` and what it points to live through the call, which
        // copies what it keeps.
        let raw = get(|out, err| unsafe { sys::sb_context_create(&options, out, err) })?;
        Ok(Context { raw: NonNull::new(raw) })
    }
}

impl fmt::Debug for ContextBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextBuilder")
            .field("device", &self.device)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Bounds on what one read of untrusted bytes may ask for. A bound of 0 is the
/// default, which each method names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Limits {
    max_memory: usize,
    max_layers: usize,
    max_blobs: usize,
    max_name_bytes: usize,
    max_axes: usize,
}

impl Limits {
    /// The defaults.
    ///
    /// ```
    /// use syncblob::Limits;
    /// let limits = Limits::new().max_memory(1).max_layers(2).max_blobs(3);
    /// let limits = limits.max_name_bytes(4).max_axes(5);
    /// assert_eq!([limits.memory(), limits.layers(), limits.blobs()], [1, 2, 3]);
    /// assert_eq!([limits.name_bytes(), limits.axes()], [4, 5]);
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes that one read may hold live, index and payload together, and what the
    /// blob has room for where all of that has to come to the host; with the objects
    /// that the library makes for them, and the up to an eighth by which page-locked
    /// memory is rounded up. Default: no bound but the context's cap.
    #[must_use]
    pub fn max_memory(mut self, bytes: usize) -> Self {
        self.max_memory = bytes;
        self
    }

    /// Layers of a model. Default: 100,000.
    #[must_use]
    pub fn max_layers(mut self, layers: usize) -> Self {
        self.max_layers = layers;
        self
    }

    /// Blobs of a model. Default: 1,000,000.
    #[must_use]
    pub fn max_blobs(mut self, blobs: usize) -> Self {
        self.max_blobs = blobs;
        self
    }

    /// Bytes of one name or type. Default: 65,536.
    #[must_use]
    pub fn max_name_bytes(mut self, bytes: usize) -> Self {
        self.max_name_bytes = bytes;
        self
    }

    /// Axes of a blob. Default, and the most: 32.
    #[must_use]
    pub fn max_axes(mut self, axes: usize) -> Self {
        self.max_axes = axes;
        self
    }

    /// What [`max_memory`](Limits::max_memory) set.
    pub fn memory(&self) -> usize {
        self.max_memory
    }

    /// What [`max_layers`](Limits::max_layers) set.
    pub fn layers(&self) -> usize {
        self.max_layers
    }

    /// What [`max_blobs`](Limits::max_blobs) set.
    pub fn blobs(&self) -> usize {
        self.max_blobs
    }

    /// What [`max_name_bytes`](Limits::max_name_bytes) set.
    pub fn name_bytes(&self) -> usize {
        self.max_name_bytes
    }

    /// What [`max_axes`](Limits::max_axes) set.
    pub fn axes(&self) -> usize {
        self.max_axes
    }

    pub(crate) fn to_c(self) -> Result<sys::sb_limits> {
        // Other limits bound nothing where they are beyond what C counts to.
        let max_axes = i64::try_from(self.max_axes).map_err(|_| {
            let message = format!("max_axes is {}, more than {}", self.max_axes, Shape::MAX_AXES);
            Error::new(ErrorKind::InvalidArgument, message)
        })?;
        Ok(sys::sb_limits {
            struct_size: size_of::<sys::sb_limits>(),
            max_memory: self.max_memory,
            max_layers: crate::ffi::to_i64(self.max_layers),
            max_blobs: crate::ffi::to_i64(self.max_blobs),
            max_name_bytes: self.max_name_bytes,
            max_axes,
        })
    }
}

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a [`Context`] has counted so far.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Stats {
            fn from_c(raw: &sys::sb_stats) -> Self {
                Self { $($name: raw.$name,)* }
            }
        }
    };
}

stats! {
    /// Live ordinary host memory, the library's own handles included.
    host_bytes,
    /// The most that `host_bytes` has been.
    host_peak,
    /// Live page-locked host memory.
    pinned_bytes,
    /// The most that `pinned_bytes` has been.
    pinned_peak,
    /// Live device memory.
    device_bytes,
    /// The most that `device_bytes` has been.
    device_peak,
    /// Callers' memory in use, either side.
    borrowed_bytes,
    /// Host memory kept for reuse; also in `host_bytes` or `pinned_bytes`.
    cached_bytes,
    /// Copies from the host to the device.
    uploads,
    /// Their bytes.
    upload_bytes,
    /// Copies from the device to the host.
    downloads,
    /// Their bytes.
    download_bytes,
    /// Copies within the device.
    device_copies,
    /// Their bytes.
    device_copy_bytes,
    /// Copies of whole buffers within the host.
    host_copies,
    /// Their bytes.
    host_copy_bytes,
    /// Given up, but kept until the device says that its work on them is over, or until its
    /// driver takes them back; also in the live figures above.
    quarantined_bytes,
    /// Of the whole process: what contexts that have ended keep in quarantine, and what no
    /// driver can be given back any more.
    leaked_bytes,
}
