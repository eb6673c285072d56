//! Converts numbers, strings and names to values of a field.

use super::lexer::{Kind as Word, Token};
use super::{found_instead, string, FieldInfo, Kind, Parser, Schema, Value};
use crate::{Error, Place, Result};

/// A number with an optional sign. The sign and the number are separate tokens.
struct Signed<'a> {
    negative: bool,
    token: Token<'a>,
    place: Place,
    /// The sign and the value, for error messages.
    text: &'a [u8],
}

impl<'a> Parser<'a> {
    pub(super) fn scalar(&mut self, info: &FieldInfo) -> Result<Value> {
        match info.kind {
            Kind::Int32 => self.integer(info, i128::from(i32::MIN), i128::from(i32::MAX)),
            Kind::Int64 => self.integer(info, i128::from(i64::MIN), i128::from(i64::MAX)),
            Kind::Uint32 => self.integer(info, 0, i128::from(u32::MAX)),
            Kind::Uint64 => self.integer(info, 0, i128::from(u64::MAX)),
            Kind::Float => {
                #[allow(clippy::cast_possible_truncation)] // the field is a float
                let single = |value: f64| Value::Float(f64::from(value as f32));
                self.number(info).map(single)
            }
            Kind::Double => self.number(info).map(Value::Float),
            Kind::Bool => self.boolean(info),
            Kind::Text | Kind::Bytes => self.strings(info),
            Kind::Enum(name) => self.enumeration(info, name),
            Kind::Message(_) => unreachable!("not a scalar"),
        }
    }

    fn signed(&mut self) -> Result<Signed<'a>> {
        let (place, start) = (self.token.place, self.token.start);
        let negative = self.accept(b'-')?;
        let token = self.token;
        Ok(Signed { negative, token, place, text: &self.lexer.text()[start..token.end()] })
    }

    fn integer(&mut self, info: &FieldInfo, least: i128, most: i128) -> Result<Value> {
        let found = self.signed()?;
        let value = found.integer().filter(|value| (least..=most).contains(value));
        let Some(value) = value else {
            let known = found.token.kind == Word::Integer;
            let range = if known { format!(" from {least} to {most}") } else { String::new() };
            return Err(found.instead_of(format_args!("a whole number{range}"), info));
        };
        self.advance()?;
        #[allow(clippy::cast_possible_truncation)] // only uint64 may wrap; the bits stay
        Ok(Value::Int(value as i64))
    }

    fn number(&mut self, info: &FieldInfo) -> Result<f64> {
        let found = self.signed()?;
        let Some(value) = magnitude(found.token) else {
            return Err(found.instead_of("a number", info));
        };
        self.advance()?;
        Ok(if found.negative { -value } else { value })
    }

    fn boolean(&mut self, info: &FieldInfo) -> Result<Value> {
        let value = match (self.token.kind, self.token.bytes) {
            (Word::Name, b"true" | b"True" | b"t") => true,
            (Word::Name, b"false" | b"False" | b"f") => false,
            (Word::Integer, bytes) if magnitude_of_integer(bytes) == Some(1) => true,
            (Word::Integer, bytes) if magnitude_of_integer(bytes) == Some(0) => false,
            _ => return Err(self.expected(format_args!("true or false for '{}'", info.name))),
        };
        self.advance()?;
        Ok(Value::Bool(value))
    }

    /// Reads a string. Joins adjacent strings.
    fn strings(&mut self, info: &FieldInfo) -> Result<Value> {
        if self.token.kind != Word::Text {
            return Err(self.expected(format_args!("a string in quotes for '{}'", info.name)));
        }
        let mut text = Vec::new();
        while self.token.kind == Word::Text {
            string::unescape(self.token, &mut text)?;
            self.advance()?;
        }
        Ok(Value::Text(text.into()))
    }

    /// Reads the name or the number of an enum's value.
    fn enumeration(&mut self, info: &FieldInfo, name: &str) -> Result<Value> {
        let values = Schema::get().enumeration(name);
        let found = self.signed()?;
        let number = match found.token.kind {
            Word::Name if !found.negative => {
                std::str::from_utf8(found.token.bytes).ok().and_then(|name| values.number_of(name))
            }
            _ => {
                let number = found.integer().and_then(|number| i32::try_from(number).ok());
                number.and_then(|number| values.first_number(number))
            }
        };
        let Some(number) = number else {
            return Err(found.instead_of(names(&values.values), info));
        };
        self.advance()?;
        Ok(Value::Int(i64::from(number)))
    }
}

impl Signed<'_> {
    fn integer(&self) -> Option<i128> {
        if self.token.kind != Word::Integer {
            return None;
        }
        let value = i128::from(magnitude_of_integer(self.token.bytes)?);
        Some(if self.negative { -value } else { value })
    }

    fn instead_of(&self, what: impl std::fmt::Display, info: &FieldInfo) -> Error {
        found_instead(format_args!("{what} for '{}'", info.name), self.place, self.text)
    }
}

/// Lists an enum's names for an error message: all names if there are at most eight, else the first
/// three.
fn names(values: &[(i32, &str)]) -> String {
    let names: Vec<&str> = values.iter().take(9).map(|value| value.1).collect();
    match values.len() {
        0..=8 => names.join(" or "),
        _ => format!("{}, … or another name", names[..3].join(", ")),
    }
}

/// Reads a decimal number. Refuses `010`, because old and new parsers read this number differently.
fn magnitude(token: Token<'_>) -> Option<f64> {
    let text = std::str::from_utf8(token.bytes).ok()?;
    match token.kind {
        Word::Float => text.trim_end_matches(['f', 'F']).parse().ok(),
        Word::Integer if text == "0" || !text.starts_with('0') => text.parse().ok(),
        Word::Name if text.eq_ignore_ascii_case("nan") => Some(f64::NAN),
        Word::Name if text.eq_ignore_ascii_case("inf") => Some(f64::INFINITY),
        Word::Name if text.eq_ignore_ascii_case("infinity") => Some(f64::INFINITY),
        _ => None,
    }
}

fn magnitude_of_integer(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok();
    }
    let radix = if text.starts_with('0') { 8 } else { 10 };
    u64::from_str_radix(text, radix).ok()
}
