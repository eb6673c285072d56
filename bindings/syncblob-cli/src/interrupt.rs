//! SIGINT, SIGTERM and SIGHUP end the work between two pieces of it, and a file that is too large is
//! an error, so that nothing half-written stays. Afterwards the program takes signals as before.

mod action;

use std::cell::OnceCell;
use std::io;
use std::ops::ControlFlow;

use self::action::Listening;
use crate::source::{Failure, Result};

/// When it ends, a signal that has arrived is sent again, for the previous handler.
#[derive(Default)]
pub struct Interrupt {
    listening: OnceCell<Listening>,
    #[cfg(test)]
    came: std::cell::Cell<bool>,
}

impl Interrupt {
    /// Until then a signal runs the program's action.
    pub fn listen(&self) -> io::Result<()> {
        if self.listening.get().is_none() {
            let _first = self.listening.set(Listening::new()?);
        }
        Ok(())
    }

    /// An error once a signal has come.
    pub fn check(&self) -> Result<()> {
        #[cfg(test)]
        if self.came.get() {
            return Err(Failure::Interrupted);
        }
        match self.listening.get() {
            Some(_) if action::came() => Err(Failure::Interrupted),
            _ => Ok(()),
        }
    }

    /// The work is complete: a signal after `check` does not end the program, since its status
    /// would report failure. The program's handler still gets the signal afterwards.
    pub fn settle(&self) {
        if let Some(listening) = self.listening.get() {
            listening.settle();
        }
    }

    /// The same as a progress of the library, whose call it cancels.
    pub fn progress(&self) -> impl Fn(u64, u64) -> ControlFlow<()> + Send + Sync + 'static {
        |_, _| match action::came() {
            false => ControlFlow::Continue(()),
            true => ControlFlow::Break(()),
        }
    }
}

#[cfg(test)]
impl Interrupt {
    /// As if a signal had come.
    pub fn come(&self) {
        self.came.set(true);
    }
}
