//! A communicator connects ranks, which are processes or threads on one or more machines. Ranks sum
//! and broadcast values and blobs, as Caffe does with P2PSync and NCCL. An engine transports the
//! values. The simulated engine ([`SimOptions`]) connects threads of this process and needs no
//! other library. With the feature `mpi`, a communicator of the crate `mpi` can be the engine.
//!
//! ```
//! use std::thread;
//! use syncblob::comm::{Comm, Op, Reducer, SimOptions};
//! use syncblob::Blob;
//!
//! /// Runs one rank's step; returns the bias's diff, which is then the mean over all ranks.
//! fn step(comm: &Comm) -> syncblob::Result<f32> {
//!     let mut weights = Blob::<f32>::full([3], 1.0)?;
//!     let mut bias = Blob::<f32>::zeros([1])?;
//!     let mut reducer = Reducer::new(comm, [&weights, &bias])?;
//!     reducer.step(|step| {
//!         bias.diff_mut()?.fill(comm.rank() as f32); // the last layer is done first
//!         step.ready(&mut bias)?;
//!         weights.diff_mut()?.fill(1.0); // while the bias's diff is summed
//!         step.ready(&mut weights)
//!     })?;
//!     Ok(bias.diff()?[0])
//! }
//!
//! # fn main() -> syncblob::Result<()> {
//! let ranks = SimOptions::new().ranks(4)?;
//! let means = thread::scope(|scope| {
//!     let threads: Vec<_> = ranks.into_iter().map(|comm| scope.spawn(move || step(&comm))).collect();
//!     threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<Vec<_>, _>>()
//! })?;
//! assert_eq!(means, [1.5; 4]); // the mean of 0, 1, 2 and 3
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! All ranks must call the same *collective* methods in the same order and with equal arguments. A
//! collective method returns when all ranks have called it. If a rank returns early with an error,
//! the other ranks wait until the engine's time limit. Simulated ranks have a time limit, but MPI
//! has none. After [`CommFailure`](crate::ErrorKind::CommFailure) a communicator is unusable: every
//! later collective method returns the same error.
//!
//! # Safety
//!
//! From [`Step::ready`] to the end of the step an engine may read and write a blob's diff at any
//! time. The blob is mutably borrowed for all this time: for `'env`, which includes the call of
//! [`Reducer::step`]. The end of the borrow does not depend on the drop of a value, because a
//! program could leak the value. Before `step` returns or unwinds, each bucket is complete or
//! abandoned. After a failure, memory that an engine may still use is never freed. The blob stops
//! using that memory, so its diff reads as zeros.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use syncblob_sys as sys;

use crate::any::bytes_of_mut;
use crate::element::sealed::Sealed;
use crate::ffi::{check, to_i64};
use crate::{Blob, Element, Part, Reduced, Result};

#[cfg(feature = "mpi")]
mod mpi;
mod reducer;
mod sim;

pub use reducer::{Reducer, ReducerOptions, Step};
pub use sim::{Failure, SimOptions};

/// How the values of all ranks are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Op {
    /// The sum.
    Sum,
    /// The sum, divided by the number of ranks.
    #[default]
    Mean,
    /// The least value, which is unspecified if any value is a NaN.
    Min,
    /// The greatest value, which is unspecified if any value is a NaN.
    Max,
}

impl Op {
    fn code(self) -> i32 {
        match self {
            Self::Sum => sys::SB_COMM_SUM,
            Self::Mean => sys::SB_COMM_MEAN,
            Self::Min => sys::SB_COMM_MIN,
            Self::Max => sys::SB_COMM_MAX,
        }
    }
}

/// A rank's handle of a communicator. Only one thread at a time may use the handle, but a program
/// may move the handle to another thread.
pub struct Comm {
    raw: NonNull<sys::sb_comm>,
    rank: usize,
    size: usize,
    one_thread: PhantomData<Cell<()>>,
}

// SAFETY: a communicator may be used on any thread, by one thread at a time. An engine that is
// bound to a thread refuses calls of other threads. If another thread drops its communicator, the
// communicator is freed later.
unsafe impl Send for Comm {}

impl Comm {
    /// Takes ownership of a communicator that C code made.
    ///
    /// # Safety
    /// `raw` is a live communicator without another owner. Its engine keeps the promises of the C
    /// header `comm_engine.h`.
    pub unsafe fn from_raw(raw: NonNull<sys::sb_comm>) -> Self {
        // SAFETY: the communicator is live.
        let (rank, size) =
            unsafe { (sys::sb_comm_rank(raw.as_ptr()), sys::sb_comm_size(raw.as_ptr())) };
        let known = |number| usize::try_from(number).expect("a live communicator has a rank");
        Self { raw, rank: known(rank), size: known(size), one_thread: PhantomData }
    }

    /// Takes ownership of a communicator that the library has just made.
    fn own(raw: *mut sys::sb_comm) -> Self {
        let raw = NonNull::new(raw).expect("the library returned no communicator and no error");
        // SAFETY: the communicator is live and has no other owner.
        unsafe { Self::from_raw(raw) }
    }

    /// Returns the C handle, for code that also calls the C library. The handle lives as long as
    /// `self`.
    pub fn as_ptr(&self) -> *mut sys::sb_comm {
        self.raw.as_ptr()
    }

