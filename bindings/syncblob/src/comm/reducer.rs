use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use syncblob_sys as sys;

use super::{Comm, Op};
use crate::ffi::{check, get, sized, to_i64};
use crate::{Blob, Error, ErrorKind, Part, Reduced, Result};

/// Options of a [`Reducer`]. All ranks must set equal options.
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
    /// Returns the default options: the mean, in buckets of 25 MiB.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how diffs are combined.
    pub fn op(mut self, op: Op) -> Self {
        self.op = op;
        self
    }

    /// Sets the maximum size of a bucket in bytes. With 0 every blob is reduced separately.
    pub fn bucket_bytes(mut self, bytes: usize) -> Self {
        self.bucket_bytes = bytes;
        self
    }

    /// Collective: registers blobs, in the order of their layers. Ranks compare the options, and
    /// the number, order, types and shapes of the blobs. If two ranks differ or one rank fails,
    /// every rank returns an error. The message for a difference contains the values of both ranks.
    ///
    /// # Errors
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch), [`DtypeMismatch`](ErrorKind::DtypeMismatch),
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) if the ranks' blobs or options differ;
    /// [`Shared`](ErrorKind::Shared): two blobs share a diff; out of memory;
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
        // SAFETY: communicator and blobs are live. Registration may run concurrently with const
        // calls on the blobs. Between steps the reducer uses only the blobs' addresses.
        let raw = get(|out, err| unsafe {
            let count = to_i64(blobs.len());
            sys::sb_reducer_create(comm.as_ptr(), blobs.as_ptr(), count, &options, out, err)
        })?;
        Ok(Reducer { raw: NonNull::new(raw), comm, elements: PhantomData })
    }
}

/// Sums diffs over all ranks while the rest of a training step is still being computed. Blobs are
/// registered once, and borrowed only during each step. See the [module](super).
///
/// Small blobs are gathered in buckets, from the last registered blob to the first, because a
/// backward pass finishes the last layer first. A blob needs no bucket, and is reduced in place, if
/// it would fill a bucket or has at least 128 KiB per rank. The reducer identifies a blob by its C
/// handle, so a program may move the blob. A dropped blob can never be ready again, so later steps
/// fail.
pub struct Reducer<'c, T: Reduced> {
    /// `None` after an abandoned step.
    raw: Option<NonNull<sys::sb_reducer>>,
    comm: &'c Comm,
    elements: PhantomData<T>,
}

impl<'c, T: Reduced> Reducer<'c, T> {
    /// Collective: registers blobs with the default options. See [`ReducerOptions::register`].
    ///
    /// # Errors
    /// Errors of [`ReducerOptions::register`].
    pub fn new<'b>(comm: &'c Comm, blobs: impl IntoIterator<Item = &'b Blob<T>>) -> Result<Self> {
        ReducerOptions::new().register(comm, blobs)
    }

    /// Collective: runs one step. `work` marks the diff of every registered blob as final
    /// ([`Step::ready`]), in any order. Then the step waits until every diff has the combined
    /// values of all ranks. From the first `ready` to the end of the step the communicator's other
    /// collective methods return an error. The blobs are borrowed until the step has returned.
    ///
    /// A step is abandoned if it fails after the first `ready`, or if `work` returns an error or
    /// panics after the first `ready`. An abandoned step waits for started buckets. Afterwards, the
    /// diffs are unspecified, and the reducer and the communicator are unusable. The other ranks
    /// wait for the buckets that this rank has not started. If the engine may still use a diff's
    /// memory, the blob releases that memory, and its diff reads as zeros.
    ///
    /// # Errors
    /// - Errors of `work`.
    /// - [`InvalidArgument`](ErrorKind::InvalidArgument) if a blob was not ready (the message
    ///   contains the blob's number).
    /// - Out of memory.
    /// - A device that fails.
    /// - [`CommFailure`](ErrorKind::CommFailure), also if an earlier step was abandoned.
    pub fn step<'env, R, E: From<Error>>(
        &mut self,
        work: impl FnOnce(&Step<'_, 'env, T>) -> Result<R, E>,
    ) -> Result<R, E> {
        if self.raw.is_none() {
            let message = "the reducer is unusable: an earlier step was abandoned";
            return Err(Error::new(ErrorKind::CommFailure, message).into());
        }
        let step = Step::new(&mut self.raw);
        let result = work(&step)?;
        step.wait()?;
        Ok(result)
    }

    /// Returns the communicator.
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
        // SAFETY: the reducer is live, and is destroyed before its communicator.
        unsafe { sys::sb_reducer_destroy(raw.as_ptr()) }
    }
}

