//! Field numbers, types and defaults of Caffe's messages, read once from `schema/caffe.schema`.

use std::collections::HashMap;
use std::sync::OnceLock;

/// A field of a message.
#[derive(Debug)]
pub(crate) struct FieldInfo {
    pub name: &'static str,
    pub number: u32,
    pub kind: Kind,
    pub repeated: bool,
    pub packed: bool,
    pub default: Option<&'static str>,
    /// The types of the layers that have the field. An empty list means all types. Of two fields
    /// with the same name or number, a field that lists the layer's type takes precedence.
    pub when: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float,
    Double,
    Bool,
    Text,
    Bytes,
    /// An enum's name, see [`EnumInfo`].
    Enum(&'static str),
    /// A message's name, see [`MessageInfo`].
    Message(&'static str),
}

/// The fields of a message, in the schema's order.
#[derive(Debug)]
pub(crate) struct MessageInfo {
    pub name: &'static str,
    pub fields: Vec<FieldInfo>,
    by_name: HashMap<&'static str, Vec<usize>>,
    by_number: HashMap<u32, Vec<usize>>,
}

impl MessageInfo {
    /// Returns the field with this name, for a layer of type `layer_type`.
    pub fn by_name(&'static self, name: &str, layer_type: &str) -> Option<&'static FieldInfo> {
        self.choose(self.by_name.get(name)?, layer_type)
    }

    /// Returns the field with this number, for a layer of type `layer_type`.
    pub fn by_number(&'static self, number: u32, layer_type: &str) -> Option<&'static FieldInfo> {
        self.choose(self.by_number.get(&number)?, layer_type)
    }

    fn choose(&'static self, candidates: &[usize], layer_type: &str) -> Option<&'static FieldInfo> {
        let fields = || candidates.iter().map(|&at| &self.fields[at]);
        let named = fields().find(|field| field.when.contains(&layer_type));
        named.or_else(|| fields().find(|field| field.when.is_empty()))
    }
}

/// Returns whether the message is a layer in any of Caffe's three formats. A layer's type decides
/// the meaning of some fields of the layer and of the messages inside it.
pub(crate) fn is_layer(info: &MessageInfo) -> bool {
    matches!(info.name, "LayerParameter" | "V1LayerParameter" | "V0LayerParameter")
}

/// The values of an enum, in the schema's order.
#[derive(Debug)]
pub(crate) struct EnumInfo {
    pub values: Vec<(i32, &'static str)>,
}

impl EnumInfo {
    /// Returns all names with this number. Some forks of Caffe use one number for several names.
    pub fn names_of(&self, number: i32) -> impl Iterator<Item = &'static str> + '_ {
        self.values.iter().filter(move |value| value.0 == number).map(|value| value.1)
    }

    pub fn name_of(&self, number: i32) -> Option<&'static str> {
        self.names_of(number).next()
    }

    /// Returns the first number with the same name as `number`. In forks, several numbers may have
    /// one name.
    pub fn first_number(&self, number: i32) -> Option<i32> {
        self.number_of(self.name_of(number)?)
    }

    pub fn number_of(&self, name: &str) -> Option<i32> {
        self.values.iter().find(|value| value.1 == name).map(|value| value.0)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Schema {
    messages: HashMap<&'static str, MessageInfo>,
    enums: HashMap<&'static str, EnumInfo>,
}

impl Schema {
    /// Returns the schema. Panics if `caffe.schema` is invalid, which every test would detect.
    pub fn get() -> &'static Self {
        static SCHEMA: OnceLock<Schema> = OnceLock::new();
        SCHEMA.get_or_init(|| parse(include_str!("../schema/caffe.schema")))
    }

    /// Returns a message of the schema.
    pub fn message(&'static self, name: &str) -> &'static MessageInfo {
        self.messages.get(name).unwrap_or_else(|| panic!("the schema lacks the message {name}"))
    }

    /// Returns an enum of the schema.
    pub fn enumeration(&'static self, name: &str) -> &'static EnumInfo {
        self.enums.get(name).unwrap_or_else(|| panic!("the schema lacks the enum {name}"))
    }
}

enum Block {
    None,
    Message(MessageInfo),
    Enum(&'static str, EnumInfo),
}

fn parse(text: &'static str) -> Schema {
    let enums: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("enum ")).collect();
    let mut schema = Schema::default();
    let mut block = Block::None;
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let words: Vec<&'static str> = line.split_whitespace().collect();
        match (words.as_slice(), &mut block) {
            ([], _) => {}
            (["message", name], _) => {
                schema.end(std::mem::replace(&mut block, Block::Message(MessageInfo::new(name))));
            }
            (["enum", name], _) => {
                let fresh = Block::Enum(name, EnumInfo { values: Vec::new() });
                schema.end(std::mem::replace(&mut block, fresh));
            }
            ([value, name], Block::Enum(_, values)) => {
                values.values.push((value.parse().expect("an enum's number"), name));
            }
            ([value, name, kind, rest @ ..], Block::Message(message)) => {
                let kind = kind_of(kind, &enums);
                message.push(field(value.parse().expect("a field's number"), name, kind, rest));
            }
            _ => panic!("caffe.schema, line {}: '{line}'", number + 1),
        }
    }
    schema.end(block);
    schema
}

impl Schema {
    fn end(&mut self, block: Block) {
        match block {
            Block::None => {}
            Block::Message(message) => {
                assert!(self.messages.insert(message.name, message).is_none(), "a message twice");
            }
            Block::Enum(name, values) => {
                assert!(self.enums.insert(name, values).is_none(), "the enum {name} twice");
            }
        }
    }
}

impl MessageInfo {
    fn new(name: &'static str) -> Self {
        Self { name, fields: Vec::new(), by_name: HashMap::new(), by_number: HashMap::new() }
    }

    fn push(&mut self, field: FieldInfo) {
        let at = self.fields.len();
        self.by_name.entry(field.name).or_default().push(at);
        self.by_number.entry(field.number).or_default().push(at);
        self.fields.push(field);
    }
}

fn field(number: u32, name: &'static str, kind: Kind, words: &[&'static str]) -> FieldInfo {
    let mut field = FieldInfo {
        name,
        number,
        kind,
        repeated: false,
        packed: false,
        default: None,
        when: Vec::new(),
    };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let mut next = || *words.next().unwrap_or_else(|| panic!("{name}: a word after {word}"));
        match word {
            "repeated" => field.repeated = true,
            "packed" => field.packed = true,
            "=" => field.default = Some(next()),
            "when" => field.when = next().split('|').collect(),
            _ => panic!("{name}: unknown word {word}"),
        }
    }
    field
}

fn kind_of(word: &'static str, enums: &[&str]) -> Kind {
    match word {
        "int32" => Kind::Int32,
        "uint32" => Kind::Uint32,
        "int64" => Kind::Int64,
        "uint64" => Kind::Uint64,
        "float" => Kind::Float,
        "double" => Kind::Double,
        "bool" => Kind::Bool,
        "string" => Kind::Text,
        "bytes" => Kind::Bytes,
        _ if enums.iter().any(|name| name.trim() == word) => Kind::Enum(word),
        _ => Kind::Message(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_exist_and_defaults_are_valid() {
        let schema = Schema::get();
        for field in schema.messages.values().flat_map(|message| &message.fields) {
            match field.kind {
                Kind::Message(name) => drop(schema.message(name)),
                Kind::Enum(name) => {
                    let known = field.default.map(|text| schema.enumeration(name).number_of(text));
                    assert_ne!(known, Some(None), "{}: {:?}", field.name, field.default);
                }
                Kind::Text | Kind::Bytes => {}
                Kind::Bool => {
                    assert!(field.default.is_none_or(|text| text.parse::<bool>().is_ok()));
                }
                _ => assert!(field.default.is_none_or(|text| text.parse::<f64>().is_ok())),
            }
        }
    }
}
