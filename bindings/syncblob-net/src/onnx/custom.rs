//! Writes custom layers: layers that cannot be converted become nodes of the domain `caffe`.

use std::collections::{HashMap, HashSet};

use super::graph::Node;
use super::OnnxOptions;
use crate::message::{Field, Message, Value};
use crate::net::{Layer, Shape};
use crate::{Error, ErrorKind, Net, Result};

/// The domain of the nodes for custom layers, and its version.
pub(super) const DOMAIN: &str = "caffe";
pub(super) const DOMAIN_VERSION: i64 = 1;

/// The custom layers of a net.
#[derive(Clone, Debug, Default)]
pub(crate) struct Custom<'a> {
    /// If false, `add` adds no layer.
    allowed: bool,
    layers: HashSet<usize>,
    shapes: HashMap<&'a str, &'a Shape>,
}

impl<'a> Custom<'a> {
    /// Makes an empty set of custom layers.
    pub fn new(options: &'a OnnxOptions) -> Self {
        let shapes = options.shapes.iter().map(|(name, shape)| (name.as_str(), shape)).collect();
        Self { allowed: options.custom, layers: HashSet::new(), shapes }
    }

    /// Returns a copy to which `add` adds no layer.
    pub fn settled(&self) -> Self {
        Self { allowed: false, ..self.clone() }
    }

    /// Adds a layer if its error is `Unsupported`. Returns whether the layer was added.
    pub fn add(&mut self, layer: usize, error: ErrorKind) -> bool {
        self.allowed && error == ErrorKind::Unsupported && self.layers.insert(layer)
    }

    /// Adds all layers that an error lists as unsupported. Returns whether at least one was added.
    pub fn add_all(&mut self, error: &Error) -> bool {
        let before = self.layers.len();
        for problem in error.problems() {
            problem.at.map(|layer| self.add(layer, problem.kind));
        }
        self.layers.len() > before
    }

    pub fn has(&self, layer: usize) -> bool {
        self.layers.contains(&layer)
    }

    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// Returns a blob's shape from the options, or `None` if the options lack the blob.
    pub fn shape(&self, name: &str) -> Option<&'a Shape> {
        self.shapes.get(name).copied()
    }

    /// Checks that the options contain only shapes of blobs that custom layers make.
    pub fn check(&self, net: &Net, options: &OnnxOptions) -> Result<()> {
        let made: HashSet<&str> = self
            .layers
            .iter()
            .flat_map(|&at| net.layers[at].tops.iter().map(String::as_str))
            .collect();
        match options.shapes.iter().find(|(name, _)| !made.contains(name.as_str())) {
            Some((name, _)) => Err(Error::argument(format_args!(
                "no custom layer makes '{}': the options may only contain shapes of blobs that \
                 a custom layer makes",
                name.escape_default()
            ))),
            None if options.batch.is_some() && !options.shapes.is_empty() => Err(Error::argument(
                "shapes of blobs of custom layers are possible only if the batch has a fixed size",
            )),
            None => Ok(()),
        }
    }
}

/// Makes a node for the layer, without inputs. The layer's parameters become attributes.
pub(super) fn node(layer: &Layer, obeyed: &[&str]) -> Node {
    let mut attributes =
        Attributes { node: Node::of_domain(&layer.layer_type, DOMAIN), taken: HashSet::new() };
    for (name, fields) in groups(&layer.message) {
        match last_message(&fields) {
            _ if obeyed.contains(&name) => {}
            Some(message) => attributes.add_all(message, "", name),
            None => attributes.add(name.to_owned(), name, &fields),
        }
    }
    attributes.node
}

/// Groups the fields by name. The groups have the order of their first fields.
fn groups(message: &Message) -> Vec<(&str, Vec<&Field>)> {
    let mut groups: Vec<(&str, Vec<&Field>)> = Vec::new();
    let mut places = HashMap::new();
    for field in message.fields() {
        let at = *places.entry(field.name()).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.1.push(field),
            None => groups.push((field.name(), vec![field])),
        }
    }
    groups
}

/// Returns the last field's value, if it is a message and the field is not repeated.
fn last_message<'a>(fields: &[&'a Field]) -> Option<&'a Message> {
    match fields.last().map(|field| (field.is_repeated(), &field.value)) {
        Some((false, Value::Message(message))) => Some(message),
        _ => None,
    }
}

struct Attributes {
    node: Node,
    taken: HashSet<String>,
}

impl Attributes {
    /// Adds the fields of a message as attributes, whose names begin with `prefix`.
    fn add_all(&mut self, message: &Message, prefix: &str, path: &str) {
        for (name, fields) in groups(message) {
            let (wish, path) = (format!("{prefix}{name}"), format!("{path}.{name}"));
            match last_message(&fields) {
                Some(message) => self.add_all(message, &format!("{wish}."), &path),
                None => self.add(wish, &path, &fields),
            }
        }
    }

    /// Adds an attribute called `wish` or, if that name is taken, `path`.
    fn add(&mut self, wish: String, path: &str, fields: &[&Field]) {
        let mut name = match wish.starts_with(|first: char| first.is_ascii_digit()) {
            true => format!("field_{wish}"), // an unknown field from bytes has only a number
            false => wish,
        };
        if self.taken.contains(&name) {
            path.clone_into(&mut name);
        }
        while !self.taken.insert(name.clone()) {
            name.push('_');
        }
        let node = std::mem::replace(&mut self.node, Node::of_domain("", DOMAIN));
        self.node = match fields {
            [field] if !(field.is_known() && field.is_repeated()) => attribute(node, &name, field),
            [.., last] if !last.is_repeated() => attribute(node, &name, last),
            _ => list(node, &name, fields),
        };
    }
}

fn attribute(node: Node, name: &str, field: &Field) -> Node {
    match &field.value {
        Value::Bool(value) => node.int(name, i64::from(*value)),
        Value::Int(value) if field.enum_name().is_none() => node.int(name, *value),
        Value::Float(value) => node.float(name, *value as f32),
        _ => node.bytes(name, text(field)),
    }
}

fn list(node: Node, name: &str, fields: &[&Field]) -> Node {
    let ints = || fields.iter().map(|field| int(field)).collect::<Option<Vec<i64>>>();
    let floats = || fields.iter().map(|field| float(field)).collect::<Option<Vec<f32>>>();
    match (ints(), floats()) {
        (Some(ints), _) => node.ints(name, ints),
        (None, Some(floats)) => node.floats(name, floats),
        (None, None) => node.texts(name, fields.iter().map(|field| text(field)).collect()),
    }
}

fn int(field: &Field) -> Option<i64> {
    match field.value {
        Value::Bool(value) => Some(value.into()),
        Value::Int(value) if field.enum_name().is_none() => Some(value),
        _ => None,
    }
}

fn float(field: &Field) -> Option<f32> {
    match field.value {
        Value::Float(value) => Some(value as f32),
        _ => None,
    }
}

/// Returns a field's value as text. A string is unchanged, a message becomes prototxt, and a value
/// of an unknown field keeps its source text without the colon.
fn text(field: &Field) -> Vec<u8> {
    match (&field.value, field.enum_name()) {
        (_, Some(name)) => name.into(),
        (Value::Text(text), _) => text.to_vec(),
        (Value::Unknown(value), _) => {
            value.strip_prefix(b":").unwrap_or(value).trim_ascii().to_vec()
        }
        (Value::Message(message), _) => message.to_string().into(),
        (Value::Int(value), _) => value.to_string().into(),
        (Value::Bool(value), _) => value.to_string().into(),
        (Value::Float(value), _) => value.to_string().into(),
    }
}
