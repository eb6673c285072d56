use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use syncblob_sys as sys;

/// A stream of a device: work queued on it runs in order.
///
/// A context lends its own by [`Context::stream`](crate::Context::stream), the
/// simulated device makes some by [`Sim::stream`](crate::sim::Sim::stream);
/// one of CUDA's comes in by [`from_raw`](Stream::from_raw).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Stream<'a> {
    raw: sys::sb_stream,
    alive: PhantomData<&'a ()>,
}

// SAFETY: a stream may be named from any thread.
unsafe impl Send for Stream<'_> {}
// SAFETY: as above.
unsafe impl Sync for Stream<'_> {}

impl Stream<'static> {
    /// The device's legacy default stream.
    pub const DEFAULT: Self = Self { raw: ptr::null_mut(), alive: PhantomData };
}

impl Stream<'_> {
    /// A stream by its raw handle: a `CUstream` of CUDA, an `sb_sim_stream` of
    /// the simulated device.
    ///
    /// # Safety
    /// The handle is a live stream until every context that it is used with was
    /// told to [forget](crate::Context::forget_stream) it.
    pub const unsafe fn from_raw(raw: *mut c_void) -> Self {
        Self { raw, alive: PhantomData }
    }

    /// The raw handle.
    pub fn as_raw(self) -> *mut c_void {
        self.raw
    }
}

impl fmt::Debug for Stream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.raw).finish()
    }
}
