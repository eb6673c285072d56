use std::alloc::GlobalAlloc;
use std::fmt;
use std::ptr::{self, NonNull};

use syncblob_sys as sys;

use super::{Context, Limits};
use crate::callbacks::{allocator_to_c, parallel_for_to_c, ParallelFor, Spread};
use crate::ffi::{c_text, get};
use crate::Result;

/// The options of a [`Context`].
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

// SAFETY: the allocator and the function are static and `Sync`.
unsafe impl Send for ContextBuilder {}
// SAFETY: as for `Send`.
unsafe impl Sync for ContextBuilder {}

impl ContextBuilder {
    /// Sets the device: `"cpu"` (no device, the default), a GPU such as `"cuda:0"`, the simulated
    /// device `"sim:0"`, or a device of a backend from [`load_backend`](crate::load_backend).
    pub fn device(mut self, name: impl Into<String>) -> Self {
        self.device = Some(name.into());
        self
    }

    /// Sets the bounds on one read of untrusted bytes.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Sets a hard cap on live host memory that is not page-locked. Allocations beyond the cap
    /// fail. 0 means no cap.
    pub fn max_host_bytes(mut self, bytes: usize) -> Self {
        self.max_host_bytes = bytes;
        self
    }

    /// Sets a hard cap on live device memory. 0 means no cap.
    pub fn max_device_bytes(mut self, bytes: usize) -> Self {
        self.max_device_bytes = bytes;
        self
    }

    /// Sets the maximum number of bytes of page-locked memory. Host memory beyond the maximum is
    /// not page-locked. 0 means 1 GiB.
    pub fn max_pinned_bytes(mut self, bytes: usize) -> Self {
        self.max_pinned_bytes = bytes;
        self
    }

    /// Sets the maximum number of bytes of freed host memory that is kept for reuse. 0 means 256
    /// MiB. The sum of cached memory and memory in use never exceeds the peak of memory in use.
    pub fn max_cache_bytes(mut self, bytes: usize) -> Self {
        self.max_cache_bytes = bytes;
        self
    }

    /// Sets whether freed host buffers are kept for reuse (default: true).
    pub fn host_cache(mut self, keep: bool) -> Self {
        self.set_flag(sys::SB_CONTEXT_NO_HOST_CACHE, !keep);
        self
    }

    /// Sets whether host memory may be page-locked (default: true).
    pub fn pinned(mut self, allow: bool) -> Self {
        self.set_flag(sys::SB_CONTEXT_NO_PINNED, !allow);
        self
    }

    /// Replaces the built-in allocator of host memory. The library calls the
    /// allocator on any thread. The allocator must not call this library. A panic of the allocator
    /// counts as a failed allocation.
    pub fn allocator<A: GlobalAlloc + Sync>(mut self, allocator: &'static A) -> Self {
        self.allocator = Some(allocator_to_c(allocator));
        self
    }

    /// Splits large operations over the caller's threads. By default the calling thread does all
    /// work. The calling thread runs the tasks that `spread` omits, so results do not depend on
    /// `spread`. `spread` must be static, because a context may outlive all its handles. Put a
    /// closure that owns a thread pool into a `LazyLock`, or leak it with [`Box::leak`].
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
    /// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a malformed device name.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported) for an unknown kind of device.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice) if there is no such device.
    /// - [`CapReached`](crate::ErrorKind::CapReached) when
    ///   [`max_host_bytes`](ContextBuilder::max_host_bytes) is less than the context's own memory.
    /// - [`DeviceFailure`](crate::ErrorKind::DeviceFailure),
    ///   [`DeviceLost`](crate::ErrorKind::DeviceLost) and [`Forked`](crate::ErrorKind::Forked) from
    ///   the device.
    /// - Out of memory.
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
        // SAFETY: `options` and the structs that it points to outlive the call, which copies them.
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