    /// Returns this rank's number, from 0 to [`size`](Comm::size) - 1.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Collective: combines the values of all ranks element by element. Every rank gets the result.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) during a reducer's step; out of
    /// memory; [`CommFailure`](crate::ErrorKind::CommFailure): the values are then unspecified.
    pub fn all_reduce<T: Reduced>(&self, op: Op, values: &mut [T]) -> Result<()> {
        let (ptr, count) = (values.as_mut_ptr().cast(), to_i64(values.len()));
        // SAFETY: `values` has `count` elements. Any bytes are valid elements.
        check(|err| unsafe {
            let dtype = <T as Sealed>::CODE;
            sys::sb_comm_all_reduce(self.as_ptr(), op.code(), dtype, count, ptr, err)
        })
    }

    /// Collective: copies the values of rank `root` to every rank.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a rank that does not exist, or
    /// during a reducer's step; out of memory; [`CommFailure`](crate::ErrorKind::CommFailure): the
    /// values are then unspecified.
    pub fn broadcast<T: Element>(&self, root: usize, values: &mut [T]) -> Result<()> {
        let bytes = bytes_of_mut(values);
        // SAFETY: `bytes` may be written for its length, and any bytes are valid elements.
        check(|err| unsafe {
            let (ptr, size) = (bytes.as_mut_ptr().cast(), bytes.len());
            sys::sb_comm_broadcast(self.as_ptr(), count_to_c(root), ptr, size, err)
        })
    }

    /// Collective: waits until all ranks have called `barrier`.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) during a reducer's step; out of
    /// memory; [`CommFailure`](crate::ErrorKind::CommFailure).
    pub fn barrier(&self) -> Result<()> {
        // SAFETY: the communicator is live.
        check(|err| unsafe { sys::sb_comm_barrier(self.as_ptr(), err) })
    }

    /// Collective: combines the blobs of all ranks element by element, and writes the result to the
    /// blobs of every rank. The work is done on the device if the device has the newest bytes and
    /// the engine accepts the device's memory. Otherwise the host does the work. No two of the
    /// blobs may share a memory.
    ///
    /// ```
    /// use syncblob::comm::{Op, SimOptions};
    /// use syncblob::{Blob, Part};
    /// # fn main() -> syncblob::Result<()> {
    /// let alone = SimOptions::new().ranks(1)?.remove(0);
    /// let (mut a, mut b) = (Blob::<f32>::full([2], 1.0)?, Blob::<f32>::full([3], 2.0)?);
    /// alone.all_reduce_blobs(Op::Mean, Part::Data, [&mut a, &mut b])?;
    /// assert_eq!(b.data()?, [2.0; 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Shared`](crate::ErrorKind::Shared); [`InvalidArgument`](crate::ErrorKind::InvalidArgument)
    /// during a reducer's step; errors of [`Blob::data_mut`];
    /// [`CommFailure`](crate::ErrorKind::CommFailure): only blobs before the failed blob are valid.
    pub fn all_reduce_blobs<'a, T: Reduced>(
        &self,
        op: Op,
        part: Part,
        blobs: impl IntoIterator<Item = &'a mut Blob<T>>,
    ) -> Result<()> {
        let mut list = List::new(blobs);
        list.need_unique(part)?;
        // SAFETY: the blobs are live and mutably borrowed, and their memories are not shared.
        check(|err| unsafe {
            let (ptr, count) = (list.raw.as_ptr(), to_i64(list.raw.len()));
            let comm = self.as_ptr();
            sys::sb_comm_all_reduce_blobs(comm, ptr, count, part.code(), op.code(), err)
        })
    }

    /// Collective: copies the values of rank `root`'s blobs to every rank's blobs. The values are,
    /// for example, initial weights, or a model that only one rank has opened. The shapes must be
    /// equal at all ranks.
    ///
    /// # Errors
    /// Errors of [`all_reduce_blobs`](Comm::all_reduce_blobs), except `Shared` at the root;
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for an unknown rank.
    pub fn broadcast_blobs<'a, T: Element>(
        &self,
        root: usize,
        part: Part,
        blobs: impl IntoIterator<Item = &'a mut Blob<T>>,
    ) -> Result<()> {
        let mut list = List::new(blobs);
        if self.rank() != root {
            list.need_unique(part)?;
        }
        // SAFETY: the blobs are live and mutably borrowed. Written memories are not shared.
        check(|err| unsafe {
            let (ptr, count) = (list.raw.as_ptr(), to_i64(list.raw.len()));
            let (comm, root) = (self.as_ptr(), count_to_c(root));
            sys::sb_comm_broadcast_blobs(comm, ptr, count, part.code(), root, err)
        })
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Comm").field("rank", &self.rank()).field("size", &self.size()).finish()
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        // SAFETY: `self` owns the communicator. Reducers borrow `self`, so all reducers have ended.
        unsafe { sys::sb_comm_destroy(self.as_ptr()) }
    }
}

/// Blobs as an array of C handles. The blobs are borrowed as long as the list lives.
struct List<'a, T: Element> {
    blobs: Vec<&'a mut Blob<T>>,
    raw: Vec<*mut sys::sb_blob>,
}

impl<'a, T: Element> List<'a, T> {
    fn new(blobs: impl IntoIterator<Item = &'a mut Blob<T>>) -> Self {
        let blobs: Vec<_> = blobs.into_iter().collect();
        let raw = blobs.iter().map(|blob| blob.as_ptr()).collect();
        Self { blobs, raw }
    }

    fn need_unique(&mut self, part: Part) -> Result<()> {
        self.blobs.iter_mut().try_for_each(|blob| blob.need_unique(part))
    }
}

/// Converts a rank or a number of ranks for C. A number above `i32::MAX` becomes `i32::MAX`, which
/// C refuses.
fn count_to_c(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
