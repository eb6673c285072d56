//! Control of the simulated device `"sim:0"`: the schedule of its queued work, its failures and its
//! memory. Use this module to test code that copies bytes between host and device, without a GPU.
//!
//! ```
//! use syncblob::{sim::Schedule, Blob, Context, Part};
//!
//! # fn main() -> syncblob::Result<()> {
//! let context = Context::builder().device("sim:0").build()?;
//! let sim = context.sim().expect("the device is a simulated one");
//! sim.set_schedule(Schedule::Lazy)?;
//! let stream = sim.stream()?;
//! let blob = Blob::<f32>::in_context(&context).from_slice([2], &[1.0, 2.0])?;
//! let copy = blob.memory(Part::Data)?.push(stream.as_stream())?; // queued, not yet run
//! copy.wait()?; // now the copy has run
//! let bytes = sim.peek(blob.gpu_ptr(Part::Data)?.cast(), 8)?;
//! assert_eq!(bytes, [1.0_f32, 2.0].map(f32::to_ne_bytes).as_flattened());
//! # Ok(())
//! # }
//! ```

use std::fmt;

use syncblob_sys as sys;

use crate::blob::reserve;
use crate::ffi::{check, get};
use crate::{Context, Result, Stream};

/// The simulated device of a [`Context`]. See [`Context::sim`].
#[derive(Clone, Copy, Debug)]
pub struct Sim<'c> {
    context: &'c Context,
}

/// Determines when queued work runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Schedule {
    /// Work runs when it is queued.
    #[default]
    Eager,
    /// Work runs when a call waits for the work.
    Lazy,
    /// Work runs at random moments, derived from the seed.
    Random(u64),
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// The call fails and does nothing.
    Now,
    /// The call succeeds, but the work that it queues does nothing, and a wait for that work
    /// returns the failure.
    Later,
    /// The call and all later calls fail: the device is lost.
    Sticky,
}

impl Failure {
    fn mode(self) -> i32 {
        match self {
            Self::Now => sys::SB_SIM_FAIL_NOW,
            Self::Later => sys::SB_SIM_FAIL_LATER,
            Self::Sticky => sys::SB_SIM_FAIL_STICKY,
        }
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $code:ident,)*) => {
        /// A call that the library makes to its device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Operation {
            $($(#[$doc])* $name,)*
        }

        impl Operation {
            fn code(self) -> i32 {
                match self {
                    $(Self::$name => sys::$code,)*
                }
            }
        }
    };
}

operations! {
    /// Any call.
    Any = SB_SIM_ANY,
    /// Device memory is allocated.
    Alloc = SB_SIM_ALLOC,
    /// Device memory is set to zeros.
    Zero = SB_SIM_ZERO,
    /// A copy from the host to the device.
    Upload = SB_SIM_UPLOAD,
    /// A copy from the device to the host.
    Download = SB_SIM_DOWNLOAD,
    /// A copy within the device.
    Copy = SB_SIM_COPY,
    /// Page-locked host memory is allocated.
    AllocPinned = SB_SIM_ALLOC_PINNED,
    /// A pointer from the caller is checked.
    CheckPointer = SB_SIM_CHECK_POINTER,
    /// A stream from the caller is checked.
    CheckStream = SB_SIM_CHECK_STREAM,
    /// The host waits for a stream.
    StreamSynchronize = SB_SIM_STREAM_SYNCHRONIZE,
    /// An event is recorded.
    EventRecord = SB_SIM_EVENT_RECORD,
    /// A stream waits for an event.
    StreamWait = SB_SIM_STREAM_WAIT,
    /// The host waits for an event.
    EventWait = SB_SIM_EVENT_WAIT,
    /// Arithmetic is prepared.
    PrepareArithmetic = SB_SIM_PREPARE_ARITHMETIC,
    /// `y += a * x`
    Axpy = SB_SIM_AXPY,
    /// `x *= a`
    Scale = SB_SIM_SCALE,
    /// Sum of absolute values.
    Asum = SB_SIM_ASUM,
    /// Sum of squares.
    Sumsq = SB_SIM_SUMSQ,
}

impl<'c> Sim<'c> {
    pub(crate) fn new(context: &'c Context) -> Self {
        Self { context }
    }

    /// Sets the schedule of later work.
    ///
    /// # Errors
    /// [`Forked`](crate::ErrorKind::Forked).
    pub fn set_schedule(self, schedule: Schedule) -> Result<()> {
        let (code, seed) = match schedule {
            Schedule::Eager => (sys::SB_SIM_EAGER, 0),
            Schedule::Lazy => (sys::SB_SIM_LAZY, 0),
            Schedule::Random(seed) => (sys::SB_SIM_RANDOM, seed),
        };
        // SAFETY: the context is live.
        check(|err| unsafe { sys::sb_sim_set_schedule(self.context.as_ptr(), code, seed, err) })
    }

