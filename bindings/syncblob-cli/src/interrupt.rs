//! SIGINT and SIGTERM end the work between two pieces of it, so that nothing
//! half-written stays.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::source::{Failure, Result};
use crate::Status;

#[derive(Clone, Default)]
pub struct Interrupt {
    /// The signal that came, 0 for none.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Until then a signal ends the program at once.
    pub fn listen(&self) -> io::Result<()> {
        for number in [SIGINT, SIGTERM] {
            let value = usize::try_from(number).unwrap_or_default();
            flag::register_usize(number, Arc::clone(&self.signal), value)?;
        }
        Ok(())
    }

    /// An error once a signal has come.
    pub fn check(&self) -> Result<()> {
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            _ => Err(Failure::Interrupted),
        }
    }

    /// The same as a progress of the library, whose call it cancels.
    pub fn progress(&self) -> impl Fn(u64, u64) -> ControlFlow<()> + Send + Sync + 'static {
        let interrupt = self.clone();
        move |_, _| match interrupt.check() {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    /// Ends as the signal would have ended the program, so that a shell sees it.
    pub fn end(&self) -> Status {
        let signal = self.signal.load(Ordering::Relaxed);
        // Returns only for a signal that does not end programs.
        let _ = low_level::emulate_default_handler(i32::try_from(signal).unwrap_or_default());
        Status::FAILURE
    }
}

#[cfg(test)]
impl Interrupt {
    /// As if a signal had come.
    pub fn come(&self) {
        self.signal.store(SIGINT.unsigned_abs() as usize, Ordering::Relaxed);
    }
}
