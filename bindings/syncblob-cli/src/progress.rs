//! A progress bar on standard error, while a large file is read.

use crate::system::Bar;

/// A bar is shown only if at least this many bytes are read.
const LONG: u64 = 32 << 20;

/// A progress bar. The bar is shown only if standard error is a terminal.
pub struct Progress(Bar);

impl Progress {
    pub fn hidden() -> Self {
        Self(Bar::hidden())
    }

    pub fn new(bytes: u64) -> Self {
        Self(if bytes < LONG { Bar::hidden() } else { Bar::new(bytes) })
    }

    pub fn advance(&self, bytes: u64) {
        self.0.advance(bytes);
    }
}
