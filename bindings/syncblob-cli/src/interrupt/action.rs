//! Replaces the actions of signals while work can be interrupted, and then restores them.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::mem;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use libc::c_int;

/// The last signal that arrived, or 0 if no signal has arrived.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The first `Listening` installs our actions. The last drop restores the earlier actions.
static LISTENERS: Mutex<Listeners> =
    Mutex::new(Listeners { count: 0, is_stopped: false, earlier: Vec::new() });

struct Listeners {
    count: usize,
    /// Whether a signal has stopped the work of at least one `Listening`.
    is_stopped: bool,
    earlier: Vec<(c_int, system::Action)>,
}

pub fn arrived() -> bool {
    SIGNAL.load(Ordering::Relaxed) != 0
}

/// While a value of this type exists, signals are recorded and do nothing else.
pub struct Listening {
    is_settled: Cell<bool>,
}

impl Listening {
    pub fn new() -> io::Result<Self> {
        let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.count += 1;
        let listening = Self { is_settled: Cell::new(false) };
        if listeners.count == 1 {
            let noted = system::NOTED.iter().map(|&number| (number, system::ours()));
            let ignored = system::IGNORED.iter().map(|&number| (number, system::ignoring()));
            for (number, action) in noted.chain(ignored) {
                match system::replace(number, &action) {
                    Ok(Some(earlier)) => listeners.earlier.push((number, earlier)),
                    Ok(None) => {}
                    Err(error) => {
                        drop(listeners);
                        return Err(error); // dropping `listening` locks the mutex again
                    }
                }
            }
        }
        drop(listeners);
        Ok(listening)
    }

    pub fn settle(&self) {
        self.is_settled.set(true);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.count -= 1;
        listeners.is_stopped |= arrived() && !self.is_settled.get();
        if listeners.count > 0 {
            return;
        }
        let mut ends_program = false;
        for (number, earlier) in listeners.earlier.drain(..) {
            ends_program |= number == SIGNAL.load(Ordering::Relaxed) && system::ends(&earlier);
            system::restore(number, &earlier);
        }
        let signal = SIGNAL.swap(0, Ordering::Relaxed);
        let is_stopped = mem::take(&mut listeners.is_stopped);
        drop(listeners);
        if signal != 0 && (is_stopped || !ends_program) {
            system::send(signal);
        }
    }
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::atomic::Ordering;

    use libc::c_int;

    pub type Action = libc::sigaction;

    pub const NOTED: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

    /// While SIGXFSZ is ignored, a write beyond the file size limit returns an error.
    pub const IGNORED: [c_int; 1] = [libc::SIGXFSZ];

    extern "C" fn note(number: c_int) {
        super::SIGNAL.store(number, Ordering::Relaxed);
    }

    pub fn ours() -> Action {
        // The handler only stores a number, which is safe in a signal handler.
        let ours: extern "C" fn(c_int) = note;
        action(ours as libc::sighandler_t)
    }

    pub fn ignoring() -> Action {
        action(libc::SIG_IGN)
    }

    fn action(handler: libc::sighandler_t) -> Action {
        // SAFETY: the struct has only numbers. Zeros mean no flags and an empty mask.
        let mut action = unsafe { MaybeUninit::<Action>::zeroed().assume_init() };
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        action
    }

    /// Sets an action and returns the previous action. Returns None for a signal that the program
    /// ignores, for example under nohup. Such a signal remains ignored.
    pub fn replace(number: c_int, action: &Action) -> io::Result<Option<Action>> {
        let mut earlier = MaybeUninit::<Action>::uninit();
        // SAFETY: `action` is the result of `ours` or `ignoring`.
        if unsafe { libc::sigaction(number, action, earlier.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `sigaction` has written `earlier`.
        let earlier = unsafe { earlier.assume_init() };
        if earlier.sa_sigaction == libc::SIG_IGN {
            restore(number, &earlier);
            return Ok(None);
        }
        Ok(Some(earlier))
    }

    pub fn ends(action: &Action) -> bool {
        action.sa_sigaction == libc::SIG_DFL
    }

    pub fn restore(number: c_int, earlier: &Action) {
        // SAFETY: `earlier` is the previous action of the signal.
        unsafe { libc::sigaction(number, earlier, ptr::null_mut()) };
    }

    /// Sends the signal to the whole process, as its original sender did.
    pub fn send(number: c_int) {
        // SAFETY: the call takes no pointers.
        unsafe { libc::kill(libc::getpid(), number) };
    }
}

/// On Windows, an action is a handler without flags. On Ctrl+C the runtime calls SIGINT's handler.
#[cfg(windows)]
mod system {
    use std::io;
    use std::sync::atomic::Ordering;

    use libc::{c_int, sighandler_t};

    const DEFAULT: sighandler_t = 0;
    const IGNORE: sighandler_t = 1;
    const FAILED: sighandler_t = sighandler_t::MAX;

    pub type Action = sighandler_t;

    pub const NOTED: [c_int; 2] = [libc::SIGINT, libc::SIGTERM];
    pub const IGNORED: [c_int; 0] = [];

    extern "C" fn note(number: c_int) {
        super::SIGNAL.store(number, Ordering::Relaxed);
        // The runtime restores the default action before it calls a handler.
        let _ = put(number, ours());
    }

    pub fn ours() -> Action {
        let ours: extern "C" fn(c_int) = note;
        ours as sighandler_t
    }

    pub fn ignoring() -> Action {
        IGNORE
    }

    fn put(number: c_int, action: Action) -> Action {
        // SAFETY: `action` is our handler, SIG_IGN or the previous action of the signal.
        unsafe { libc::signal(number, action) }
    }

    pub fn replace(number: c_int, action: &Action) -> io::Result<Option<Action>> {
        match put(number, *action) {
            FAILED => Err(io::Error::last_os_error()),
            IGNORE => {
                restore(number, &IGNORE);
                Ok(None)
            }
            earlier => Ok(Some(earlier)),
        }
    }

    pub fn ends(action: &Action) -> bool {
        *action == DEFAULT
    }

    pub fn restore(number: c_int, earlier: &Action) {
        let earlier = if *earlier == ours() { DEFAULT } else { *earlier };
        put(number, earlier);
    }

    pub fn send(number: c_int) {
        // SAFETY: the call takes no pointers.
        unsafe { libc::raise(number) };
    }
}

/// WASI has no signals.
#[cfg(target_os = "wasi")]
mod system {
    use std::io;

    use libc::c_int;

    pub type Action = ();

    pub const NOTED: [c_int; 0] = [];
    pub const IGNORED: [c_int; 0] = [];

    pub fn ours() -> Action {}

    pub fn ignoring() -> Action {}

    pub fn replace(_: c_int, (): &Action) -> io::Result<Option<Action>> {
        Ok(None)
    }

    pub fn ends((): &Action) -> bool {
        false
    }

    pub fn restore(_: c_int, (): &Action) {}

    pub fn send(_: c_int) {}
}
