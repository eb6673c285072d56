mod builder;
mod limits;
mod stats;

use std::ffi::CStr;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use syncblob_sys as sys;

pub use builder::ContextBuilder;
pub use limits::Limits;
pub use stats::Stats;

use crate::ffi::{check, get};
#[cfg(feature = "testing")]
use crate::sim::Sim;
use crate::{Error, Result, Stream};

/// A context owns memory caps, limits for reads of untrusted bytes, caches and at most one device.
///
/// A clone is cheap and refers to the same context. Every object made in a context keeps the
/// context alive.
pub struct Context {
    /// `None`: the built-in host-only context.
    raw: Option<NonNull<sys::sb_context>>,
}

// SAFETY: a context is reference counted atomically and may be shared between threads; the library
// locks its state.
unsafe impl Send for Context {}
// SAFETY: as for `Send`.
unsafe impl Sync for Context {}

impl Context {
    /// Returns the built-in context, which has no device, has default limits and always exists.
    pub const fn host() -> Self {
        Self { raw: None }
    }

    /// Returns a builder for a context with options.
    pub fn builder() -> ContextBuilder {
        ContextBuilder::default()
    }

    /// Takes over one reference to a context from C code; NULL is the built-in context.
    ///
    /// # Safety
    /// `raw` is NULL, or a live context to which the caller owns a reference.
    pub unsafe fn from_raw(raw: *mut sys::sb_context) -> Self {
        Self { raw: NonNull::new(raw) }
    }

    /// Passes the reference to C code, which must release it with `sb_context_release`.
    pub fn into_raw(self) -> *mut sys::sb_context {
        ManuallyDrop::new(self).as_ptr()
    }

    /// Adds a reference to a context.
    ///
    /// # Safety
    /// `raw` is NULL or a live context.
    pub(crate) unsafe fn retain(raw: *mut sys::sb_context) -> Self {
        // SAFETY: the caller fulfils the Safety section.
        let raw = unsafe { sys::sb_context_retain(raw) };
        Self { raw: NonNull::new(raw) }
    }

    /// Returns the C handle, for code that also calls the C library; null for the built-in context.
    /// The handle lives as long as `self`.
    pub fn as_ptr(&self) -> *mut sys::sb_context {
        self.raw.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    /// Returns the device's name, such as `"sim:0"`; `"cpu"` if there is no device.
    pub fn device(&self) -> &str {
        // SAFETY: the text lives as long as the context.
        let name = unsafe { CStr::from_ptr(sys::sb_context_device(self.as_ptr())) };
        name.to_str().unwrap_or("?")
    }

    /// Returns whether the context has a device.
    pub fn has_device(&self) -> bool {
        // SAFETY: the function accepts NULL and live contexts.
        unsafe { sys::sb_context_device_status(self.as_ptr()) != sys::SB_ERR_NO_DEVICE }
    }

    /// Checks whether the device can be used.
    ///
    /// # Errors
    /// [`NoDevice`](crate::ErrorKind::NoDevice) in a host-only context,
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost),
    /// [`Forked`](crate::ErrorKind::Forked).
    pub fn device_status(&self) -> Result<()> {
        // SAFETY: the function accepts NULL and live contexts.
        match unsafe { sys::sb_context_device_status(self.as_ptr()) } {
            sys::SB_OK => Ok(()),
            code => Err(Error::from_code(code)),
        }
    }

    /// Returns the stream on which the library queues its own work.
    ///
    /// # Errors
    /// [`NoDevice`](crate::ErrorKind::NoDevice);
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a device without streams.
    pub fn stream(&self) -> Result<Stream<'_>> {
        // SAFETY: the function accepts NULL and live contexts.
        let raw = get(|out, err| unsafe { sys::sb_context_stream(self.as_ptr(), out, err) })?;
        // SAFETY: the stream lives as long as the context, and every memory that uses the stream
        // keeps the context alive.
        Ok(unsafe { Stream::of(self, raw) })
    }

    /// Waits for the work on a stream, if memories of this context depend on this work. Afterwards
    /// no memory of the context refers to the stream. Call this method before you destroy the
    /// stream.
    ///
    /// # Errors
    /// [`NoDevice`](crate::ErrorKind::NoDevice); a device that fails;
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost): the stream is forgotten despite the error.
    pub fn forget_stream(&self, stream: Stream<'_>) -> Result<()> {
        // SAFETY: the function accepts NULL and live contexts; the stream is live.
        check(|err| unsafe {
            sys::sb_context_forget_stream(self.as_ptr(), stream.as_raw().cast(), err)
        })
    }

    /// Returns a handle that controls the simulated device, if the context has one.
    #[cfg(feature = "testing")]
    pub fn sim(&self) -> Option<Sim<'_>> {
        self.device().starts_with("sim:").then(|| Sim::new(self))
    }

    /// Returns statistics: bytes in use, and copies so far.
    pub fn stats(&self) -> Result<Stats> {
        let mut raw =
            sys::sb_stats { struct_size: size_of::<sys::sb_stats>(), ..Default::default() };
        // SAFETY: `raw` contains its size; the context is live.
        check(|err| unsafe { sys::sb_context_stats(self.as_ptr(), &mut raw, err) })?;
        Ok(Stats::from_c(&raw))
    }

    /// Waits until the library's work on the device has ended, and frees quarantined storage that
    /// the device no longer uses.
    ///
    /// # Errors
    /// A device that fails.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the function accepts NULL and live contexts.
        check(|err| unsafe { sys::sb_context_synchronize(self.as_ptr(), err) })
    }

    /// Waits as [`synchronize`](Context::synchronize) does, and drops this handle. This method
    /// returns a failure of the wait, which a drop would ignore.
    ///
    /// # Errors
    /// A device that fails.
    pub fn close(self) -> Result<()> {
        self.synchronize()
    }

    /// Frees the caches of host and device memory, and quarantined storage that the device no
    /// longer uses.
    pub fn trim(&self) {
        // SAFETY: the function accepts NULL and live contexts.
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
        // SAFETY: releases the reference that `self` owns.
        unsafe { sys::sb_context_release(self.as_ptr()) }
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::host()
    }
}

/// Two handles are equal if they refer to the same context.
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
