//! SIGINT, SIGTERM and SIGHUP stop the work at its next check, and a write beyond the limit of file
//! sizes fails, so no half-written file remains. Then the previous signal actions are restored.

mod action;

use std::cell::OnceCell;
use std::io;
use std::ops::ControlFlow;

use self::action::Listening;
use crate::source::{Failure, Result};

/// A drop restores the previous actions. If a signal has arrived, the drop sends it again, so that
/// its previous action runs; after `settle`, only if that action does not end the program.
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

    /// Marks the work as complete: a signal that arrives after the last `check` does not end the
    /// program, because the exit status would report a failure. The program's own handler runs.
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
