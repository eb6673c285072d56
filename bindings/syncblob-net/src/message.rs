//! Messages that were read from text or bytes: trees of fields. Each field records whether the
//! conversion has used its value, so that the conversion cannot overlook a field.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::schema::{FieldInfo, Kind, MessageInfo, Schema};

/// The position of a field in a text or in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Place {
    /// The field has no position, because this crate added the field.
    #[default]
    Made,
    /// In a text. Lines and columns count from 1. A column counts bytes.
    Text {
        /// The line.
        line: u32,
        /// The column.
        column: u32,
    },
    /// The offset in a binary message.
    Byte(u32),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made => f.write_str("made"),
            Self::Text { line, column } => write!(f, "line {line}, column {column}"),
            Self::Byte(offset) => write!(f, "byte {offset}"),
        }
    }
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `bool`
    Bool(bool),
    /// An integer of any type, or the number of an enum's value.
    Int(i64),
    /// `float` and `double`
    Float(f64),
    /// `string` and `bytes`
    Text(Box<[u8]>),
    /// A message.
    Message(Box<Message>),
    /// The unparsed text or bytes of a field that is not in the schema.
    Unknown(Box<[u8]>),
}

#[derive(Clone, Debug)]
pub(crate) enum Label {
    Known(&'static FieldInfo),
    /// The field's name in a text, or its number in a binary message.
    Unknown(Box<str>),
}

/// One field, with one value, of a [`Message`]. Each value of a repeated field is a separate field.
#[derive(Debug)]
pub struct Field {
    pub(crate) label: Label,
    pub(crate) place: Place,
    pub(crate) value: Value,
    read: AtomicBool,
}

impl Clone for Field {
    fn clone(&self) -> Self {
        Self::new(self.label.clone(), self.place, self.value.clone())
    }
}

/// Compares the names and the values, but not the places.
impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.value == other.value
    }
}

impl Field {
    pub(crate) fn new(label: Label, place: Place, value: Value) -> Self {
        Self { label, place, value, read: AtomicBool::new(false) }
    }

    /// Returns the field's name. For a field of a binary message that the schema lacks, returns the
    /// number.
    pub fn name(&self) -> &str {
        match &self.label {
            Label::Known(info) => info.name,
            Label::Unknown(name) => name,
        }
    }

    /// Returns the field's position.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Returns the field's value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the name of the field's enum value, if the schema contains that value.
    pub fn enum_name(&self) -> Option<&'static str> {
        let Label::Known(FieldInfo { kind: Kind::Enum(name), .. }) = self.label else {
            return None;
        };
        let Value::Int(number) = self.value else { return None };
        Schema::get().enumeration(name).name_of(i32::try_from(number).ok()?)
    }

    /// Returns true if a message may have several fields of this name, or if the schema lacks the
    /// field.
    pub fn is_repeated(&self) -> bool {
        match &self.label {
            Label::Known(info) => info.repeated,
            Label::Unknown(_) => true,
        }
    }

    pub(crate) fn is_known(&self) -> bool {
        matches!(self.label, Label::Known(_))
    }

    fn mark(&self) -> &Value {
        self.read.store(true, Ordering::Relaxed);
        &self.value
    }
}

/// A message: its fields, in the order in which they were read.
#[derive(Clone, Debug)]
pub struct Message {
    pub(crate) info: &'static MessageInfo,
    pub(crate) place: Place,
    pub(crate) fields: Vec<Field>,
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.info.name == other.info.name && self.fields == other.fields
    }
}

impl Message {
    pub(crate) fn new(name: &str, place: Place) -> Self {
        Self { info: Schema::get().message(name), place, fields: Vec::new() }
    }

