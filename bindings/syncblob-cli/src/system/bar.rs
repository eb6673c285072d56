//! A progress bar on standard error, which is shown only if standard error is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

pub struct Bar(ProgressBar);

impl Bar {
    pub fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    pub fn new(bytes: u64) -> Self {
        let bar = ProgressBar::new(bytes);
        let style = "{wide_bar} {bytes}/{total_bytes} {eta}";
        bar.set_style(ProgressStyle::with_template(style).unwrap_or(ProgressStyle::default_bar()));
        Self(bar)
    }

    pub fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
