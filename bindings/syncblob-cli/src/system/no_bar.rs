//! Shows no progress bar: the program's host counts the bytes that the program reads, and shows the
//! progress.

pub struct Bar;

impl Bar {
    pub fn hidden() -> Self {
        Self
    }

    pub fn new(_: u64) -> Self {
        Self
    }

    pub fn advance(&self, _: u64) {}
}
