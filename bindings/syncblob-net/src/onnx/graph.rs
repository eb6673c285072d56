//! Builds an ONNX graph: nodes in the order in which they run, and constant tensors.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use syncblob::BlobAt;

use super::proto::{AttributeProto, AttributeType, DataType, NodeProto};
use crate::{Error, ErrorKind, Result};

/// A value of the graph: an output of a node, an input of the graph, or an initializer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Value(u32);

/// A constant tensor, which is stored in the file.
#[derive(Debug)]
pub(crate) struct Initializer {
    pub value: Value,
    pub data_type: DataType,
    pub dims: Vec<i64>,
    pub data: Data,
    /// Whether the values remain `f32` in a file that stores weights as 16-bit floats.
    pub full_precision: bool,
}

/// The values of a constant tensor.
#[derive(Debug)]
pub(crate) enum Data {
    /// The values' bytes, in little-endian order.
    Bytes(Vec<u8>),
    /// A blob of the model, which is read when the file is written.
    Stored(BlobAt),
}

/// The maximum size of a graph without its weights, in bytes.
const MOST: usize = 256 << 20;

/// The nodes, initializers and unique names of a graph.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub nodes: Vec<NodeProto>,
    pub initializers: Vec<Initializer>,
    /// Maps a value to the axis whose size is known only when the net runs.
    pub varying: HashMap<Value, usize>,
    /// The value of `full_precision` for constant tensors that are added from now on.
    pub full_precision: bool,
    /// The size in bytes of the nodes, of their names and of computed tensors.
    size: usize,
    names: Vec<String>,
    /// Names of blobs, which no other value may have.
    reserved: HashSet<String>,
    /// Maps each used name to the next number to append to the name.
    taken: HashMap<String, u64>,
}

impl Graph {
    /// Reserves names for blobs.
    pub fn reserve<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.reserved.extend(names.map(str::to_owned));
    }

    /// Makes a value with a blob's reserved name. If a value already has the name, appends a
    /// number.
    pub fn blob(&mut self, name: &str) -> Value {
        if !self.taken.contains_key(name) {
            self.reserved.remove(name);
        }
        self.value(name)
    }

    /// Makes a value called `wish`. If that name is taken, appends a number. Replaces an empty
    /// name, because an empty name means a missing value in ONNX.
    pub fn value(&mut self, wish: impl Into<String>) -> Value {
        let wish = wish.into();
        let name = self.free_name(if wish.is_empty() { "unnamed".into() } else { wish });
        self.taken.insert(name.clone(), 1);
        self.names.push(name);
        Value(u32::try_from(self.names.len() - 1).expect("fewer values than 2^32"))
    }

    fn free_name(&mut self, wish: String) -> String {
        let is_free =
            |name: &String| !self.taken.contains_key(name) && !self.reserved.contains(name);
        if is_free(&wish) {
            return wish;
        }
        let next = self.taken.get(&wish).copied().unwrap_or(1);
        let names = (next..).map(|number| (number, format!("{wish}.{number}")));
        let mut free = names.skip_while(|(_, name)| !is_free(name));
        let (number, name) = free.next().expect("a number is free");
        self.taken.insert(wish, number + 1);
        name
    }

    /// Adds a node that is named after its layer.
    pub fn add(&mut self, owner: &str, node: Node, outputs: &[Value]) {
        let name = |value: &Value| self.name(*value).to_owned();
        let input = node.inputs.iter().map(|input| input.as_ref().map(name).unwrap_or_default());
        let node = NodeProto {
            input: input.collect(),
            output: outputs.iter().map(name).collect(),
            name: format!("{owner}/{}", self.nodes.len()),
            op_type: node.op.into_owned(),
            domain: node.domain.into(),
            attribute: node.attributes,
        };
        let names = node.input.iter().chain(&node.output).map(String::len);
        self.size += size_of::<NodeProto>() + names.sum::<usize>();
        self.nodes.push(node);
    }

    /// Refuses a graph whose nodes and computed tensors are too large.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit).
    pub fn check_size(&self) -> Result<()> {
        if self.size <= MOST {
            return Ok(());
        }
        let text = format_args!("the graph's nodes and computed tensors exceed {} MiB", MOST >> 20);
        Err(Error::new(ErrorKind::Limit, text))
    }

    pub fn name(&self, value: Value) -> &str {
        &self.names[value.0 as usize]
    }

    pub fn initializer(
        &mut self,
        wish: String,
        data_type: DataType,
        dims: Vec<i64>,
        data: Data,
    ) -> Value {
        let (value, full_precision) = (self.value(wish), self.full_precision);
        if let Data::Bytes(bytes) = &data {
            self.size += bytes.len();
        }
        self.initializers.push(Initializer { value, data_type, dims, data, full_precision });
        value
    }
}

