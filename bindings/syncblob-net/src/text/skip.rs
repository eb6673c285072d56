//! Skips fields that are not in the schema, and looks ahead for a layer's type. These functions
//! match brackets with a stack instead of recursion.

use super::lexer::Kind as Word;
use super::{string, Parser};
use crate::Result;

impl<'a> Parser<'a> {
    /// Skips the value after a field's name. Returns the skipped text.
    pub(super) fn skip_value(&mut self, depth: usize) -> Result<&'a [u8]> {
        let start = self.token.start;
        // The closing brackets that are still expected, the innermost last.
        let mut open = Vec::new();
        self.skip_field(&mut open)?;
        while let Some(&close) = open.last() {
            if self.at(close) {
                self.advance()?;
                open.pop();
                self.skip_separator(&open)?;
            } else if close == b']' {
                self.skip_element(&mut open)?;
            } else {
                self.name()?;
                self.skip_field(&mut open)?;
            }
            self.used.depth(depth + open.len(), self.token.place)?;
        }
        Ok(&self.lexer.text()[start..self.last_end])
    }

    /// Skips a scalar or an opening bracket after a field's name.
    fn skip_field(&mut self, open: &mut Vec<u8>) -> Result<()> {
        if !self.accept(b':')? && !self.at(b'{') && !self.at(b'<') {
            return Err(self.expected("':' or '{'"));
        }
        self.skip_element(open)
    }

    fn skip_element(&mut self, open: &mut Vec<u8>) -> Result<()> {
        let close = match self.token.kind {
            Word::Symbol(b'{') => b'}',
            Word::Symbol(b'<') => b'>',
            Word::Symbol(b'[') => b']',
            _ => {
                self.skip_scalar()?;
                return self.skip_separator(open);
            }
        };
        self.advance()?;
        open.push(close);
        Ok(())
    }

    /// Skips the separator after a value. Elements of a list must be separated by a comma; after a
    /// field of a message, a separator is optional.
    fn skip_separator(&mut self, open: &[u8]) -> Result<()> {
        match open.last() {
            None => Ok(()),
            Some(b']') if self.at(b']') => Ok(()),
            Some(b']') if !self.accept(b',')? => Err(self.expected("',' or ']'")),
            Some(b']') if self.at(b']') => Err(self.expected("a value")),
            Some(b']') => Ok(()),
            Some(_) => self.separator(),
        }
    }

    fn skip_scalar(&mut self) -> Result<()> {
        if self.token.kind == Word::Text {
            while self.token.kind == Word::Text {
                string::unescape(self.token, &mut Vec::new())?;
                self.advance()?;
            }
            return Ok(());
        }
        let negative = self.accept(b'-')?;
        match self.token.kind {
            Word::Integer | Word::Float => {}
            Word::Name if !negative => {}
            Word::Name if is_special(self.token.bytes) => {}
            _ => return Err(self.expected("a value")),
        }
        self.advance()?;
        Ok(())
    }

    /// Looks ahead for the type of the layer that begins here, because the type may follow fields
    /// that depend on the type. Returns an empty type if the text before the type is malformed;
    /// reading the layer will then report the error.
    pub(super) fn find_type(&mut self, close: Word) -> String {
        let (lexer, token, last_end) = (self.lexer, self.token, self.last_end);
        let mut found = Vec::new();
        let _ = self.look_for_type(close, &mut found);
        (self.lexer, self.token, self.last_end) = (lexer, token, last_end);
        String::from_utf8_lossy(&found).into_owned()
    }

    fn look_for_type(&mut self, close: Word, found: &mut Vec<u8>) -> Result<()> {
        while self.token.kind != close {
            let name = self.name()?.bytes;
            if name == b"type" && self.accept(b':')? {
                return self.read_type(found);
            }
            self.skip_value(0)?;
            self.separator()?;
        }
        Ok(())
    }

    /// Reads a type: a string, which may have several parts, or the name of an enum's value.
    fn read_type(&mut self, found: &mut Vec<u8>) -> Result<()> {
        if self.token.kind == Word::Name {
            found.extend_from_slice(self.token.bytes);
        }
        while self.token.kind == Word::Text {
            string::unescape(self.token, found)?;
            self.advance()?;
        }
        Ok(())
    }
}

fn is_special(name: &[u8]) -> bool {
    ["inf", "infinity", "nan"].iter().any(|word| word.as_bytes().eq_ignore_ascii_case(name))
}
