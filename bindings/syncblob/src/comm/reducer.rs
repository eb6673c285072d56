use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use syncblob_sys as sys;

use super::{Comm, Op};
use crate::ffi::{check, get, sized, to_i64};
use crate::{Blob, Error, ErrorKind, Part, Reduced, Result};

/// Options of a [`Reducer`], equal at all ranks.
#[derive(Clone, Copy, Debug)]
#[must_use = "options do nothing until `register`"]
pub struct ReducerOptions {
    op: Op,
    bucket_bytes: usize,
}

impl Default for ReducerOptions {
    fn default() -> Self {
        Self { op: Op::default(), bucket_bytes: 25 << 20 }
    }
}

impl ReducerOptions {
    /// The mean, in buckets of 25 MiB.
    pub fn new() -> Self {
        Self::default()
    }

    /// How diffs are combined.
    pub fn op(mut self, op: Op) -> Self {
        self.op = op;
        self
    }

    /// The most bytes of a bucket; 0: every blob is sent separately.
    pub fn bucket_bytes(mut self, bytes: usize) -> Self {
        self.bucket_bytes = bytes;
        self
    }

    /// Collective: registers blobs, in the order of their layers. Ranks compare the options,
    /// and the number, order, types and shapes of the blobs; a difference, or a failure of one
    /// rank, is an error at every rank, and the message names both sides.
    ///
    /// # Errors
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch), [`DtypeMismatch`](ErrorKind::DtypeMismatch),
    /// [`InvalidArgument`](ErrorKind::InvalidArgument): ranks differ;
    /// [`Shared`](ErrorKind::Shared): two blobs have one diff; out of memory;
    /// [`CommFailure`](ErrorKind::CommFailure).
    pub fn register<'c, 'b, T: Reduced>(
        &self,
        comm: &'c Comm,
        blobs: impl IntoIterator<Item = &'b Blob<T>>,
    ) -> Result<Reducer<'c, T>> {
        let blobs: Vec<_> = blobs.into_iter().map(Blob::as_ptr).collect();
        let options = sys::sb_reducer_options {
            part: sys::SB_DIFF,
            op: self.op.code(),
            bucket_bytes: self.bucket_bytes,
            ..sized!(sb_reducer_options)
        };
        // SAFETY: communicator and blobs are live. Registering the blobs may run beside const
        // calls; later the reducer uses only their addresses.
        let raw = get(|out, err| unsafe {
            let count = to_i64(blobs.len());
            sys::sb_reducer_create(comm.as_ptr(), blobs.as_ptr(), count, &options, out, err)
        })?;
        Ok(Reducer { raw: NonNull::new(raw), comm, elements: PhantomData })
    }
}

/// Sums diffs over all ranks while the rest of a training step is still being computed. Blobs
/// are registered once, and borrowed in each step alone; see the [module](super).
///
/// Small blobs are gathered in buckets, from the last that was registered to the first, since a
/// backward pass is done with the last layer first; one that fills a bucket goes in place. A
/// blob is known by its handle: moving it is fine; one that is dropped is never ready again.
pub struct Reducer<'c, T: Reduced> {
    /// None after an abandoned step.
    raw: Option<NonNull<sys::sb_reducer>>,
    comm: &'c Comm,
    elements: PhantomData<T>,
}

impl<'c, T: Reduced> Reducer<'c, T> {
    /// Collective: registers blobs with the default options; see [`ReducerOptions::register`].
    ///
    /// # Errors
    /// As there.
    pub fn new<'b>(comm: &'c Comm, blobs: impl IntoIterator<Item = &'b Blob<T>>) -> Result<Self> {
        ReducerOptions::new().register(comm, blobs)
    }

    /// Collective: one step. `work` marks the diff of every registered blob as final
    /// ([`Step::ready`]), in any order; then the step waits until every diff has the combined
    /// values of all ranks. No other method of the communicator can be used meanwhile. The blobs
    /// are borrowed until the step has returned.
    ///
    /// If a step fails after the first `ready`, or `work` then returns an error or panics, the step
    /// is abandoned: it waits for started buckets, diffs are unspecified, reducer and communicator
    /// are unusable, and the other ranks wait for the buckets that this rank has not started. A
    /// diff that the engine may still use is released, and reads as zeros.
    ///
    /// # Errors
    /// Errors of `work`; [`InvalidArgument`](ErrorKind::InvalidArgument): a blob was not ready, its
    /// number is in the message; out of memory; a device that fails;
    /// [`CommFailure`](ErrorKind::CommFailure), also if an earlier step was abandoned.
    pub fn step<'env, R, E: From<Error>>(
        &mut self,
        work: impl FnOnce(&Step<'_, 'env, T>) -> Result<R, E>,
    ) -> Result<R, E> {
        if self.raw.is_none() {
            let message = "the reducer is of no use: an earlier step was given up";
            return Err(Error::new(ErrorKind::CommFailure, message).into());
        }
        let step = Step::new(&mut self.raw);
        let result = work(&step)?;
        step.wait()?;
        Ok(result)
    }

    /// The communicator.
    pub fn comm(&self) -> &'c Comm {
        self.comm
    }
}

