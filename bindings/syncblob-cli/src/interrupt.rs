//! SIGINT, SIGTERM and SIGHUP stop the work at its next check, and a write that makes a file too
//! large fails: no half-written file remains. Afterwards the earlier actions are restored.

mod action;

use std::cell::OnceCell;
use std::io;
use std::ops::ControlFlow;

use self::action::Listening;
use crate::source::{Failure, Result};

/// When dropped, sends a signal that has arrived again, for the restored action. Exception: after
/// `settle` a signal that would end the program is not sent.
#[derive(Default)]
pub struct Interrupt {
    listening: OnceCell<Listening>,
    #[cfg(test)]
    came: std::cell::Cell<bool>,
}

impl Interrupt {
    /// Begins to note signals. Before this call a signal runs the program's own action.
    pub fn listen(&self) -> io::Result<()> {
        if self.listening.get().is_none() {
            let _first = self.listening.set(Listening::new()?);
        }
        Ok(())
    }

    /// Fails if a signal has arrived.
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

    /// Marks the work as complete: a signal that arrives after `check` then does not end the
    /// program, whose status would report a failure. The program's own handler still runs.
    pub fn settle(&self) {
        if let Some(listening) = self.listening.get() {
            listening.settle();
        }
    }

    /// Returns a progress callback for a call of the library: it cancels the call if a signal has
    /// arrived.
    pub fn progress(&self) -> impl Fn(u64, u64) -> ControlFlow<()> + Send + Sync + 'static {
        |_, _| match action::came() {
            false => ControlFlow::Continue(()),
            true => ControlFlow::Break(()),
        }
    }
}

#[cfg(test)]
impl Interrupt {
    /// Acts as if a signal had arrived.
    pub fn come(&self) {
        self.came.set(true);
    }
}
