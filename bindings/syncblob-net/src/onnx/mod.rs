//! The net as an ONNX graph of opset 17.

mod convert;
mod emit;
mod graph;
mod preprocess;
mod proto;
mod write;

use std::io::Write;
use std::sync::Arc;

use syncblob::Model;

pub(crate) use emit::{Emit, Weights};
pub(crate) use graph::{Node, Value};
pub use preprocess::{Mean, Preprocessing};
pub(crate) use proto::DataType;

use self::convert::{growing_axis, Ends, Plan};
use self::graph::Graph;
use self::proto::{
    Dimension, DimensionValue, GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto,
    TensorShapeProto, TypeProto, TypeProtoTensor, ValueInfoProto,
};
use self::write::Parts;
use crate::net::Shape;
use crate::shapes::LayerShapes;
use crate::{Net, Result};

/// The version of ONNX's operators that files use.
const OPSET: i64 = 17;
/// The version of the file format that came with it.
const IR_VERSION: i64 = 8;

/// How many bytes of values a file holds itself: protobuf's messages end at 2 GiB.
const MOST_INSIDE: u64 = (2 << 30) - (64 << 20);

/// How to convert a net.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OnnxOptions {
    /// The blobs to compute, if not the net's outputs. Layers that they do not need go away.
    pub outputs: Vec<String>,
    /// The name of the batch's axis, which then has no fixed size.
    pub batch: Option<String>,
    /// Whether weights are halves, and the net computes with them. Inputs and outputs stay `f32`.
    pub half: bool,
    /// What the net's inputs go through first.
    pub preprocessing: Preprocessing,
    /// Pairs of key and value for the file's metadata.
    pub metadata: Vec<(String, String)>,
}

/// A converted net, ready to be written. It reads the weights when it is.
pub struct Onnx {
    parts: Parts,
    model: Option<Arc<Model>>,
}

impl Net {
    /// Converts the net into ONNX.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for layers that cannot be converted:
    /// [`Error::problems_of`](crate::Error::problems_of) has them all;
    /// [`Invalid`](crate::ErrorKind::Invalid) for a net or weights that contradict themselves.
    pub fn to_onnx(&self, options: &OnnxOptions) -> Result<Onnx> {
        match options.outputs.as_slice() {
            [] => self.whole_to_onnx(options),
            outputs => self.up_to(outputs)?.whole_to_onnx(options),
        }
    }

    fn whole_to_onnx(&self, options: &OnnxOptions) -> Result<Onnx> {
        let inputs: Vec<Shape> = self.inputs.iter().map(|input| input.1.clone()).collect();
        let layers = self.infer(&inputs)?;
        let other = options.batch.as_deref().map(|name| self.with_larger_batch(&inputs, name));
        let other = other.transpose()?;
        let plan = Plan::new(self, &layers)?;
        let mut graph = Graph::default();
        let larger = other.as_ref().map(|other| other.1.as_slice());
        let ends = plan.build(&mut graph, larger, options)?;
        let infos = Infos { plan: &plan, inputs, layers: &layers, other, half: options.half };
        let mut message = infos.message(&self.name, &graph, &ends)?;
        message.node = std::mem::take(&mut graph.nodes);
        let parts = Parts { model: model_proto(options), message, graph, half: options.half };
        Ok(Onnx { parts, model: self.model.clone() })
    }

    /// The shapes where every input's first axis is one larger, which is the batch.
    fn with_larger_batch<'a>(&self, inputs: &[Shape], name: &'a str) -> Result<Larger<'a>> {
        let mut inputs = inputs.to_vec();
        inputs.iter_mut().filter_map(|shape| shape.first_mut()).for_each(|batch| *batch += 1);
        let layers = self.infer(&inputs).map_err(|error| {
            error.within(format_args!(
                "with a batch '{}' that has no fixed size",
                name.escape_default()
            ))
        })?;
        Ok((inputs, layers, name))
    }
}

