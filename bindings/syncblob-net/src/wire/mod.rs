//! Reads protobuf's wire format with the types of the schema: a model's messages without blobs.

mod record;

use crate::limits::Used;
use crate::message::{Field, Label, Message, Value};
use crate::schema::{is_layer, FieldInfo, Kind, MessageInfo, Schema};
use crate::Result;
use record::{place, Cursor, Record, Span, WireType};

/// Parses bytes to a message of the schema. If the schema lacks a field, or declares another wire
/// type, the bytes of the field's value are kept. The blobs of layers are omitted.
///
/// Several calls may share the limits in `used`. The time is linear in the length of the bytes. The
/// schema bounds the depth of the recursion.
pub(crate) fn read_bytes(bytes: &[u8], message: &str, used: &mut Used<'_>) -> Result<Message> {
    used.bytes(bytes.len())?;
    let mut reader = Reader { bytes, groups: used.most_depth(), used, layer_type: String::new() };
    let mut root = Message::new(message, place(0));
    reader.message(&mut root, &[Span { start: 0, end: bytes.len() }], 0)?;
    Ok(root)
}

struct Reader<'a, 'l> {
    bytes: &'a [u8],
    used: &'a mut Used<'l>,
    groups: usize,
    /// The type of the surrounding layer, which decides what some field numbers mean in forks.
    layer_type: String,
}

/// A singular field that was found, and its index in the message. A submessage may occur in several
/// parts. After all parts are found, they are read as one message.
struct Singular {
    /// The field's name. In forks, a field may have several numbers.
    name: &'static str,
    index: usize,
    parts: Vec<Span>,
}

impl Reader<'_, '_> {
    fn message(&mut self, message: &mut Message, parts: &[Span], depth: usize) -> Result<()> {
        self.used.message(message.info, depth, message.place)?;
        let outer = if is_layer(message.info) {
            let inner = self.find_type(message.info, parts)?;
            Some(std::mem::replace(&mut self.layer_type, inner))
        } else {
            None
        };
        let mut singular = Vec::new();
        for &part in parts {
            let mut cursor = Cursor::new(self.bytes, part, self.groups);
            while let Some(record) = cursor.next()? {
                self.record(message, record, &mut singular, depth)?;
            }
        }
        for field in singular {
            if let Value::Message(inner) = &mut message.fields[field.index].value {
                self.message(inner, &field.parts, depth + 1)?;
            }
        }
        message.fields.shrink_to_fit();
        if let Some(outer) = outer {
            self.layer_type = outer;
        }
        Ok(())
    }

    fn record(
        &mut self,
        to: &mut Message,
        record: Record,
        singular: &mut Vec<Singular>,
        depth: usize,
    ) -> Result<()> {
        let known = to.info.by_number(record.number, &self.layer_type);
        match known {
            Some(info) if info.name == "blobs" && is_layer(to.info) => Ok(()),
            Some(info) if record.wire_type == wire_type(info.kind) => {
                self.known(to, info, record, singular, depth)
            }
            Some(info) if is_packed(info, record) => self.packed(to, info, record),
            _ => self.unknown(to, record, record.value),
        }
    }

    fn known(
        &mut self,
        to: &mut Message,
        info: &'static FieldInfo,
        record: Record,
        singular: &mut Vec<Singular>,
        depth: usize,
    ) -> Result<()> {
        let before = singular.iter_mut().find(|one| one.name == info.name);
        let place = place(record.start);
        let value = match info.kind {
            Kind::Message(name) => {
                if let Some(before) = before {
                    before.parts.push(record.value);
                    return Ok(());
                }
                let mut inner = Message::new(name, place);
                if info.repeated {
                    self.message(&mut inner, &[record.value], depth + 1)?;
                }
                Value::Message(Box::new(inner))
            }
            Kind::Text | Kind::Bytes => Value::Text(self.of(record.value).into()),
            _ => match scalar(info.kind, &mut self.cursor(record.value), self.of(record.value))? {
                Some(value) => value,
                None => return self.unknown(to, record, record.value),
            },
        };
        if let Some(before) = before {
            to.fields[before.index] = Field::new(Label::Known(info), place, value);
            return Ok(());
        }
        if !info.repeated {
            singular.push(Singular {
                name: info.name,
                index: to.fields.len(),
                parts: vec![record.value],
            });
        }
        self.push(to, Label::Known(info), record, value)
    }

    /// Reads a record of packed values: one field that contains many values.
    fn packed(&mut self, to: &mut Message, info: &'static FieldInfo, record: Record) -> Result<()> {
        let mut rest = record.value;
        while rest.start < rest.end {
            let mut cursor = self.cursor(rest);
            let end = cursor.skip(wire_type(info.kind))?.end;
            let one = Span { start: rest.start, end };
            match scalar(info.kind, &mut self.cursor(one), self.of(one))? {
                Some(value) => self.push(to, Label::Known(info), record, value)?,
                None => self.unknown(to, record, one)?,
            }
            rest.start = end;
        }
        Ok(())
    }