    /// Makes the `nth` call of an operation fail, counted from now: 1 is the next call. Replaces
    /// all faults that were set before. If `nth` is 0, only removes them.
    ///
    /// # Errors
    /// [`Forked`](crate::ErrorKind::Forked).
    pub fn fail(self, operation: Operation, nth: u32, failure: Failure) -> Result<()> {
        let (op, mode) = (operation.code(), failure.mode());
        // SAFETY: the context is live.
        check(|err| unsafe { sys::sb_sim_fail(self.context.as_ptr(), op, nth.into(), mode, err) })
    }

    /// Adds a fault and keeps the faults that are set already, to test code with several failures.
    /// At most 16 faults can be set. `nth` is 1 for the next call.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for `nth` 0,
    /// [`OverLimit`](crate::ErrorKind::OverLimit), [`Forked`](crate::ErrorKind::Forked).
    pub fn fail_also(self, operation: Operation, nth: u32, failure: Failure) -> Result<()> {
        let (op, mode) = (operation.code(), failure.mode());
        // SAFETY: the context is live.
        check(|err| unsafe {
            sys::sb_sim_fail_also(self.context.as_ptr(), op, nth.into(), mode, err)
        })
    }

    /// Returns how many times the library has called an operation. [`Operation::Any`] counts the
    /// calls of all operations.
    ///
    /// # Errors
    /// [`Forked`](crate::ErrorKind::Forked).
    pub fn calls(self, operation: Operation) -> Result<u64> {
        let mut counts = [0; sys::SB_SIM_OP_COUNT as usize];
        // SAFETY: the context is live; `counts` has room for every operation.
        check(|err| unsafe {
            sys::sb_sim_calls(self.context.as_ptr(), counts.as_mut_ptr(), sys::SB_SIM_OP_COUNT, err)
        })?;
        let count = |count: i64| count.unsigned_abs(); // never negative
        Ok(match usize::try_from(operation.code()) {
            Ok(slot) => count(counts[slot]),
            Err(_) => counts.into_iter().map(count).sum(),
        })
    }

    /// Makes a stream. Work on this stream and work on the default stream run in any order.
    ///
    /// # Errors
    /// Out of memory; a lost device.
    pub fn stream(self) -> Result<SimStream> {
        // SAFETY: the context is live.
        let raw =
            get(|out, err| unsafe { sys::sb_sim_stream_create(self.context.as_ptr(), out, err) })?;
        Ok(SimStream { context: self.context.clone(), raw })
    }

    /// Copies device memory to the host at once, without waiting for streams. [`calls`](Sim::calls)
    /// does not count this copy.
    ///
    /// # Errors
    /// [`DeviceFailure`](crate::ErrorKind::DeviceFailure) for pointers outside the device's memory;
    /// out of memory.
    pub fn peek(self, from: *const u8, bytes: usize) -> Result<Vec<u8>> {
        let mut to = Vec::<u8>::new();
        reserve(&mut to, bytes)?;
        // SAFETY: `to` has room for `bytes`. The device checks `from`.
        check(|err| unsafe {
            let to = to.as_mut_ptr().cast();
            sys::sb_sim_peek(self.context.as_ptr(), to, from.cast(), bytes, err)
        })?;
        // SAFETY: the device has written `bytes` bytes.
        unsafe { to.set_len(bytes) };
        Ok(to)
    }

    /// Copies bytes to device memory at once, without waiting for streams.
    ///
    /// # Errors
    /// Errors of [`peek`](Sim::peek).
    pub fn poke(self, to: *mut u8, bytes: &[u8]) -> Result<()> {
        // SAFETY: `bytes` is valid for its length. The device checks `to`, and no reference of host
        // code points to device memory.
        check(|err| unsafe {
            let from = bytes.as_ptr().cast();
            sys::sb_sim_poke(self.context.as_ptr(), to.cast(), from, bytes.len(), err)
        })
    }
}

/// A stream of a simulated device. A drop runs the queued work and destroys the stream.
pub struct SimStream {
    context: Context,
    raw: sys::sb_stream,
}

// SAFETY: the library locks the device during every call with one of its streams.
unsafe impl Send for SimStream {}
// SAFETY: as for `Send`.
unsafe impl Sync for SimStream {}

impl SimStream {
    /// Returns the stream for use in a call.
    pub fn as_stream(&self) -> Stream<'_> {
        // SAFETY: the stream lives until the drop of `self`, in which the context first forgets the
        // stream.
        unsafe { Stream::of(&self.context, self.raw) }
    }
}

impl<'s> From<&'s SimStream> for Stream<'s> {
    fn from(stream: &'s SimStream) -> Self {
        stream.as_stream()
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        // SAFETY: the stream is live, and is destroyed only if the context has forgotten it.
        unsafe {
            let context = self.context.as_ptr();
            let forgotten = sys::sb_context_forget_stream(context, self.raw, std::ptr::null_mut());
            if matches!(forgotten, sys::SB_OK | sys::SB_ERR_DEVICE_LOST) {
                sys::sb_sim_stream_destroy(context, self.raw, std::ptr::null_mut());
            }
        }
    }
}

impl fmt::Debug for SimStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimStream").field("context", &self.context).finish_non_exhaustive()
    }
}