impl<T: Reduced> Drop for Reducer<'_, T> {
    fn drop(&mut self) {
        end(&mut self.raw);
    }
}

impl<T: Reduced> fmt::Debug for Reducer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reducer").field("comm", self.comm).finish_non_exhaustive()
    }
}

fn end(reducer: &mut Option<NonNull<sys::sb_reducer>>) {
    if let Some(raw) = reducer.take() {
        // SAFETY: the reducer is live and ends here, before its communicator.
        unsafe { sys::sb_reducer_destroy(raw.as_ptr()) }
    }
}

/// A step of a [`Reducer`]. `'env` is as long as its blobs are borrowed, which is longer than the
/// step.
pub struct Step<'step, 'env, T: Reduced> {
    reducer: RefCell<&'step mut Option<NonNull<sys::sb_reducer>>>,
    /// A cell, so that `'env` cannot be taken for a shorter one.
    ready: RefCell<Vec<&'env mut Blob<T>>>,
    /// Not ended yet, and the engine may be using a diff.
    flies: Cell<bool>,
}

impl<'step, 'env, T: Reduced> Step<'step, 'env, T> {
    fn new(reducer: &'step mut Option<NonNull<sys::sb_reducer>>) -> Self {
        Self {
            reducer: RefCell::new(reducer),
            ready: RefCell::new(Vec::new()),
            flies: Cell::new(false),
        }
    }

    fn raw(&self) -> *mut sys::sb_reducer {
        self.reducer.borrow().map_or(std::ptr::null_mut(), NonNull::as_ptr)
    }

    /// Marks the blob's diff as final in this step. Starts buckets that can start, and makes
    /// progress on started ones; does not wait for other ranks.
    ///
    /// ```compile_fail,E0499
    /// # use syncblob::{comm::{Reducer, SimOptions}, Blob};
    /// # let comm = SimOptions::new().ranks(1).unwrap().remove(0);
    /// let mut blob = Blob::<f32>::zeros([3]).unwrap();
    /// let mut reducer = Reducer::new(&comm, [&blob]).unwrap();
    /// reducer.step(|step| {
    ///     step.ready(&mut blob)?;
    ///     blob.diff_mut()?[0] = 1.0; // it is on its way
    ///     syncblob::Result::Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument): not registered;
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch), [`DtypeMismatch`](ErrorKind::DtypeMismatch):
    /// another count or type than when it was registered; [`Shared`](ErrorKind::Shared): another
    /// blob uses the diff; [`CommFailure`](ErrorKind::CommFailure).
    pub fn ready(&self, blob: &'env mut Blob<T>) -> Result<()> {
        blob.need_unique(Part::Diff)?;
        let raw = blob.as_ptr();
        self.ready.borrow_mut().push(blob);
        // SAFETY: reducer and blob are live. The blob is borrowed, and the step ends, for as long
        // as the library may use it; its diff has no other owner.
        let result = check(|err| unsafe { sys::sb_reducer_ready(self.raw(), raw, err) });
        let begun = match &result {
            Ok(()) => true,
            Err(error) => error.kind() == ErrorKind::CommFailure,
        };
        self.flies.set(self.flies.get() || begun);
        result
    }

    fn wait(self) -> Result<()> {
        // SAFETY: the reducer is live.
        check(|err| unsafe { sys::sb_reducer_wait(self.raw(), err) })?;
        self.flies.set(false);
        Ok(())
    }
}

/// Abandons unfinished buckets, also after a panic of the caller's code.
impl<T: Reduced> Drop for Step<'_, '_, T> {
    fn drop(&mut self) {
        if !self.flies.get() {
            return;
        }
        end(self.reducer.get_mut());
        for blob in self.ready.get_mut() {
            // The engine may still write memory that the library still holds.
            if !blob.is_unique(Part::Diff).unwrap_or(false) {
                blob.release(Part::Diff);
            }
        }
    }
}

impl<T: Reduced> fmt::Debug for Step<'_, '_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step").field("ready", &self.ready.borrow().len()).finish_non_exhaustive()
    }
}
