//! After SIGINT, SIGTERM or SIGHUP, the next check stops the work, so that no half-written file
//! remains. A write beyond the process's file size limit fails instead of raising a signal.

mod action;

use std::cell::OnceCell;
use std::io;
use std::ops::ControlFlow;

use self::action::Listening;
use crate::source::{Failure, Result};

/// Records signals. Dropping an `Interrupt` restores the previous actions, then raises a recorded
/// signal again. After `settle`, a signal whose action would end the program is not raised.
#[derive(Default)]
pub struct Interrupt {
    listening: OnceCell<Listening>,
    #[cfg(test)]
    arrived: std::cell::Cell<bool>,
}

impl Interrupt {
    /// Starts recording signals. Until this call, signals have the program's own actions.
    pub fn listen(&self) -> io::Result<()> {
        if self.listening.get().is_none() {
            let _first = self.listening.set(Listening::new()?);
        }
        Ok(())
    }

    pub fn check(&self) -> Result<()> {
        #[cfg(test)]
        if self.arrived.get() {
            return Err(Failure::Interrupted);
        }
        match self.listening.get() {
            Some(_) if action::arrived() => Err(Failure::Interrupted),
            _ => Ok(()),
        }
    }

    /// Marks the work as complete. Later signals do not end the program, because its exit status
    /// would then report a failure. The program's own handler still runs.
    pub fn settle(&self) {
        if let Some(listening) = self.listening.get() {
            listening.settle();
        }
    }

    /// Returns a callback that cancels a call of the library if a signal has arrived.
    pub fn progress(&self) -> impl Fn(u64, u64) -> ControlFlow<()> + Send + Sync + 'static {
        |_, _| match action::arrived() {
            false => ControlFlow::Continue(()),
            true => ControlFlow::Break(()),
        }
    }
}

#[cfg(test)]
impl Interrupt {
    pub fn arrive(&self) {
        self.arrived.set(true);
    }
}
