//! Memory of the caller's that the C library keeps, and its owners.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::panic::{self, AssertUnwindSafe};

use syncblob_sys as sys;

use crate::Result;

/// Whether the library may write memory that it is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// It may.
    Writable,
    /// It never does: it moves to memory of its own first.
    ReadOnly,
}

impl Access {
    pub(crate) fn flags(self) -> u32 {
        match self {
            Self::Writable => 0,
            Self::ReadOnly => sys::SB_READ_ONLY,
        }
    }
}

/// Makes a call that, if it succeeds, keeps `owner` until its deleter runs.
pub(crate) fn lend<O: Send + Sync + 'static, R>(
    owner: Box<O>,
    call: impl FnOnce(sys::sb_deleter, *mut c_void) -> Result<R>,
) -> Result<R> {
    Pinned(Box::into_raw(owner)).lend(call)
}

/// A boxed owner that is reached through a raw pointer alone: a `Box` claims
/// what it holds for itself whenever it moves, and so ends what was lent of it.
struct Pinned<O>(*mut O);

impl<O: Send + Sync + 'static> Pinned<O> {
    fn lend<R>(self, call: impl FnOnce(sys::sb_deleter, *mut c_void) -> Result<R>) -> Result<R> {
        let owner = ManuallyDrop::new(self);
        let result = call(Some(drop_owner::<O>), owner.0.cast());
        if result.is_err() {
            // On failure the deleter has not run and never will.
            drop(ManuallyDrop::into_inner(owner));
        }
        result
    }
}

impl<O> Drop for Pinned<O> {
    fn drop(&mut self) {
        // SAFETY: from `Box::into_raw`, and not given to C.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// The same for what an owner lends of itself, for reading.
pub(crate) fn lend_shared<O, E, R>(
    owner: O,
    call: impl FnOnce(&[E], sys::sb_deleter, *mut c_void) -> Result<R>,
) -> Result<R>
where
    O: AsRef<[E]> + Send + Sync + 'static,
    E: 'static,
{
    // Boxed first, so that what it lends does not move with it.
    let owner = Pinned(Box::into_raw(Box::new(owner)));
    // SAFETY: the owner is alive and neither moved nor mutably borrowed until
    // the deleter, or `Pinned` after a failure, drops it.
    let lent = unsafe { (*owner.0.cast_const()).as_ref() };
    owner.lend(|deleter, user| call(lent, deleter, user))
}

/// Memory whose owner is wanted back, and the owner.
#[derive(Default)]
struct Wanted {
    lent: Option<*const c_void>,
    owner: Option<Box<dyn Any>>,
}

thread_local! {
    static WANTED: RefCell<Wanted> = RefCell::default();
}

/// Whether `reclaim` can give anything back: not on a thread that ends.
pub(crate) fn can_reclaim() -> bool {
    WANTED.try_with(|_| ()).is_ok()
}

/// Runs what ends the use of lent memory, and gives the owner of it back. None where
/// that did not end the last use.
pub(crate) fn reclaim(lent: *const c_void, end: impl FnOnce()) -> Option<Box<dyn Any>> {
    WANTED.set(Wanted { lent: Some(lent), owner: None });
    end();
    WANTED.take().owner
}

/// Drops an owner, or hands it to `reclaim`.
unsafe extern "C" fn drop_owner<O: 'static>(user: *mut c_void, ptr: *mut c_void) {
    contain(|| {
        // SAFETY: `user` is the boxed owner, and the deleter runs once.
        let owner = unsafe { Box::from_raw(user.cast::<O>()) };
        let is_wanted = |wanted: &RefCell<Wanted>| wanted.borrow().lent == Some(ptr.cast_const());
        // A thread that ends has no thread-locals any more, and wants nothing back.
        if WANTED.try_with(is_wanted).unwrap_or(false) {
            WANTED.set(Wanted { lent: None, owner: Some(owner) });
        }
    });
}

/// Runs code of the caller's from C: a panic must not cross C's frames. None
/// if it panicked.
pub(crate) fn contain<R>(code: impl FnOnce() -> R) -> Option<R> {
    match panic::catch_unwind(AssertUnwindSafe(code)) {
        Ok(result) => Some(result),
        Err(payload) => {
            // What was thrown may panic when it is dropped; then it is leaked.
            let dropped = panic::catch_unwind(AssertUnwindSafe(|| drop(payload)));
            std::mem::forget(dropped);
            None
        }
    }
}