    fn unknown(&mut self, to: &mut Message, record: Record, value: Span) -> Result<()> {
        let value = Value::Unknown(self.of(value).into());
        self.push(to, Label::Unknown(record.number.to_string().into()), record, value)
    }

    fn push(&mut self, to: &mut Message, label: Label, record: Record, value: Value) -> Result<()> {
        let place = place(record.start);
        self.used.field(place)?;
        to.fields.push(Field::new(label, place, value));
        Ok(())
    }

    fn of(&self, span: Span) -> &[u8] {
        &self.bytes[span.start..span.end]
    }

    fn cursor(&self, span: Span) -> Cursor<'_> {
        Cursor::new(self.bytes, span, self.groups)
    }

    /// Returns the name of a layer's type, which may be anywhere in the layer's bytes. If several
    /// types have the number, returns the type whose parameters the layer contains.
    fn find_type(&self, info: &'static MessageInfo, parts: &[Span]) -> Result<String> {
        let Some(declared) = info.by_name("type", "") else { return Ok(String::new()) };
        let (mut found, mut present) = (Vec::new(), 0);
        for &part in parts {
            let mut cursor = self.cursor(part);
            while let Some(record) = cursor.next()? {
                present |= 1u64.checked_shl(record.number).unwrap_or(0);
                if record.number != declared.number || record.wire_type != wire_type(declared.kind)
                {
                    continue;
                }
                let names = self.types_of(declared, record.value)?;
                found = if names.is_empty() { found } else { names };
            }
        }
        let has_own_field = |name: &&String| {
            let mut own = info.fields.iter().filter(|field| field.when.contains(&name.as_str()));
            own.any(|field| present.checked_shr(field.number).is_some_and(|bits| bits & 1 == 1))
        };
        let own = found.iter().position(|name| has_own_field(&name)).unwrap_or(0);
        Ok(found.into_iter().nth(own).unwrap_or_default())
    }

    /// Returns the names of a type. Caffe and its forks may use one number for several types.
    fn types_of(&self, declared: &FieldInfo, value: Span) -> Result<Vec<String>> {
        let Kind::Enum(kind) = declared.kind else {
            return Ok(vec![String::from_utf8_lossy(self.of(value)).into_owned()]);
        };
        let number = low_bits(self.cursor(value).varint()?);
        Ok(Schema::get().enumeration(kind).names_of(number).map(String::from).collect())
    }
}

fn wire_type(kind: Kind) -> WireType {
    match kind {
        Kind::Float => WireType::Fixed32,
        Kind::Double => WireType::Fixed64,
        Kind::Text | Kind::Bytes | Kind::Message(_) => WireType::Bytes,
        _ => WireType::Varint,
    }
}

/// Returns whether the record has packed values. Protobuf's readers must accept packed values even
/// for a field that the schema does not declare as packed.
fn is_packed(info: &FieldInfo, record: Record) -> bool {
    info.repeated && record.wire_type == WireType::Bytes
}

/// Reads a number. Returns `None` for an unknown value of an enum and for a bool above 1.
fn scalar(kind: Kind, cursor: &mut Cursor<'_>, bytes: &[u8]) -> Result<Option<Value>> {
    Ok(Some(match kind {
        Kind::Float => {
            let bits = bytes.try_into().expect("the wire type has 4 bytes");
            Value::Float(f64::from(f32::from_le_bytes(bits)))
        }
        Kind::Double => {
            Value::Float(f64::from_le_bytes(bytes.try_into().expect("the wire type has 8 bytes")))
        }
        Kind::Bool => match cursor.varint()? {
            bit @ 0..=1 => Value::Bool(bit == 1),
            _ => return Ok(None), // not a bool, so another fork's field
        },
        Kind::Int32 => Value::Int(i64::from(low_bits(cursor.varint()?))),
        Kind::Uint32 => Value::Int(i64::from(low_bits(cursor.varint()?) as u32)),
        Kind::Int64 | Kind::Uint64 => Value::Int(cursor.varint()? as i64),
        Kind::Enum(name) => {
            let number = low_bits(cursor.varint()?);
            match Schema::get().enumeration(name).first_number(number) {
                Some(number) => Value::Int(i64::from(number)),
                None => return Ok(None),
            }
        }
        Kind::Text | Kind::Bytes | Kind::Message(_) => unreachable!("not a number"),
    }))
}

/// Returns the low 32 bits of a number, as protobuf does if a number does not fit an `int32`.
#[allow(clippy::cast_possible_truncation)]
fn low_bits(number: u64) -> i32 {
    number as i32
}

#[cfg(test)]
pub(crate) mod tests;