    /// Returns the name of the message's type, such as `ConvolutionParameter`.
    pub fn type_name(&self) -> &'static str {
        self.info.name
    }

    /// Returns the fields in their order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns all fields of this name. Panics for a name that is not in the schema.
    pub(crate) fn all<'a>(&'a self, name: &str) -> impl DoubleEndedIterator<Item = &'a Field> {
        let info = self.declared(name);
        self.fields.iter().filter(move |field| match field.label {
            Label::Known(known) => known.name == info.name,
            Label::Unknown(_) => false,
        })
    }

    /// Returns the schema's field of this name. If the name has several fields, prefers the field
    /// that exists in layers of all types.
    fn declared(&self, name: &str) -> &'static FieldInfo {
        let mut fields = self.info.fields.iter();
        let found = self.info.by_name(name, "").or_else(|| fields.find(|field| field.name == name));
        found.unwrap_or_else(|| panic!("the schema lacks {}.{name}", self.info.name))
    }

    /// Returns whether the schema has a field of this name, for any layer type.
    pub(crate) fn declares(&self, name: &str) -> bool {
        self.info.fields.iter().any(|field| field.name == name)
    }

    /// Returns the message type of the field `name` in a layer of type `layer_type`.
    pub(crate) fn type_of(&self, name: &str, layer_type: &str) -> &'static str {
        let of_type = self.info.by_name(name, layer_type);
        match of_type.unwrap_or_else(|| self.declared(name)).kind {
            Kind::Message(name) => name,
            _ => panic!("{name} is not a message"),
        }
    }

    /// Returns the field's last value, or `None` for a missing field. Marks all values as read.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let mut last = None;
        for field in self.all(name) {
            last = Some(field.mark());
        }
        last
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns an integer. If the field is missing, returns the schema's default, or else 0.
    pub(crate) fn int(&self, name: &str) -> i64 {
        self.given_int(name).unwrap_or_else(|| number(self.declared(name).default, 0))
    }

    pub(crate) fn given_int(&self, name: &str) -> Option<i64> {
        self.get(name).map(as_int)
    }

    /// As in Caffe, returns a number as a `float`. If the field is missing, returns the schema's
    /// default, or else 0.
    pub(crate) fn float(&self, name: &str) -> f32 {
        match self.get(name) {
            Some(value) => as_float(value),
            None => number(self.declared(name).default, 0.0),
        }
    }

    /// Returns a `bool`. If the field is missing, returns the schema's default, or else `false`.
    pub(crate) fn bool(&self, name: &str) -> bool {
        match self.get(name) {
            Some(value) => matches!(value, Value::Bool(true)),
            None => number(self.declared(name).default, false),
        }
    }

    /// Returns a text. If the field is missing, returns the schema's default, or else the empty
    /// text.
    pub(crate) fn text(&self, name: &str) -> &[u8] {
        match self.get(name) {
            Some(Value::Text(text)) => text,
            _ => self.declared(name).default.unwrap_or_default().as_bytes(),
        }
    }

    /// Returns the name of an enum value. If the field is missing, returns the schema's default, or
    /// else the first name.
    pub(crate) fn enumeration(&self, name: &str) -> &'static str {
        let declared = self.declared(name);
        let Kind::Enum(kind) = declared.kind else { panic!("{name} is not an enum") };
        let values = Schema::get().enumeration(kind);
        let given = self.given_int(name).and_then(|number| i32::try_from(number).ok());
        let given = given.and_then(|number| values.name_of(number));
        given.or(declared.default).unwrap_or(values.values[0].1)
    }

    /// Returns the values of a repeated field of integers.
    pub(crate) fn ints(&self, name: &str) -> Vec<i64> {
        self.all(name).map(|field| as_int(field.mark())).collect()
    }

    /// Returns the values of a repeated field of numbers.
    pub(crate) fn floats(&self, name: &str) -> Vec<f32> {
        self.all(name).map(|field| as_float(field.mark())).collect()
    }

    /// Returns the values of a repeated field of texts.
    pub(crate) fn texts(&self, name: &str) -> Vec<&[u8]> {
        let texts = self.all(name).map(|field| match field.mark() {
            Value::Text(text) => &**text,
            _ => &[],
        });
        texts.collect()
    }

    /// Returns the last message in a field, or `None` for a missing field.
    pub(crate) fn message(&self, name: &str) -> Option<&Message> {
        match self.get(name) {
            Some(Value::Message(message)) => Some(message),
            _ => None,
        }
    }

    /// Returns the values of a repeated field of messages.
    pub(crate) fn messages<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Message> {
        self.all(name).filter_map(|field| match field.mark() {
            Value::Message(message) => Some(&**message),
            _ => None,
        })
    }

    /// Returns the first field that was not read, in this message or in a message inside it.
    pub(crate) fn unread(&self) -> Option<&Field> {
        self.fields.iter().find_map(|field| match &field.value {
            _ if !field.read.load(Ordering::Relaxed) => Some(field),
            Value::Message(message) => message.unread(),
            _ => None,
        })
    }

    /// Marks the fields of this name, and all fields inside them, as read. These fields must not
    /// change what the layer computes.
    pub(crate) fn ignore(&self, name: &str) {
        for field in self.all(name) {
            field.ignore();
        }
    }

    /// Adds a field that the schema has.
    pub(crate) fn push(&mut self, name: &str, value: Value) {
        let label = Label::Known(self.declared(name));
        self.fields.push(Field::new(label, Place::Made, value));
    }
}

impl Field {
    fn ignore(&self) {
        if let Value::Message(message) = self.mark() {
            message.fields.iter().for_each(Field::ignore);
        }
    }
}

fn as_int(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        _ => 0,
    }
}

fn as_float(value: &Value) -> f32 {
    match value {
        #[allow(clippy::cast_possible_truncation)] // Caffe computes with `float`
        Value::Float(number) => *number as f32,
        _ => 0.0,
    }
}

fn number<T: std::str::FromStr>(text: Option<&str>, otherwise: T) -> T {
    text.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
