use std::ptr;
use std::time::Duration;

use syncblob_sys as sys;

use super::{count_to_c, Comm};
use crate::ffi::{check, sized};
use crate::{Context, Result};

/// Options of simulated ranks, for tests: each rank is a thread of this process. Sums are computed
/// in double precision, in the order of ranks, so every run computes the same sums.
///
/// ```
/// use std::time::Duration;
/// use syncblob::comm::SimOptions;
///
/// # fn main() -> syncblob::Result<()> {
/// let limit = Duration::from_millis(20);
/// let ranks = SimOptions::new().limit(limit).ranks(2)?;
/// let error = ranks[0].barrier().unwrap_err(); // rank 1 never calls barrier
/// assert!(error.message().contains("rank 1 did not answer"), "{error}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `ranks`"]
pub struct SimOptions {
    context: Context,
    seed: u64,
    delay: Duration,
    limit: Duration,
}

impl SimOptions {
    /// Returns the default options: no delays, and a limit of ten seconds.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the context in which handles and reducers' buckets are allocated.
    pub fn context(mut self, context: &Context) -> Self {
        self.context = context.clone();
        self
    }

    /// Sets the maximum delay. Each operation of each rank ends after a random delay up to this
    /// maximum. The delay does not count towards the time limit.
    pub fn delay(mut self, most: Duration) -> Self {
        self.delay = most;
        self
    }

    /// Sets the seed of the delays.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the time limit: a rank that waits longer for the other ranks gets
    /// [`CommFailure`](crate::ErrorKind::CommFailure). Zero means 10 seconds. The limit is rounded
    /// up to whole milliseconds.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Makes the communicators of all ranks, in the order of ranks. A program may drop the
    /// communicators in any order; a rank that waits for a dropped rank gets
    /// [`CommFailure`](crate::ErrorKind::CommFailure) at once.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) unless `size` is 1 to 4096; out of
    /// memory.
    pub fn ranks(&self, size: usize) -> Result<Vec<Comm>> {
        let options = self.to_c();
        let mut ranks = vec![ptr::null_mut(); size.min(sys::SB_SIM_COMM_MAX as usize)];
        // SAFETY: `ranks` has room for as many pointers as the library writes; the context is live.
        check(|err| unsafe {
            let (context, out) = (self.context.as_ptr(), ranks.as_mut_ptr());
            sys::sb_sim_comm_create(context, count_to_c(size), &options, out, err)
        })?;
        Ok(ranks.into_iter().map(Comm::own).collect())
    }

    fn to_c(&self) -> sys::sb_sim_comm_options {
        let up = |time: Duration, unit: Duration| {
            u32::try_from(time.as_nanos().div_ceil(unit.as_nanos())).unwrap_or(u32::MAX)
        };
        sys::sb_sim_comm_options {
            seed: self.seed,
            delay_microseconds: up(self.delay, Duration::from_micros(1)),
            limit_milliseconds: up(self.limit, Duration::from_millis(1)),
            ..sized!(sb_sim_comm_options)
        }
    }
}

/// How an operation of a simulated rank fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// The operation returns [`CommFailure`](crate::ErrorKind::CommFailure) at this rank, and the
    /// other ranks wait until the time limit.
    Now,
    /// The rank stops responding: all ranks wait until the time limit.
    Stop,
}

impl Comm {
    /// Makes the `nth` operation of this simulated rank fail, counted from now: 1 is the next
    /// operation. 0 cancels a failure that was set before. An operation is a request to the engine;
    /// a blob or a bucket needs one or more requests.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a rank that is not simulated.
    pub fn fail(&self, nth: u32, failure: Failure) -> Result<()> {
        let mode = match failure {
            Failure::Now => sys::SB_SIM_COMM_FAIL_NOW,
            Failure::Stop => sys::SB_SIM_COMM_STOP,
        };
        // SAFETY: the communicator is live.
        check(|err| unsafe { sys::sb_sim_comm_fail(self.as_ptr(), nth.into(), mode, err) })
    }
}
