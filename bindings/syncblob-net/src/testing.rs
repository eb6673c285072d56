//! What this crate's own tests share.

use crate::text::read_text;
use crate::{Limits, Message};

/// A message from its text.
pub fn message(kind: &str, text: &str) -> Message {
    read_text(text.as_bytes(), kind, &Limits::default()).unwrap()
}
