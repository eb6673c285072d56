//! Checks ONNX files with a parser that is independent of the crate `syncblob-net`.

use std::collections::{HashMap, HashSet};

use prost::Message;

#[derive(Clone, PartialEq, Message)]
struct Model {
    #[prost(message, optional, tag = "7")]
    graph: Option<Graph>,
    #[prost(message, repeated, tag = "8")]
    opsets: Vec<Opset>,
}

#[derive(Clone, PartialEq, Message)]
struct Opset {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(int64, tag = "2")]
    version: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Graph {
    #[prost(message, repeated, tag = "1")]
    nodes: Vec<Node>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, repeated, tag = "5")]
    initializers: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    inputs: Vec<Info>,
    #[prost(message, repeated, tag = "12")]
    outputs: Vec<Info>,
    #[prost(message, repeated, tag = "13")]
    infos: Vec<Info>,
}

#[derive(Clone, PartialEq, Message)]
struct Node {
    #[prost(string, repeated, tag = "1")]
    inputs: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    outputs: Vec<String>,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(string, tag = "4")]
    op: String,
}

#[derive(Clone, PartialEq, Message)]
struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(bytes = "vec", tag = "9")]
    raw_data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Info {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Message)]
struct Kind {
    #[prost(message, optional, tag = "1")]
    tensor: Option<TensorKind>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorKind {
    #[prost(message, optional, tag = "2")]
    shape: Option<Shape>,
}

#[derive(Clone, PartialEq, Message)]
struct Shape {
    #[prost(message, repeated, tag = "1")]
    dims: Vec<Dim>,
}

#[derive(Clone, PartialEq, Message)]
struct Dim {
    #[prost(int64, optional, tag = "1")]
    value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
}

impl Info {
    /// Returns the dimensions, with `None` for a dimension that has a name instead of a size.
    fn shape(&self) -> Vec<Option<i64>> {
        let tensor = self.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
        let shape = tensor.and_then(|tensor| tensor.shape.as_ref()).expect("a shape");
        assert!(shape.dims.iter().all(|dim| dim.value.is_some() != dim.name.is_some()));
        shape.dims.iter().map(|dim| dim.value).collect()
    }
}

/// Checks an ONNX file. `shapes` are the blobs' shapes by Caffe's rules.
pub fn check(file: &[u8], shapes: &[(String, Vec<i64>)]) {
    let model = Model::decode(file).expect("a message");
    let opset = |domain: &str, version| Opset { domain: domain.into(), version };
    assert!([opset("", 17), opset("caffe", 1)].starts_with(&model.opsets));
    let graph = model.graph.expect("a graph");
    assert!(!graph.name.is_empty());
    let mut made = HashSet::new();
    for input in &graph.inputs {
        assert!(made.insert(input.name.as_str()), "two values: {}", input.name);
    }
    for tensor in &graph.initializers {
        assert!(made.insert(tensor.name.as_str()), "two values: {}", tensor.name);
        tensor.check();
    }
    let mut names = HashSet::new();
    for node in &graph.nodes {
        assert!(names.insert(&node.name), "two nodes: {}", node.name);
        for input in node.inputs.iter().filter(|input| !input.is_empty()) {
            assert!(made.contains(input.as_str()), "{} reads {input} too early", node.name);
        }
        for output in node.outputs.iter().filter(|output| !output.is_empty()) {
            assert!(made.insert(output), "{} makes {output} again", node.op);
        }
    }
    for output in &graph.outputs {
        assert!(made.contains(output.name.as_str()), "no node makes {}", output.name);
    }
    compare_shapes(&graph, &made, shapes);
}

fn compare_shapes(graph: &Graph, made: &HashSet<&str>, shapes: &[(String, Vec<i64>)]) {
    let shapes: HashMap<&str, &Vec<i64>> =
        shapes.iter().map(|(name, shape)| (name.as_str(), shape)).collect();
    for info in graph.infos.iter().chain(&graph.outputs) {
        assert!(made.contains(info.name.as_str()), "no node makes {}", info.name);
        let Some(shape) = shapes.get(info.name.as_str()) else { continue };
        let given = info.shape();
        assert_eq!(given.len(), shape.len(), "axes of {}", info.name);
        let same = given.iter().zip(*shape).all(|(given, dim)| given.is_none_or(|it| it == *dim));
        assert!(same, "{}: {given:?}, not {shape:?}", info.name);
    }
}

impl Tensor {
    fn check(&self) {
        let size = match self.data_type {
            9 => 1,
            10 => 2,
            1 | 6 => 4,
            7 | 11 => 8,
            other => panic!("a tensor of type {other}"),
        };
        let count = self.dims.iter().try_fold(1_u64, |count, &dim| {
            count.checked_mul(u64::try_from(dim).expect("no negative dimension"))
        });
        assert_eq!(
            count.map(|count| count * size),
            Some(self.raw_data.len() as u64),
            "{}",
            self.name
        );
    }
}