impl Onnx {
    /// Writes the file, weights inside.
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io) of the writer; [`Weights`](crate::ErrorKind::Weights) that
    /// cannot be read; [`Limit`](crate::ErrorKind::Limit) above 2 GiB, where
    /// [`write_external`](Onnx::write_external) is for.
    pub fn write(&self, mut out: impl Write) -> Result<()> {
        if self.needs_external() {
            let text = "more than 2 GiB of weights, which no ONNX file holds itself";
            return Err(crate::Error::new(crate::ErrorKind::Limit, text));
        }
        self.parts.write(self.model.as_deref(), &mut out)
    }

    /// Bytes of all weights and constants in the file.
    pub fn size_of_values(&self) -> u64 {
        self.parts.size_of_values()
    }

    /// Whether there are more weights than one file holds.
    pub fn needs_external(&self) -> bool {
        self.parts.size_of_values() > MOST_INSIDE
    }

    /// Writes the file, and the weights into another, which must have the given name beside it.
    ///
    /// # Errors
    /// As [`write`](Onnx::write).
    pub fn write_external(
        &self,
        name: &str,
        mut out: impl Write,
        mut values: impl Write,
    ) -> Result<()> {
        self.parts.write_external(self.model.as_deref(), name, &mut out, &mut values)
    }

    /// The file as bytes.
    ///
    /// # Errors
    /// As [`write`](Onnx::write).
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write(&mut bytes)?;
        Ok(bytes)
    }
}

fn model_proto(options: &OnnxOptions) -> ModelProto {
    let entry = |(key, value): &(String, String)| StringStringEntryProto {
        key: key.clone(),
        value: value.clone(),
    };
    ModelProto {
        ir_version: IR_VERSION,
        producer_name: env!("CARGO_PKG_NAME").into(),
        producer_version: env!("CARGO_PKG_VERSION").into(),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: OPSET }],
        metadata_props: options.metadata.iter().map(entry).collect(),
    }
}

/// The shapes where the batch is larger, and the name of its axis.
type Larger<'a> = (Vec<Shape>, Vec<LayerShapes>, &'a str);

/// Names, types and shapes of values.
struct Infos<'a> {
    plan: &'a Plan<'a>,
    inputs: Vec<Shape>,
    layers: &'a [LayerShapes],
    other: Option<Larger<'a>>,
    half: bool,
}

impl Infos<'_> {
    fn message(&self, name: &str, graph: &Graph, ends: &Ends) -> Result<GraphProto> {
        let of_ends = |ends: &[(usize, Value)]| {
            let infos = ends.iter().map(|&(at, value)| self.info(graph, at, value, false));
            infos.collect::<Result<Vec<_>>>()
        };
        let mut inner: Vec<(usize, Value)> = ends.values.iter().map(|(&at, &v)| (at, v)).collect();
        let is_end =
            |value: Value| ends.inputs.iter().chain(&ends.outputs).any(|&(_, end)| end == value);
        inner.retain(|&(_, value)| !is_end(value));
        inner.sort_unstable_by_key(|&(at, _)| at);
        let inner = inner.iter().map(|&(at, value)| self.info(graph, at, value, self.half));
        Ok(GraphProto {
            node: Vec::new(),
            name: if name.is_empty() { "net" } else { name }.into(), // ONNX wants one
            input: of_ends(&ends.inputs)?,
            output: of_ends(&ends.outputs)?,
            value_info: inner.collect::<Result<_>>()?,
        })
    }

    fn info(&self, graph: &Graph, at: usize, value: Value, half: bool) -> Result<ValueInfoProto> {
        let shape = self.plan.shape(at, &self.inputs, self.layers);
        let dim = |value| Dimension { value: Some(value) };
        let mut dims: Vec<Dimension> =
            shape.iter().map(|&n| dim(DimensionValue::Value(n))).collect();
        if let Some((inputs, layers, name)) = &self.other {
            if let Some(axis) = growing_axis(shape, self.plan.shape(at, inputs, layers))? {
                dims[axis] = dim(DimensionValue::Param((*name).to_owned()));
            }
        }
        if let Some(axis) = graph.varying.get(&value) {
            dims[*axis] = dim(DimensionValue::Param(format!("{}_rows", graph.name(value))));
        }
        let data_type = if half { DataType::Float16 } else { DataType::Float };
        let tensor = TypeProtoTensor {
            elem_type: data_type as i32,
            shape: Some(TensorShapeProto { dim: dims }),
        };
        Ok(ValueInfoProto {
            name: graph.name(value).to_owned(),
            r#type: Some(TypeProto { tensor_type: Some(tensor) }),
        })
    }
}
