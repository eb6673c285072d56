use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use syncblob_sys as sys;

use crate::{Context, Error, ErrorKind, Result};

/// A stream of a device: work on one stream runs in the order in which it was queued.
///
/// [`Context::stream`](crate::Context::stream) returns the context's stream. `sim::Sim::stream`
/// (feature `testing`) makes a stream of the simulated device. [`from_raw`](Stream::from_raw) wraps
/// a CUDA stream.
#[derive(Clone, Copy)]
pub struct Stream<'a> {
    raw: sys::sb_stream,
    /// The only context whose memories may use the stream. Null if any context may use the stream.
    context: *const sys::sb_context,
    alive: PhantomData<&'a ()>,
}

// SAFETY: a stream may be used on any thread. The context pointer is only compared.
unsafe impl Send for Stream<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for Stream<'_> {}

impl Stream<'static> {
    /// The device's legacy default stream.
    pub const DEFAULT: Self =
        Self { raw: ptr::null_mut(), context: ptr::null(), alive: PhantomData };
}

impl<'a> Stream<'a> {
    /// Makes a stream whose owner outlives the result. Only memories of `context` may use the
    /// stream. Another context of the same CUDA device is excluded, because it would not forget the
    /// stream before the stream is destroyed.
    ///
    /// # Safety
    /// `raw` is live for `'a`. Before `raw` is destroyed, `context` forgets `raw` or is destroyed.
    pub(crate) unsafe fn of(context: &'a Context, raw: sys::sb_stream) -> Self {
        Self { raw, context: context.as_ptr(), alive: PhantomData }
    }

    /// Returns the raw handle for a call on a memory of `context`, or an error if the stream
    /// belongs to another context. A context without a device is not an error here, because the
    /// library refuses the call.
    pub(crate) fn for_use_in(self, context: &Context) -> Result<sys::sb_stream> {
        let of_another = !self.context.is_null() && self.context != context.as_ptr().cast_const();
        if of_another && context.has_device() {
            let message = "the stream and the memory belong to different contexts";
            return Err(Error::new(ErrorKind::WrongDevice, message));
        }
        Ok(self.raw)
    }

    /// Makes a stream from its raw handle: a `CUstream` of CUDA, or the result of
    /// `sb_sim_stream_create`.
    ///
    /// # Safety
    /// The handle is a live stream until every context that uses the stream has
    /// [forgotten](crate::Context::forget_stream) it.
    pub const unsafe fn from_raw(raw: *mut c_void) -> Self {
        Self { raw: raw.cast(), context: ptr::null(), alive: PhantomData }
    }

    /// Returns the raw handle.
    pub fn as_raw(self) -> *mut c_void {
        self.raw.cast()
    }
}

/// Two streams are equal if their raw handles are equal.
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
