//! A bar on standard error while a large file is read.

use indicatif::{ProgressBar, ProgressStyle};

/// Files below this are read before anyone would look at a bar.
const LONG: u64 = 32 << 20;

/// Shown only where standard error is a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    pub fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    pub fn new(bytes: u64) -> Self {
        if bytes < LONG {
            return Self::hidden();
        }
        let bar = ProgressBar::new(bytes);
        let style = "{wide_bar} {bytes}/{total_bytes} {eta}";
        bar.set_style(ProgressStyle::with_template(style).unwrap_or(ProgressStyle::default_bar()));
        Self(bar)
    }

    pub fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
