use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use syncblob_sys as sys;

use crate::{Context, Error, ErrorKind, Result};

/// A stream of a device: work queued on it runs in order.
///
/// A context lends its own by [`Context::stream`](crate::Context::stream), the
/// simulated device makes some by `sim::Sim::stream` (feature `testing`);
/// one of CUDA's comes in by [`from_raw`](Stream::from_raw).
#[derive(Clone, Copy)]
pub struct Stream<'a> {
    raw: sys::sb_stream,
    /// The only context whose memories may use the stream; null: the caller ensures this.
    context: *const sys::sb_context,
    alive: PhantomData<&'a ()>,
}

// SAFETY: a stream may be named from any thread; its context is only compared.
unsafe impl Send for Stream<'_> {}
// SAFETY: as above.
unsafe impl Sync for Stream<'_> {}

impl Stream<'static> {
    /// The device's legacy default stream.
    pub const DEFAULT: Self =
        Self { raw: ptr::null_mut(), context: ptr::null(), alive: PhantomData };
}

impl<'a> Stream<'a> {
    /// A stream that its owner outlives. Two contexts of one CUDA device can use each other's
    /// streams, but only `context` forgets the stream before it ends.
    ///
    /// # Safety
    /// `raw` is live for `'a`, and `context` ends or forgets it first.
    pub(crate) unsafe fn of(context: &'a Context, raw: sys::sb_stream) -> Self {
        Self { raw, context: context.as_ptr(), alive: PhantomData }
    }

    /// The raw handle, for a call on a memory of this context. One without a
    /// device uses no stream, and has its own word on that.
    pub(crate) fn for_use_in(self, context: &Context) -> Result<sys::sb_stream> {
        let of_another = !self.context.is_null() && self.context != context.as_ptr().cast_const();
        if of_another && context.has_device() {
            let message = "the stream belongs to another context than the memory";
            return Err(Error::new(ErrorKind::WrongDevice, message));
        }
        Ok(self.raw)
    }

    /// A stream by its raw handle: a `CUstream` of CUDA, or what
    /// `sb_sim_stream_create` gives.
    ///
    /// # Safety
    /// The handle is a live stream until every context that it is used with has
    /// [forgotten](crate::Context::forget_stream) it.
    pub const unsafe fn from_raw(raw: *mut c_void) -> Self {
        Self { raw: raw.cast(), context: ptr::null(), alive: PhantomData }
    }

    /// The raw handle.
    pub fn as_raw(self) -> *mut c_void {
        self.raw.cast()
    }
}

/// Two are equal when their handles are.
impl PartialEq for Stream<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Stream<'_> {}

impl fmt::Debug for Stream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.raw).finish()
    }
}