/// A step of a [`Reducer`]. The blobs are borrowed for `'env`, which is longer than the step.
pub struct Step<'step, 'env, T: Reduced> {
    reducer: RefCell<&'step mut Option<NonNull<sys::sb_reducer>>>,
    /// The `RefCell` makes `'env` invariant: the compiler cannot shorten it.
    ready: RefCell<Vec<&'env mut Blob<T>>>,
    /// True from the first `ready` until the step ends, while the engine may be using a diff.
    in_flight: Cell<bool>,
}

impl<'step, 'env, T: Reduced> Step<'step, 'env, T> {
    fn new(reducer: &'step mut Option<NonNull<sys::sb_reducer>>) -> Self {
        Self {
            reducer: RefCell::new(reducer),
            ready: RefCell::new(Vec::new()),
            in_flight: Cell::new(false),
        }
    }

    fn raw(&self) -> *mut sys::sb_reducer {
        self.reducer.borrow().map_or(std::ptr::null_mut(), NonNull::as_ptr)
    }

    /// Marks the blob's diff as final in this step. Starts a bucket when all its blobs are ready
    /// and the earlier buckets have started. Does not wait for other ranks.
    ///
    /// ```compile_fail,E0499
    /// # use syncblob::{comm::{Reducer, SimOptions}, Blob};
    /// # let comm = SimOptions::new().ranks(1).unwrap().remove(0);
    /// let mut blob = Blob::<f32>::zeros([3]).unwrap();
    /// let mut reducer = Reducer::new(&comm, [&blob]).unwrap();
    /// reducer.step(|step| {
    ///     step.ready(&mut blob)?;
    ///     blob.diff_mut()?[0] = 1.0; // the diff is in flight
    ///     syncblob::Result::Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    /// - [`InvalidArgument`](ErrorKind::InvalidArgument): the blob is not registered.
    /// - [`ShapeMismatch`](ErrorKind::ShapeMismatch), [`DtypeMismatch`](ErrorKind::DtypeMismatch):
    ///   the count or the type has changed since the blob was registered.
    /// - [`Shared`](ErrorKind::Shared): the diff has another owner.
    /// - [`CommFailure`](ErrorKind::CommFailure).
    pub fn ready(&self, blob: &'env mut Blob<T>) -> Result<()> {
        blob.need_unique(Part::Diff)?;
        let raw = blob.as_ptr();
        self.ready.borrow_mut().push(blob);
        // SAFETY: reducer and blob are live, and the diff has no other owner. The blob is borrowed
        // for `'env`, which is longer than the step. The library uses the blob only in the step.
        let result = check(|err| unsafe { sys::sb_reducer_ready(self.raw(), raw, err) });
        let begun = match &result {
            Ok(()) => true,
            Err(error) => error.kind() == ErrorKind::CommFailure,
        };
        self.in_flight.set(self.in_flight.get() || begun);
        result
    }

    fn wait(self) -> Result<()> {
        // SAFETY: the reducer is live.
        check(|err| unsafe { sys::sb_reducer_wait(self.raw(), err) })?;
        self.in_flight.set(false);
        Ok(())
    }
}

/// Abandons unfinished buckets after an error or a panic of the caller's code.
impl<T: Reduced> Drop for Step<'_, '_, T> {
    fn drop(&mut self) {
        if !self.in_flight.get() {
            return;
        }
        end(self.reducer.get_mut());
        for blob in self.ready.get_mut() {
            // If the library is still an owner of the memory, the engine may still write the
            // memory.
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
