//! Checks whether standard output was open at the start and can be written.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether standard output could not be written when the program started.
static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Makes the loader call `look` before `main`, or while it loads a library that contains this code.
#[used]
#[cfg_attr(target_vendor = "apple", link_section = "__DATA,__mod_init_func")]
#[cfg_attr(not(target_vendor = "apple"), link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    WAS_CLOSED.store(!can_be_written(), Ordering::Relaxed);
}

pub fn is_open() -> bool {
    !WAS_CLOSED.load(Ordering::Relaxed) && can_be_written()
}

fn can_be_written() -> bool {
    // SAFETY: the call takes no pointers, and fails if the descriptor is not open.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
    flags != -1 && flags & libc::O_ACCMODE != libc::O_RDONLY
}
