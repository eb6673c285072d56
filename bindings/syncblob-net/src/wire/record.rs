//! Reads protobuf's wire format without a schema: tags and values.

use crate::message::Place;
use crate::{Error, ErrorKind, Result};

/// The range of bytes of a message, or of a part of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub start: usize,
    pub end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireType {
    Varint,
    Fixed64,
    Bytes,
    /// The value is all bytes between the group's tags.
    Group,
    Fixed32,
}

/// A field: its number, and the position of its value. The value excludes its length prefix.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub number: u32,
    pub wire_type: WireType,
    /// The offset of the field's tag.
    pub start: usize,
    pub value: Span,
}

/// Reads the records in a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The maximum depth of nested groups. `next` fails on a group that is nested deeper.
    groups: usize,
}

/// A tag, which either begins a value or ends a group.
enum Tag {
    Value(WireType),
    EndOfGroup,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], span: Span, groups: usize) -> Self {
        Self { bytes: &bytes[..span.end], at: span.start, groups }
    }

    pub fn next(&mut self) -> Result<Option<Record>> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let start = self.at;
        let (number, tag) = self.tag()?;
        let Tag::Value(wire_type) = tag else {
            return Err(malformed(start, format_args!("group {number} ends without a beginning")));
        };
        let value = match wire_type {
            WireType::Group => self.group(number, start)?,
            _ => self.skip(wire_type)?,
        };
        Ok(Some(Record { number, wire_type, start, value }))
    }

    fn tag(&mut self) -> Result<(u32, Tag)> {
        let start = self.at;
        let Ok(tag) = u32::try_from(self.varint()?) else {
            return Err(malformed(start, "the tag does not fit 32 bits"));
        };
        let kind = match tag & 7 {
            0 => Tag::Value(WireType::Varint),
            1 => Tag::Value(WireType::Fixed64),
            2 => Tag::Value(WireType::Bytes),
            3 => Tag::Value(WireType::Group),
            4 => Tag::EndOfGroup,
            5 => Tag::Value(WireType::Fixed32),
            other => return Err(malformed(start, format_args!("the wire type is {other}"))),
        };
        match tag >> 3 {
            0 => Err(malformed(start, "the field's number is 0")),
            number => Ok((number, kind)),
        }
    }

    pub fn varint(&mut self) -> Result<u64> {
        let start = self.at;
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let Some(&byte) = self.bytes.get(self.at) else {
                return Err(malformed(start, "the bytes end within a number"));
            };
            self.at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(malformed(start, "a number of more than ten bytes"))
    }

    /// Skips a value of any wire type except a group.
    pub fn skip(&mut self, wire_type: WireType) -> Result<Span> {
        let start = self.at;
        match wire_type {
            WireType::Varint => self.varint().map(|_| Span { start, end: self.at }),
            WireType::Fixed64 => self.take(8),
            WireType::Fixed32 => self.take(4),
            WireType::Bytes => {
                let length = self.varint()?;
                self.take(usize::try_from(length).unwrap_or(usize::MAX))
            }
            WireType::Group => unreachable!("skipped by its tags"),
        }
    }

    fn take(&mut self, length: usize) -> Result<Span> {
        let (start, left) = (self.at, self.bytes.len() - self.at);
        if length > left {
            let text = format_args!("a value of {length} bytes where {left} are left");
            return Err(malformed(start, text));
        }
        self.at += length;
        Ok(Span { start, end: self.at })
    }

    /// Skips the fields between the tags of a group, and the closing tag.
    fn group(&mut self, number: u32, start: usize) -> Result<Span> {
        let mut open = vec![number];
        let mut value = Span { start: self.at, end: self.at };
        while let Some(&inner) = open.last() {
            if open.len() > self.groups {
                let text = format_args!("more than {} groups inside each other", self.groups);
                return Err(at(ErrorKind::Limit, start, text));
            }
            value.end = self.at;
            match self.tag()? {
                (number, Tag::Value(WireType::Group)) => open.push(number),
                (_, Tag::Value(wire_type)) => drop(self.skip(wire_type)?),
                (number, Tag::EndOfGroup) if number == inner => drop(open.pop()),
                (number, Tag::EndOfGroup) => {
                    let text = format_args!("group {number} ends within group {inner}");
                    return Err(malformed(value.end, text));
                }
            }
        }
        Ok(value)
    }
}

pub(super) fn malformed(offset: usize, text: impl std::fmt::Display) -> Error {
    at(ErrorKind::Malformed, offset, text)
}

fn at(kind: ErrorKind, offset: usize, text: impl std::fmt::Display) -> Error {
    Error::new(kind, format_args!("{}: {text}", place(offset)))
}

pub(super) fn place(offset: usize) -> Place {
    Place::Byte(u32::try_from(offset).unwrap_or(u32::MAX))
}
