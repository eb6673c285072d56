//! Memory that the caller owns and the C library uses, and the owners of that memory.

use std::any::Any;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::panic::{self, AssertUnwindSafe};

use syncblob_sys as sys;

use crate::Result;

/// Whether the library may write memory that the caller owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// The library may write the memory.
    Writable,
    /// The library never writes the memory. Writes go to a private copy.
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

/// Passes the content of a box to `call`. If `call` succeeds, `call` owns the content.
pub(crate) fn give<O, R>(owner: Box<O>, call: impl FnOnce(*mut c_void) -> Result<R>) -> Result<R> {
    let owner = ManuallyDrop::new(Pinned(Box::into_raw(owner)));
    let result = call(owner.0.cast());
    if result.is_err() {
        drop(ManuallyDrop::into_inner(owner));
    }
    result
}

/// Passes `owner` to `call`. If `call` succeeds, C owns `owner` until the deleter runs or `reclaim`
/// returns `owner`.
pub(crate) fn lend<O: Send + Sync + 'static, R>(
    owner: Box<O>,
    call: impl FnOnce(sys::sb_deleter, *mut c_void) -> Result<R>,
) -> Result<R> {
    Lent(Pinned(Box::into_raw(owner))).to(call)
}

/// Like `lend`, but also passes to `call` the owner's elements, which C may only read.
pub(crate) fn lend_shared<O, E, R>(
    owner: O,
    call: impl FnOnce(&[E], sys::sb_deleter, *mut c_void) -> Result<R>,
) -> Result<R>
where
    O: AsRef<[E]> + Send + Sync + 'static,
    E: 'static,
{
    // Boxes the owner before the borrow, so that memory inside the owner does not move.
    let owner = Box::into_raw(Box::new(owner));
    let kept = Lent(Pinned(owner));
    // SAFETY: the deleter or, after a failure, `Lent` drops the owner. Until then the owner is
    // neither moved nor mutably borrowed.
    let lent = unsafe { (*owner.cast_const()).as_ref() };
    kept.to(|deleter, user| call(lent, deleter, user))
}

/// A boxed owner behind a raw pointer. A moved `Box` would assert unique access to its content,
/// which would invalidate C's pointers to the owner's memory.
struct Pinned<O: ?Sized>(*mut O);

impl<O: ?Sized> Pinned<O> {
    fn into_box(self) -> Box<O> {
        // SAFETY: the pointer is from `Box::into_raw`, and `self` owns the box.
        unsafe { Box::from_raw(ManuallyDrop::new(self).0) }
    }
}

impl<O: ?Sized> Drop for Pinned<O> {
    fn drop(&mut self) {
        // SAFETY: as in `into_box`.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// An owner, of any type, of memory that C uses. All owners have one deleter, so `reclaim` knows
/// that the pointer from C is a boxed `Lent`.
struct Lent(Pinned<dyn Any + Send + Sync>);

impl Lent {
    fn to<R>(self, call: impl FnOnce(sys::sb_deleter, *mut c_void) -> Result<R>) -> Result<R> {
        give(Box::new(self), |user| call(Some(drop_lent), user))
    }
}

/// Makes a call that takes memory back from C, and returns the memory's owner. The memory must have
/// the deleter `drop_lent`.
///
/// # Safety
/// On success `call` returns the pointer that was passed with the deleter. C then no longer uses
/// the memory.
pub(crate) unsafe fn reclaim(
    call: impl FnOnce(sys::sb_deleter) -> Result<*mut c_void>,
) -> Result<Box<dyn Any + Send + Sync>> {
    let user = call(Some(drop_lent))?;
    // SAFETY: the pointer that belongs to this deleter is a boxed `Lent`.
    let lent = unsafe { Box::from_raw(user.cast::<Lent>()) };
    Ok(lent.0.into_box())
}

#[inline(never)] // C compares the deleter's address
unsafe extern "C" fn drop_lent(user: *mut c_void, _: *mut c_void) {
    contain(|| {
        // SAFETY: `user` is from `Lent::to`, and the deleter runs once.
        drop(unsafe { Box::from_raw(user.cast::<Lent>()) });
    });
}

/// Runs the caller's code in a callback from C. If the code panics, catches the panic, which must
/// not unwind through C, and returns `None`.
pub(crate) fn contain<R>(code: impl FnOnce() -> R) -> Option<R> {
    match panic::catch_unwind(AssertUnwindSafe(code)) {
        Ok(result) => Some(result),
        Err(payload) => {
            // The drop of a panic payload may panic, too. The second payload is leaked.
            let dropped = panic::catch_unwind(AssertUnwindSafe(|| drop(payload)));
            std::mem::forget(dropped);
            None
        }
    }
}
