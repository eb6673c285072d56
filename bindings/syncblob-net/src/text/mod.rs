//! Reads protobuf's text format, which Caffe's prototxts use, with the types of the schema.

mod lexer;
mod scalar;
mod skip;
mod string;

use crate::limits::{Limits, Used};
use crate::message::{Field, Label, Message, Value};
use crate::schema::{is_layer, FieldInfo, Kind, Schema};
use crate::{Error, Result};
use lexer::{malformed, Lexer, Token};

/// Parses a text to a message of the schema's type `message`. Unknown fields are kept as text.
///
/// The time is linear in the text's length. The schema bounds the depth of the recursion.
pub(crate) fn read_text(text: &[u8], message: &str, limits: &Limits) -> Result<Message> {
    let mut used = Used::new(limits);
    used.bytes(text.len())?;
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    let mut parser = Parser { lexer, token, last_end: 0, used, layer_type: String::new() };
    let mut root = Message::new(message, token.place);
    parser.message(&mut root, 0, lexer::Kind::End)?;
    Ok(root)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next token.
    token: Token<'a>,
    /// The offset at which the previous token ends.
    last_end: usize,
    used: Used<'a>,
    /// The type of the surrounding layer, which some fields of forks depend on.
    layer_type: String,
}

/// The singular fields of a message that have already been read.
type Given = Vec<&'static FieldInfo>;

impl<'a> Parser<'a> {
    /// Reads fields up to the end of the text, or up to the closing bracket, which is consumed.
    fn message(&mut self, message: &mut Message, depth: usize, close: lexer::Kind) -> Result<()> {
        self.used.message(message.info, depth, message.place)?;
        let outer = is_layer(message.info).then(|| {
            let inner = self.find_type(close);
            std::mem::replace(&mut self.layer_type, inner)
        });
        let mut given = Given::new();
        while self.token.kind != close {
            self.field(message, &mut given, depth)?;
        }
        message.fields.shrink_to_fit();
        if let Some(outer) = outer {
            self.layer_type = outer;
        }
        if close != lexer::Kind::End {
            self.advance()?;
        }
        Ok(())
    }

    fn field(&mut self, message: &mut Message, given: &mut Given, depth: usize) -> Result<()> {
        let name = self.name()?;
        // Never fails, because names contain only ASCII.
        let text = std::str::from_utf8(name.bytes).unwrap_or_default();
        match message.info.by_name(text, &self.layer_type) {
            Some(info) => {
                if !info.repeated {
                    once(info, given, name)?;
                }
                self.known(message, info, depth)?;
            }
            None => {
                self.used.field(name.place)?;
                let value = Value::Unknown(self.skip_value(depth)?.into());
                message.fields.push(Field::new(Label::Unknown(text.into()), name.place, value));
            }
        }
        self.separator()
    }

    /// Reads a field's value, or a list of values in brackets.
    fn known(&mut self, to: &mut Message, info: &'static FieldInfo, depth: usize) -> Result<()> {
        let is_message = matches!(info.kind, Kind::Message(_));
        if !self.accept(b':')? && !is_message {
            return Err(self.expected(format_args!("':' after '{}'", info.name)));
        }
        if !info.repeated || !self.accept(b'[')? {
            return self.value(to, info, depth);
        }
        if self.accept(b']')? {
            return Ok(());
        }
        loop {
            self.value(to, info, depth)?;
            if self.accept(b']')? {
                return Ok(());
            }
            if !self.accept(b',')? {
                return Err(self.expected(format_args!("',' or ']' in '{}'", info.name)));
            }
        }
    }

    fn value(&mut self, to: &mut Message, info: &'static FieldInfo, depth: usize) -> Result<()> {
        let place = self.token.place;
        self.used.field(place)?;
        let value = match info.kind {
            Kind::Message(_) => Value::Message(Box::new(self.inner(info, depth)?)),
            _ => self.scalar(info)?,
        };
        to.fields.push(Field::new(Label::Known(info), place, value));
        Ok(())
    }

    fn inner(&mut self, info: &FieldInfo, depth: usize) -> Result<Message> {
        let Kind::Message(name) = info.kind else { unreachable!("not a message") };
        let mut message = Message::new(name, self.token.place);
        let close = match self.token.kind {
            lexer::Kind::Symbol(b'{') => b'}',
            lexer::Kind::Symbol(b'<') => b'>',
            _ => return Err(self.expected(format_args!("'{{' after '{}'", info.name))),
        };
        self.advance()?;
        self.message(&mut message, depth + 1, lexer::Kind::Symbol(close))?;
        Ok(message)
    }

    fn name(&mut self) -> Result<Token<'a>> {
        if self.token.kind != lexer::Kind::Name {
            return Err(self.expected("the name of a field"));
        }
        self.advance()
    }

    /// Skips the comma or semicolon that may follow a field.
    fn separator(&mut self) -> Result<()> {
        if !self.accept(b';')? {
            self.accept(b',')?;
        }
        Ok(())
    }

    /// Consumes a token and returns it.
    fn advance(&mut self) -> Result<Token<'a>> {
        let next = self.lexer.next()?;
        let token = std::mem::replace(&mut self.token, next);
        self.last_end = token.end();
        Ok(token)
    }

    fn at(&self, symbol: u8) -> bool {
        self.token.kind == lexer::Kind::Symbol(symbol)
    }

    fn accept(&mut self, symbol: u8) -> Result<bool> {
        let found = self.at(symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expected(&self, what: impl std::fmt::Display) -> Error {
        found_instead(what, self.token.place, self.token.bytes)
    }
}

/// Makes the error for unexpected bytes or, if `found` is empty, for the end of the text.
fn found_instead(what: impl std::fmt::Display, place: crate::Place, found: &[u8]) -> Error {
    const SHOWN: usize = 40;
    let (shown, more) = match found.get(..SHOWN) {
        Some(start) if found.len() > SHOWN => (start, "…"),
        _ => (found, ""),
    };
    match shown {
        [] => malformed(place, format_args!("expected {what}, found the end of the text")),
        _ => {
            let shown = shown.escape_ascii();
            malformed(place, format_args!("expected {what}, found '{shown}{more}'"))
        }
    }
}

fn once(info: &'static FieldInfo, given: &mut Given, name: Token<'_>) -> Result<()> {
    if given.iter().any(|other| std::ptr::eq(*other, info)) {
        return Err(malformed(name.place, format_args!("'{}' is given twice", info.name)));
    }
    given.push(info);
    Ok(())
}

#[cfg(test)]
mod tests;