/// A node under construction.
#[derive(Debug)]
pub(crate) struct Node {
    pub(super) op: Cow<'static, str>,
    pub(super) domain: &'static str,
    pub(super) inputs: Vec<Option<Value>>,
    pub(super) attributes: Vec<AttributeProto>,
}

impl Node {
    pub fn new(op: &'static str) -> Self {
        Self { op: op.into(), domain: "", inputs: Vec::new(), attributes: Vec::new() }
    }

    /// Begins a node whose operator belongs to `domain` instead of ONNX.
    pub fn of_domain(op: &str, domain: &'static str) -> Self {
        Self { op: op.to_owned().into(), domain, inputs: Vec::new(), attributes: Vec::new() }
    }

    /// Adds an input.
    pub fn input(mut self, value: Value) -> Self {
        self.inputs.push(Some(value));
        self
    }

    /// Omits an optional input.
    pub fn no_input(mut self) -> Self {
        self.inputs.push(None);
        self
    }

    pub fn inputs(self, values: impl IntoIterator<Item = Value>) -> Self {
        values.into_iter().fold(self, Self::input)
    }

    fn attribute(mut self, name: &str, kind: AttributeType, set: AttributeProto) -> Self {
        self.attributes.push(AttributeProto { name: name.into(), r#type: kind as i32, ..set });
        self
    }

    pub fn int(self, name: &str, value: i64) -> Self {
        let set = AttributeProto { i: Some(value), ..Default::default() };
        self.attribute(name, AttributeType::Int, set)
    }

    pub fn ints(self, name: &str, values: impl IntoIterator<Item = i64>) -> Self {
        let ints = values.into_iter().collect();
        self.attribute(name, AttributeType::Ints, AttributeProto { ints, ..Default::default() })
    }

    pub fn float(self, name: &str, value: f32) -> Self {
        let set = AttributeProto { f: Some(value), ..Default::default() };
        self.attribute(name, AttributeType::Float, set)
    }

    pub fn floats(self, name: &str, floats: Vec<f32>) -> Self {
        self.attribute(name, AttributeType::Floats, AttributeProto { floats, ..Default::default() })
    }

    pub fn text(self, name: &str, value: &str) -> Self {
        self.bytes(name, value.into())
    }

    /// Adds a string attribute, whose bytes need not be UTF-8.
    pub fn bytes(self, name: &str, value: Vec<u8>) -> Self {
        let set = AttributeProto { s: Some(value), ..Default::default() };
        self.attribute(name, AttributeType::String, set)
    }

    pub fn texts(self, name: &str, strings: Vec<Vec<u8>>) -> Self {
        let set = AttributeProto { strings, ..Default::default() };
        self.attribute(name, AttributeType::Strings, set)
    }
}

#[cfg(test)]
mod tests {
    use super::Graph;

    #[test]
    fn names_are_unique_and_not_empty() {
        let mut graph = Graph::default();
        for (wish, name) in [
            ("a", "a"),
            ("a", "a.1"),
            ("a.2", "a.2"),
            ("a", "a.3"),
            ("a.1", "a.1.1"),
            ("a", "a.4"),
            ("", "unnamed"),
            ("", "unnamed.1"),
        ] {
            let value = graph.value(wish);
            assert_eq!(graph.name(value), name, "'{wish}'");
        }
    }
}
