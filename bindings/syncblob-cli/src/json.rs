//! Writes one JSON object on each line.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

use crate::text::is_unprintable;

/// Writes the value as one line of JSON that is safe to show on a terminal.
pub fn write_line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut *out, SafeFormatter))?;
    out.write_all(b"\n")
}

/// Escapes characters that JSON allows but that control a terminal, such as `\u009b`.
struct SafeFormatter;

impl Formatter for SafeFormatter {
    fn write_string_fragment<W>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + io::Write,
    {
        let mut units = [0; 2];
        let mut rest = fragment;
        while let Some(at) = rest.find(is_unprintable) {
            CompactFormatter.write_string_fragment(writer, &rest[..at])?;
            let c = rest[at..].chars().next().unwrap_or_default();
            for unit in c.encode_utf16(&mut units) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(value: &impl Serialize) -> io::Result<String> {
        let mut bytes = Vec::new();
        write_line(&mut bytes, value)?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn hostile_names_are_escaped_and_parsed_back() {
        let name = "a\u{1b}[2J\u{9b}\u{7f}\u{202e}\u{e0041}\"\\重";
        let line = line(&name).unwrap();
        assert!(line.ends_with('\n') && !line.trim_end().contains(is_unprintable), "{line}");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), name);
    }

    #[test]
    fn numbers_round_trip_and_are_never_nan() {
        let numbers = [0.1, -0.0, f64::MIN_POSITIVE, 5e-324, f64::MAX, f64::from(0.1_f32)];
        let back: Vec<f64> = serde_json::from_str(&line(&numbers).unwrap()).unwrap();
        assert!(back.iter().zip(&numbers).all(|(a, b)| a.to_bits() == b.to_bits()), "{back:?}");
        assert_eq!(line(&[f64::INFINITY, f64::NAN]).unwrap(), "[null,null]\n");
    }
}
