//! C callbacks that call the caller's allocators, `parallel_for` functions and blob closures.

use std::alloc::{GlobalAlloc, Layout};
use std::any::Any;
use std::ffi::c_void;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};

use syncblob_sys as sys;

use crate::owner::contain;
use crate::{BlobAny, BlobAt, Error, Result};

/// A function that splits work over threads, for example over a thread pool. The arguments are a
/// number `n` and a task. The function must call the task `n` times, on any threads, and must
/// return only after all these calls have returned.
pub trait ParallelFor: Fn(usize, &(dyn Fn() + Sync)) + Sync {}

impl<F: Fn(usize, &(dyn Fn() + Sync)) + Sync> ParallelFor for F {}

/// A [`ParallelFor`] in the form that C calls: a function and its argument.
pub(crate) type Spread = (sys::sb_parallel_for, *mut c_void);

type Task = Option<unsafe extern "C" fn(arg: *mut c_void, i: i64)>;

/// The argument of a C task. Any thread may run the task.
struct Arg(*mut c_void);

// SAFETY: the library documents that tasks run on any threads, concurrently.
unsafe impl Sync for Arg {}

impl Arg {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

pub(crate) fn parallel_for_to_c<F: ParallelFor>(spread: &'static F) -> Spread {
    (Some(run_tasks::<F>), ptr::from_ref(spread).cast_mut().cast())
}

/// Runs every task exactly once, even if the caller's function calls the closure too often or too
/// rarely. Each call of the closure runs the next task. Calls after the last task do nothing. If
/// the caller's function returns or panics early, this function runs the remaining tasks. No call
/// of the closure is running at that time, because the caller's function only borrowed the closure.
unsafe extern "C" fn run_tasks<F: ParallelFor>(
    user: *mut c_void,
    tasks: i64,
    task: Task,
    arg: *mut c_void,
) {
    let Some(task) = task else { return };
    // SAFETY: `user` is the static function that was passed to `parallel_for_to_c`.
    let spread = unsafe { &*user.cast_const().cast::<F>() };
    let (next, arg) = (AtomicI64::new(0), Arg(arg));
    let run_next = || {
        let i = next.fetch_add(1, Ordering::Relaxed);
        if i < tasks {
            // SAFETY: the task is the library's, and runs once for this `i`.
            unsafe { task(arg.get(), i) };
        }
    };
    contain(|| spread(usize::try_from(tasks).unwrap_or(0), &run_next));
    while next.load(Ordering::Relaxed) < tasks {
        run_next();
    }
}

/// A [`ParallelFor`] that runs the tasks on rayon's current thread pool.
#[cfg(feature = "rayon")]
pub(crate) fn rayon_for(tasks: usize, task: &(dyn Fn() + Sync)) {
    use rayon::prelude::*;
    (0..tasks).into_par_iter().for_each(|_| task());
}

pub(crate) fn allocator_to_c<A: GlobalAlloc + Sync>(allocator: &'static A) -> sys::sb_allocator {
    sys::sb_allocator {
        alloc: Some(alloc::<A>),
        free: Some(free::<A>),
        user: ptr::from_ref(allocator).cast_mut().cast(),
    }
}

unsafe extern "C" fn alloc<A: GlobalAlloc + Sync>(
    user: *mut c_void,
    bytes: usize,
    alignment: usize,
    flags: u32,
) -> *mut c_void {
    let Ok(layout) = Layout::from_size_align(bytes, alignment) else { return ptr::null_mut() };
    let made = contain(|| {
        // SAFETY: `user` is the static allocator. The size is not 0.
        unsafe {
            let allocator = &*user.cast::<A>();
            match flags & sys::SB_ALLOC_ZEROED {
                0 => allocator.alloc(layout),
                _ => allocator.alloc_zeroed(layout),
            }
        }
    });
    made.map_or(ptr::null_mut(), |memory| memory.cast())
}

unsafe extern "C" fn free<A: GlobalAlloc + Sync>(
    user: *mut c_void,
    memory: *mut c_void,
    bytes: usize,
    alignment: usize,
    _flags: u32,
) {
    let Ok(layout) = Layout::from_size_align(bytes, alignment) else { return };
    contain(|| {
        // SAFETY: `memory` is from `alloc` with the same layout.
        unsafe { (*user.cast::<A>()).dealloc(memory.cast(), layout) }
    });
}

/// The state of `lend_blobs`: the closure that returns blobs, the blob that the library is using,
/// and the closure's failure.
struct Lender<F, E> {
    values: F,
    lent: Option<BlobAny>,
    failure: Option<Failure<E>>,
}

enum Failure<E> {
    Returned(E),
    Panicked(Box<dyn Any + Send>),
}

/// Makes a call of the library that requests blobs one by one from `values`.
pub(crate) fn lend_blobs<F, E>(
    values: F,
    call: impl FnOnce(sys::sb_blob_lender, *mut c_void) -> Result<()>,
) -> Result<(), E>
where
    F: FnMut(BlobAt) -> Result<BlobAny, E>,
    E: From<Error>,
{
    let mut lender = Lender { values, lent: None, failure: None };
    let result = call(Some(lend_blob::<F, E>), ptr::from_mut(&mut lender).cast());
    match lender.failure {
        Some(Failure::Returned(error)) => Err(error),
        Some(Failure::Panicked(payload)) => panic::resume_unwind(payload),
        None => result.map_err(E::from),
    }
}

unsafe extern "C" fn lend_blob<F, E>(
    user: *mut c_void,
    layer: i64,
    index: i64,
    out: *mut *const sys::sb_blob,
    err: *mut sys::sb_error,
) -> sys::sb_status
where
    F: FnMut(BlobAt) -> Result<BlobAny, E>,
{
    // SAFETY: `user` is the lender of `lend_blobs`, which has not returned yet.
    let lender = unsafe { &mut *user.cast::<Lender<F, E>>() };
    // The library no longer uses the blob of the previous call.
    lender.lent = None;
    let values = AssertUnwindSafe(|| (lender.values)(BlobAt::from_c(layer, index)));
    let failure = match panic::catch_unwind(values) {
        Ok(Ok(blob)) => {
            // SAFETY: `out` is valid. The blob lives until the next call.
            unsafe { *out = lender.lent.insert(blob).as_ptr() };
            return sys::SB_OK;
        }
        Ok(Err(error)) => Failure::Returned(error),
        Err(payload) => Failure::Panicked(payload),
    };
    let earlier = lender.failure.replace(failure);
    contain(|| drop(earlier));
    // This error only ends the library's call: the caller of `lend_blobs` gets the stored failure.
    let reported =
        sys::sb_error { code: sys::SB_ERR_IO, device_code: 0, offset: -1, message: [0; 240] };
    if !err.is_null() {
        // SAFETY: `err` is valid for one error.
        unsafe { err.write(reported) };
    }
    sys::SB_ERR_IO
}
