//! Functions that the tests of this crate share.

use crate::limits::Used;
use crate::text::read_text;
use crate::wire::read_bytes;
use crate::{Limits, Message};

/// Reads a message from text.
pub fn message(kind: &str, text: &str) -> Message {
    read_text(text.as_bytes(), kind, &Limits::default()).unwrap()
}

/// Reads a message from bytes.
pub fn of_bytes(kind: &str, bytes: &[u8]) -> Message {
    read_bytes(bytes, kind, &mut Used::new(&Limits::default())).unwrap()
}
