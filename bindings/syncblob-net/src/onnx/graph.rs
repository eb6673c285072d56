//! A graph under construction: nodes in the order in which they run, and the tensors that they
//! begin with.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use syncblob::BlobAt;

use super::proto::{AttributeProto, AttributeType, DataType, NodeProto};

/// A value of the graph: an output of a node, an input of the graph or an initializer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Value(u32);

/// A tensor that is part of the file.
#[derive(Debug)]
pub(crate) struct Initializer {
    pub value: Value,
    pub data_type: DataType,
    pub dims: Vec<i64>,
    pub data: Data,
    /// Whether its numbers stay `f32` in a file of halves.
    pub full_precision: bool,
}

/// Where a tensor's values come from.
#[derive(Debug)]
pub(crate) enum Data {
    /// Little-endian bytes of the data type.
    Bytes(Vec<u8>),
    /// A blob of the model as it is stored, read when the file is written.
    Stored(BlobAt),
}

/// Nodes, initializers and names. A name is given once.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub nodes: Vec<NodeProto>,
    pub initializers: Vec<Initializer>,
    /// Axes whose sizes are known only when the net runs.
    pub varying: HashMap<Value, usize>,
    /// Whether tensors that are added keep their precision in a file of halves.
    pub full_precision: bool,
    names: Vec<String>,
    taken: HashSet<String>,
}

impl Graph {
    /// A value of a wished name; if it is taken, with a number behind.
    pub fn value(&mut self, wish: impl Into<String>) -> Value {
        let wish = wish.into();
        let name = match self.taken.contains(&wish) {
            false => wish,
            true => self.free_name(&wish),
        };
        self.taken.insert(name.clone());
        self.names.push(name);
        Value(u32::try_from(self.names.len() - 1).expect("fewer values than 2^32"))
    }

    fn free_name(&self, wish: &str) -> String {
        let mut names = (1_u64..).map(|number| format!("{wish}.{number}"));
        names.find(|name| !self.taken.contains(name)).expect("a number is free")
    }

    /// Adds a node, named after what it belongs to.
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
        self.nodes.push(node);
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

    /// An operator that is not ONNX's.
    pub fn of_domain(op: &str, domain: &'static str) -> Self {
        Self { op: op.to_owned().into(), domain, inputs: Vec::new(), attributes: Vec::new() }
    }

    /// The next input.
    pub fn input(mut self, value: Value) -> Self {
        self.inputs.push(Some(value));
        self
    }

    /// An optional input that is left out.
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

    /// A text in any encoding.
    pub fn bytes(self, name: &str, value: Vec<u8>) -> Self {
        let set = AttributeProto { s: Some(value), ..Default::default() };
        self.attribute(name, AttributeType::String, set)
    }

    pub fn texts(self, name: &str, strings: Vec<Vec<u8>>) -> Self {
        let set = AttributeProto { strings, ..Default::default() };
        self.attribute(name, AttributeType::Strings, set)
    }
}
