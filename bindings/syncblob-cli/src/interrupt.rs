//! SIGINT and SIGTERM end the work between two pieces of it, so that nothing
//! half-written stays. Afterwards the program takes them as it did before.

mod action;

use std::cell::OnceCell;
use std::io;
use std::ops::ControlFlow;

use self::action::Listening;
use crate::source::{Failure, Result};

/// When it ends, a signal that came is sent again, to whoever took it before.
#[derive(Default)]
pub struct Interrupt {
    listening: OnceCell<Listening>,
    #[cfg(test)]
    came: std::cell::Cell<bool>,
}

impl Interrupt {
    /// Until then a signal does what the program wants it to do.
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

    /// The work is done: a signal that has come since `check`, or comes now, does not end
    /// the program, which would say that it was not done. A handler of the program's own
    /// still gets the signal afterwards.
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
