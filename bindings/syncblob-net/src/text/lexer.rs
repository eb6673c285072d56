//! Splits protobuf's text format into tokens.

use crate::message::Place;
use crate::{Error, ErrorKind, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Name,
    /// A decimal, octal or hexadecimal integer without a sign.
    Integer,
    /// A number with a decimal point, an exponent or the suffix `f`.
    Float,
    /// A string, with its quotes and escapes.
    Text,
    Symbol(u8),
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub kind: Kind,
    pub bytes: &'a [u8],
    /// The offset of the token in the text.
    pub start: usize,
    pub place: Place,
}

impl Token<'_> {
    pub fn end(&self) -> usize {
        self.start + self.bytes.len()
    }
}

/// A lexer, which is cheap to copy: to look ahead, the parser saves a copy and restores it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    line: u32,
    line_start: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        let at = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        Self { text, at, line: 1, line_start: at }
    }

    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    pub fn next(&mut self) -> Result<Token<'a>> {
        self.skip_space();
        let (start, place) = (self.at, self.place());
        let kind = match self.peek() {
            None => Kind::End,
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => {
                self.skip_while(is_word);
                Kind::Name
            }
            Some(b'0'..=b'9') => self.number()?,
            Some(b'.') if self.text.get(start + 1).is_some_and(u8::is_ascii_digit) => {
                self.number()?
            }
            Some(quote @ (b'"' | b'\'')) => self.string(quote)?,
            Some(byte @ b'!'..=b'~') => {
                self.at += 1;
                Kind::Symbol(byte)
            }
            Some(byte) => {
                let text = format_args!("the byte 0x{byte:02x} is only allowed in a string");
                return Err(malformed(place, text));
            }
        };
        Ok(Token { kind, bytes: &self.text[start..self.at], start, place })
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn accept(&mut self, bytes: &[u8]) -> bool {
        let found = self.peek().is_some_and(|byte| bytes.contains(&byte));
        self.at += usize::from(found);
        found
    }

    fn place(&self) -> Place {
        let column = u32::try_from(self.at - self.line_start + 1).unwrap_or(u32::MAX);
        Place::Text { line: self.line, column }
    }

    fn skip_while(&mut self, like: fn(u8) -> bool) {
        while self.peek().is_some_and(like) {
            self.at += 1;
        }
    }

    fn skip_space(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r' | 0x0b | 0x0c) => self.at += 1,
                Some(b'\n') => {
                    self.at += 1;
                    self.line = self.line.saturating_add(1);
                    self.line_start = self.at;
                }
                Some(b'#') => self.skip_while(|byte| byte != b'\n'),
                _ => return,
            }
        }
    }

    fn number(&mut self) -> Result<Kind> {
        let zero = self.accept(b"0");
        let kind = if zero && self.accept(b"xX") {
            let start = self.at;
            self.skip_while(|byte| byte.is_ascii_hexdigit());
            if self.at == start {
                return Err(malformed(self.place(), "expected hexadecimal digits after 0x"));
            }
            Kind::Integer
        } else if zero && self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.skip_while(|byte| matches!(byte, b'0'..=b'7'));
            Kind::Integer
        } else {
            self.decimal()?
        };
        if self.peek().is_some_and(|byte| is_word(byte) || byte == b'.') {
            return Err(malformed(self.place(), "expected a space after the number"));
        }
        Ok(kind)
    }

    fn decimal(&mut self) -> Result<Kind> {
        let digits = |lexer: &mut Self| lexer.skip_while(|byte| byte.is_ascii_digit());
        digits(self);
        let mut kind = Kind::Integer;
        if self.accept(b".") {
            kind = Kind::Float;
            digits(self);
        }
        if self.accept(b"eE") {
            kind = Kind::Float;
            self.accept(b"+-");
            let start = self.at;
            digits(self);
            if self.at == start {
                return Err(malformed(self.place(), "expected the digits of an exponent"));
            }
        }
        if self.accept(b"fF") {
            kind = Kind::Float;
        }
        Ok(kind)
    }

    fn string(&mut self, quote: u8) -> Result<Kind> {
        let place = self.place();
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'\n' | 0) | None => {
                    let quote = char::from(quote);
                    let text = format_args!("the string has no closing {quote} in its line");
                    return Err(malformed(place, text));
                }
                Some(b'\\') if !matches!(self.text.get(self.at + 1), None | Some(b'\n' | 0)) => {
                    self.at += 2;
                }
                Some(byte) => {
                    self.at += 1;
                    if byte == quote {
                        return Ok(Kind::Text);
                    }
                }
            }
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub(super) fn malformed(place: Place, text: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Malformed, format_args!("{place}: {text}"))
}
