//! Prints a message as a prototxt.

use std::fmt;

use crate::message::{Field, Label, Message, Value};
use crate::schema::Kind;

/// Prints a prototxt that parses to the same message. A field that is not in the schema is printed
/// unchanged if it was read from a text. For a field that was read from bytes, a comment with the
/// field's number and size is printed instead.
impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fields(self, 0, f)
    }
}

fn fields(message: &Message, depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    message.fields().iter().try_for_each(|one| field(one, depth, f))
}

fn field(field: &Field, depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (name, indent) = (field.name(), depth * 2);
    write!(f, "{:indent$}", "")?;
    match &field.value {
        Value::Message(message) => {
            writeln!(f, "{name} {{")?;
            fields(message, depth + 1, f)?;
            writeln!(f, "{:indent$}}}", "")
        }
        Value::Unknown(value) => unknown(name, value, f),
        Value::Bool(value) => writeln!(f, "{name}: {value}"),
        Value::Int(value) => integer(field, *value, f),
        Value::Float(value) => writeln!(f, "{name}: {}", number(field, *value)),
        Value::Text(text) => writeln!(f, "{name}: \"{}\"", escape(text)),
    }
}

fn integer(field: &Field, value: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let name = field.name();
    match (field.enum_name(), kind(field)) {
        (Some(word), _) => writeln!(f, "{name}: {word}"),
        #[allow(clippy::cast_sign_loss)] // the cast keeps all 64 bits
        (None, Some(Kind::Uint64)) => writeln!(f, "{name}: {}", value as u64),
        (None, _) => writeln!(f, "{name}: {value}"),
    }
}

fn kind(field: &Field) -> Option<Kind> {
    match field.label {
        Label::Known(info) => Some(info.kind),
        Label::Unknown(_) => None,
    }
}

/// Returns the shortest text that is exactly this number when it is read as the field's type.
fn number(field: &Field, value: f64) -> String {
    #[allow(clippy::cast_possible_truncation)] // the field is a float
    let text = match kind(field) {
        Some(Kind::Double) => format!("{value:?}"),
        _ => format!("{:?}", value as f32),
    };
    text.strip_suffix(".0").unwrap_or(&text).to_ascii_lowercase()
}

fn unknown(name: &str, value: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        return writeln!(f, "# field {name}: {} bytes", value.len());
    }
    f.write_str(name)?;
    if !value.starts_with(b":") {
        f.write_str(" ")?;
    }
    // A byte of invalid UTF-8 becomes an octal escape. In a string the escape stands for the same
    // byte; outside of strings, only comments contain such bytes.
    for chunk in value.utf8_chunks() {
        f.write_str(chunk.valid())?;
        chunk.invalid().iter().try_for_each(|byte| write!(f, "\\{byte:03o}"))?;
    }
    writeln!(f)
}

/// Escapes a text as protobuf does: bytes that are not printable become three octal digits.
fn escape(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'"' | b'\'' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out
}

#[cfg(test)]
mod tests;
