//! Communicators, for work on many devices and many machines: ranks, which are
//! processes or threads, sum and spread values and blobs (Caffe's P2PSync and NCCL).
//! The transport is an engine: threads of this process ([`SimOptions`]), which needs
//! nothing, or with the feature `mpi` a communicator of the crate `mpi`.
//!
//! ```
//! use std::thread;
//! use syncblob::comm::{Comm, Op, Reducer, SimOptions};
//! use syncblob::Blob;
//!
//! /// One rank's step: its own diff, then the mean of all.
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
//! assert_eq!(means, [1.5; 4]); // of 0, 1, 2 and 3
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! A method that is *collective* is called by every rank, with equal arguments and in
//! the same order; it returns when all ranks have called it. A rank that returns early
//! with an error leaves the others waiting as long as the engine lets them: simulated
//! ranks have a time limit, MPI has none. After [`CommFailure`](crate::ErrorKind::CommFailure)
//! a communicator is of no use: every later collective method returns it, too.
//!
//! # Safety
//!
//! From [`Step::ready`] to the end of the step an engine may read and write a blob's diff at any
//! time. The blob is mutably borrowed as long as that: for `'env`, which includes the call of
//! [`Reducer::step`]. The borrow does not depend on the drop of a value, which could be forgotten.
//! The step ends before `step` returns or unwinds: its buckets are complete, or abandoned. Memory
//! that an engine may still use after a failure is never freed, and the blob releases it: its diff
//! reads as zeros.

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

/// How the values of all ranks become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Op {
    /// Their sum.
    Sum,
    /// Their sum, times 1 / size.
    #[default]
    Mean,
    /// The least; with a NaN, unspecified.
    Min,
    /// The greatest; with a NaN, unspecified.
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

/// A rank's end of a communicator. One thread at a time uses it; it may move to another.
pub struct Comm {
    raw: NonNull<sys::sb_comm>,
    rank: usize,
    size: usize,
    one_thread: PhantomData<Cell<()>>,
}

// SAFETY: a communicator may be used on any thread, by one at a time; an engine that is bound to a
// thread refuses calls of the others, and frees later what another thread drops.
unsafe impl Send for Comm {}

impl Comm {
    /// Takes over a communicator that C code made.
    ///
    /// # Safety
    /// `raw` is a live communicator without another owner, and its engine keeps the promises of the
    /// C header `comm_engine.h`.
    pub unsafe fn from_raw(raw: NonNull<sys::sb_comm>) -> Self {
        // SAFETY: the communicator is live.
        let (rank, size) =
            unsafe { (sys::sb_comm_rank(raw.as_ptr()), sys::sb_comm_size(raw.as_ptr())) };
        let known = |number| usize::try_from(number).expect("a live communicator has a rank");
        Self { raw, rank: known(rank), size: known(size), one_thread: PhantomData }
    }

    /// Takes over a communicator that the library has just made.
    fn own(raw: *mut sys::sb_comm) -> Self {
        let raw = NonNull::new(raw).expect("the library gave no communicator and no error");
        // SAFETY: it has no other owner.
        unsafe { Self::from_raw(raw) }
    }

    /// The C handle, for code that calls the C library too. Lives as long as `self`.
    pub fn as_ptr(&self) -> *mut sys::sb_comm {
        self.raw.as_ptr()
    }

    /// This rank, 0 to [`size`](Comm::size) - 1.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Collective: every rank gets the values of all ranks, combined element by element.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) in a reducer's step; out of memory;
    /// [`CommFailure`](crate::ErrorKind::CommFailure), and the values are unspecified.
    pub fn all_reduce<T: Reduced>(&self, op: Op, values: &mut [T]) -> Result<()> {
        let (ptr, count) = (values.as_mut_ptr().cast(), to_i64(values.len()));
        // SAFETY: `values` are `count` elements of the type, which any bytes are a value of.
        check(|err| unsafe {
            let dtype = <T as Sealed>::CODE;
            sys::sb_comm_all_reduce(self.as_ptr(), op.code(), dtype, count, ptr, err)
        })
    }

    /// Collective: every rank gets the values of rank `root`.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a rank that is not there or in a
    /// reducer's step; out of memory; [`CommFailure`](crate::ErrorKind::CommFailure), and the
    /// values are unspecified.
    pub fn broadcast<T: Element>(&self, root: usize, values: &mut [T]) -> Result<()> {
        let bytes = bytes_of_mut(values);
        // SAFETY: `bytes` may be written for their length; any are values of the type.
        check(|err| unsafe {
            let (ptr, size) = (bytes.as_mut_ptr().cast(), bytes.len());
            sys::sb_comm_broadcast(self.as_ptr(), count_to_c(root), ptr, size, err)
        })
    }

    /// Collective: returns when all ranks have called it.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) in a reducer's step; out of memory;
    /// [`CommFailure`](crate::ErrorKind::CommFailure).
    pub fn barrier(&self) -> Result<()> {
        // SAFETY: the communicator is live.
        check(|err| unsafe { sys::sb_comm_barrier(self.as_ptr(), err) })
    }

    /// Collective: every rank's blobs get the values of all ranks, combined element by
    /// element: on the device if the head is there and the engine takes its memory, else on
    /// the host. No two of them have one memory.
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
    /// in a reducer's step; as [`Blob::data_mut`]; [`CommFailure`](crate::ErrorKind::CommFailure):
    /// the blobs before the one that failed are reduced, that one's values are unspecified.
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

    /// Collective: the blobs of every rank get the values of those of rank `root`, whose shapes
    /// they have: weights at the start, a model as one rank has opened it.
    ///
    /// # Errors
    /// As [`all_reduce_blobs`](Comm::all_reduce_blobs), `Shared` not at the root;
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a rank that is not there.
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
        // SAFETY: the blobs are live and mutably borrowed; written memories are not shared.
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
        // SAFETY: `self` owns the communicator; its reducers borrow it, and ended.
        unsafe { sys::sb_comm_destroy(self.as_ptr()) }
    }
}

/// Blobs as C has them, and borrowed as long.
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

/// A rank, or a number of them; what does not fit is out of every range there, too.
fn count_to_c(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
