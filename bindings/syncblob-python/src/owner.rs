//! Defers the release of arrays until no lock is held.
//!
//! The library calls a tensor's deleter when a call drops the last reference to the memory. During
//! that call, locks are held. The deleter may run any Python code, which would deadlock if it used
//! the same blob. So a blob gets a substitute tensor, whose deleter only queues the array's tensor.
//! After the call, when no lock is held, the array's tensor is released. A tensor that a blob
//! exported needs no substitute, because its release runs no Python code.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr::NonNull;

use syncblob::{Dlpack, LegacyDlpack, Result};
use syncblob_sys as sys;

enum Owner {
    Versioned(#[expect(dead_code, reason = "is dropped")] Dlpack),
    Legacy(#[expect(dead_code, reason = "is dropped")] LegacyDlpack),
}

thread_local! {
    /// The owners that `outlived_by_owners` will release on this thread. None while that function
    /// is not running.
    static LATER: RefCell<Option<Vec<Owner>>> = const { RefCell::new(None) };
}

/// Runs `work`, which takes locks, and then releases the queued owners. A loop releases the owners.
/// A release may drop a blob that uses a further owner, so recursion could overflow the stack. In
/// nested calls, the outermost call releases the owners.
pub fn outlived_by_owners<T>(work: impl FnOnce() -> T) -> T {
    struct Release;
    impl Drop for Release {
        fn drop(&mut self) {
            while let Some(owner) = next() {
                drop(owner); // may call this function again
            }
        }
    }
    let begin = |later: &RefCell<Option<Vec<Owner>>>| {
        let mut later = later.borrow_mut();
        later.is_none().then(|| *later = Some(Vec::new()))
    };
    let _release = LATER.try_with(begin).ok().flatten().map(|()| Release);
    work()
}

/// Removes an owner from the queue and returns it. If the queue is empty, removes the queue.
fn next() -> Option<Owner> {
    LATER.with_borrow_mut(|later| {
        let owner = later.as_mut()?.pop();
        if owner.is_none() {
            *later = None;
        }
        owner
    })
}

fn end(owner: Owner) {
    outlived_by_owners(|| {
        // If the thread is ending, the queue is gone, so the owner is dropped with the closure.
        let _ = LATER.try_with(|later| later.borrow_mut().get_or_insert_with(Vec::new).push(owner));
    });
}

/// The substitute tensor that a blob gets instead of the array's tensor.
struct Lent {
    tensor: sys::sb_dl_managed_versioned,
    owner: Owner,
}

unsafe extern "C" fn end_lent(tensor: *mut sys::sb_dl_managed_versioned) {
    // SAFETY: `lend` made the tensor, and a deleter is called once.
    let lent = unsafe { Box::from_raw((*tensor).manager_ctx.cast::<Lent>()) };
    end(lent.owner);
}

fn lend(tensor: sys::sb_dl_managed_versioned, owner: Owner) -> Result<Dlpack> {
    let lent = Box::into_raw(Box::new(Lent { tensor, owner }));
    // SAFETY: the box is live, and the pointer covers all of it. The owner keeps the tensor's
    // memory alive.
    unsafe {
        (*lent).tensor.manager_ctx = lent.cast::<c_void>();
        (*lent).tensor.deleter = Some(end_lent);
        Dlpack::from_raw(NonNull::new_unchecked(&raw mut (*lent).tensor))
    }
}

/// # Safety
/// The caller keeps the contract of `Dlpack::from_raw`.
pub unsafe fn versioned(tensor: NonNull<sys::sb_dl_managed_versioned>) -> Result<Dlpack> {
    // SAFETY: the caller keeps the contract. `from_raw` has checked the struct's version.
    let (owner, copy) = unsafe { (Dlpack::from_raw(tensor)?, tensor.read()) };
    lend(copy, Owner::Versioned(owner))
}

/// # Safety
/// The caller keeps the contract of `LegacyDlpack::from_raw`.
pub unsafe fn legacy(tensor: NonNull<sys::sb_dl_managed>) -> Result<Dlpack> {
    // SAFETY: the caller keeps this function's contract.
    let (owner, dl_tensor) = unsafe { (LegacyDlpack::from_raw(tensor), tensor.as_ref().dl_tensor) };
    let version = sys::sb_dl_version { major: sys::SB_DL_MAJOR_VERSION, minor: 0 };
    let (manager_ctx, deleter) = (std::ptr::null_mut(), None);
    let copy = sys::sb_dl_managed_versioned { version, manager_ctx, deleter, flags: 0, dl_tensor };
    lend(copy, Owner::Legacy(owner))
}
