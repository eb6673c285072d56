//! Shows no bar. The host counts the bytes that the program reads.

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
