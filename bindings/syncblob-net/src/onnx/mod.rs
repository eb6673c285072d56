//! Converts a net into an ONNX graph of opset 17.

mod convert;
mod custom;
mod digests;
mod emit;
mod graph;
mod preprocess;
mod proto;
mod save;
mod write;

use std::collections::HashSet;
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use syncblob::Model;

pub(crate) use custom::Custom;
pub(crate) use emit::{Emit, Weights};
pub(crate) use graph::{Node, Value};
pub use preprocess::{Mean, Preprocessing};
pub(crate) use proto::DataType;

use self::convert::{growing_axis, Ends, Plan};
use self::digests::Digests;
use self::graph::Graph;
use self::proto::{
    Dimension, DimensionValue, GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto,
    TensorShapeProto, TypeProto, TypeProtoTensor, ValueInfoProto,
};
pub use self::write::{Overflow, Sink};
use self::write::{Overflows, Parts, Plain};
use crate::inputs::resize_batch;
use crate::net::Shape;
use crate::shapes::Inferred;
use crate::{Error, Net, Result};

/// The version of ONNX's set of operators in the files.
const OPSET: i64 = 17;
/// The version of ONNX's file format for files with this opset.
const IR_VERSION: i64 = 8;

/// The maximum size of the weights and constants in a single file. Protobuf limits files to 2 GiB.
const MOST_INSIDE: u64 = (2 << 30) - (64 << 20);

/// Options for converting a net.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OnnxOptions {
    /// The names of the blobs to compute. An empty list means the net's outputs. Layers that these
    /// blobs do not need are omitted. A repeated name counts once.
    pub outputs: Vec<String>,
    /// A name for the axis of the batch, whose size is then variable. The batch is the first axis
    /// of the first input and of each input whose first axis has the same size. An axis whose size
    /// is a multiple of the batch has another name.
    pub batch: Option<String>,
    /// Whether the weights are stored, and the results computed, as halves (16-bit floats). Inputs
    /// and outputs remain `f32`.
    pub half: bool,
    /// The preprocessing of the net's inputs.
    pub preprocessing: Preprocessing,
    /// Whether a layer that cannot be converted becomes a node with the layer's type in the domain
    /// `caffe`. The node's inputs are the layer's bottoms, then its weights. The node's attributes
    /// are the layer's parameters. An attribute is named after a field (`pooled_h`), or
    /// `outer.inner` after a field of a nested message. An enum becomes a string. A value of
    /// unknown type becomes a string of prototxt.
    pub custom: bool,
    /// Names and shapes of blobs that custom nodes write. A blob of unknown shape can be neither an
    /// output nor a bottom of a layer that needs the shape.
    pub shapes: Vec<(String, Shape)>,
    /// Keys and values for the file's metadata. The net's [sources](Net::with_sources) are added as
    /// `caffe.prototxt`, `caffe.prototxt.blake3`, `caffe.model` and `caffe.model.blake3`, and its
    /// [preprocessing](Net::transforms) as `caffe.transform_param.BLOB`.
    pub metadata: Vec<(String, String)>,
}

/// A converted net. The weights are read when the net is written to a file.
pub struct Onnx {
    parts: Parts,
    model: Option<Arc<Model>>,
    warnings: Vec<String>,
}

/// The size of one axis of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// A fixed size.
    Size(i64),
    /// A size that is known only when the net runs. Sizes with the same name are equal.
    Name(String),
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => size.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Returns the name and the shape of an input or output.
fn end(info: &ValueInfoProto) -> (&str, Vec<Dim>) {
    let tensor = info.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref());
    let dims = tensor.and_then(|tensor| tensor.shape.as_ref()).map_or(&[][..], |shape| &shape.dim);
    let dims = dims.iter().filter_map(|dim| dim.value.as_ref()).map(|dim| match dim {
        DimensionValue::Value(size) => Dim::Size(*size),
        DimensionValue::Param(name) => Dim::Name(name.clone()),
    });
    (&info.name, dims.collect())
}

impl Net {
    /// Converts the net into ONNX.
    ///
    /// # Errors
    /// - [`Unsupported`](crate::ErrorKind::Unsupported) for layers that cannot be converted.
    ///   [`Error::problems`](crate::Error::problems) lists all such layers.
    /// - [`Invalid`](crate::ErrorKind::Invalid) for a net or weights that contradict themselves.
    /// - [`Argument`](crate::ErrorKind::Argument) for options that do not fit the net.
    pub fn to_onnx(&self, options: &OnnxOptions) -> Result<Onnx> {
        match options.outputs.as_slice() {
            [] => self.whole_to_onnx(options),
            outputs => self.up_to(outputs)?.whole_to_onnx(options),
        }
    }

    fn whole_to_onnx(&self, options: &OnnxOptions) -> Result<Onnx> {
        if self.outputs.is_empty() {
            return Err(Error::invalid("the net has no layers: it computes nothing"));
        }
        if let Some(name) = self.open_inputs().first() {
            let name = name.escape_default();
            return Err(Error::invalid(format_args!(
                "the shape of the input '{name}' is not known"
            )));
        }
        let mut custom = Custom::new(options);
        loop {
            match self.as_onnx(options, &mut custom) {
                // Tries again: `add_all` has added the unsupported layers to the custom layers.
                Err(error) if custom.add_all(&error) => {}
                result => return result,
            }
        }
    }

    fn as_onnx(&self, options: &OnnxOptions, custom: &mut Custom<'_>) -> Result<Onnx> {
        let inputs: Vec<Shape> = self.inputs.iter().map(|input| input.1.clone()).collect();
        let (layers, problems) = self.infer(&inputs, custom);
        let other = match &options.batch {
            Some(name) if problems.is_empty() => {
                Some(self.with_larger_batch(&inputs, custom, name)?)
            }
            _ => None,
        };
        let plan = Plan::new(self, &layers)?;
        let mut graph = Graph::default();
        let larger = other.as_ref().map(|other| other.1.as_slice());
        let ends = plan.build(&mut graph, larger, options, problems)?;
        custom.check(self, options)?;
        let infos = Infos { plan: &plan, inputs, layers: &layers, other, half: options.half };
        let warnings = renamed(&plan, &graph, &ends);
        let mut message = infos.message(&self.name, &graph, &ends)?;
        message.node = std::mem::take(&mut graph.nodes);
        let model = model_proto(self, options, custom);
        let (half, overflows) = (options.half, Overflows::default());
        let digests = Digests::new(self.sources());
        let parts = Parts { model, message, graph, half, overflows, digests };
        Ok(Onnx { parts, model: self.model.clone(), warnings })
    }

    /// Infers the shapes for a batch that is larger by one, to find axes that depend on the batch.
    fn with_larger_batch<'a>(
        &self,
        inputs: &[Shape],
        custom: &Custom<'_>,
        name: &'a str,
    ) -> Result<Larger<'a>> {
        let mut inputs = inputs.to_vec();
        resize_batch(inputs.iter_mut(), |size| size + 1);
        let (layers, problems) = self.infer(&inputs, &mut custom.settled());
        match problems.is_empty() {
            true => Ok((inputs, layers, name)),
            false => Err(Error::of_problems(problems).within(format_args!(
                "with the batch '{}' of variable size",
                name.escape_default()
            ))),
        }
    }
}

impl Onnx {
    /// Writes a single file, which contains the weights.
    ///
    /// # Errors
    /// - [`Io`](crate::ErrorKind::Io) if the writer fails.
    /// - [`Weights`](crate::ErrorKind::Weights) if weights cannot be read.
    /// - [`Limit`](crate::ErrorKind::Limit) if the file would exceed 2 GiB: use
    ///   [`write_external`](Onnx::write_external) for such a net.
    pub fn write(&self, out: impl Write) -> Result<()> {
        self.write_to(&mut Plain(out))
    }

    /// Writes the file into a sink, which may copy weights directly from the model's file.
    ///
    /// # Errors
    /// All errors of [`write`](Onnx::write).
    pub fn write_to(&self, out: &mut dyn Sink) -> Result<()> {
        if self.needs_external() {
            let text = "more than 2 GiB of weights, which one ONNX file cannot contain";
            return Err(crate::Error::new(crate::ErrorKind::Limit, text));
        }
        self.parts.write(self.model.as_deref(), out)
    }

    /// Returns sentences about differences between the file and the net. For example, an output is
    /// renamed because an input has the same name.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns how many weights, in all tensors written so far, exceeded the range of 16-bit
    /// floats.
    pub fn overflow(&self) -> Option<Overflow> {
        self.parts.overflows.get()
    }

    /// Returns the names and shapes of the inputs.
    pub fn inputs(&self) -> Vec<(&str, Vec<Dim>)> {
        self.parts.message.input.iter().map(end).collect()
    }

    /// Returns the names and shapes of the outputs.
    pub fn outputs(&self) -> Vec<(&str, Vec<Dim>)> {
        self.parts.message.output.iter().map(end).collect()
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.parts.message.node.len()
    }

    /// Returns the number of bytes that [`write`](Onnx::write) writes.
    pub fn size(&self) -> u64 {
        self.parts.size()
    }

    /// Returns the number of bytes of all weights and constants in the file.
    pub fn size_of_values(&self) -> u64 {
        self.parts.size_of_values()
    }

    /// Returns whether the weights and constants are too large for a single file.
    pub fn needs_external(&self) -> bool {
        self.parts.size_of_values() > MOST_INSIDE
    }

    /// Writes the ONNX file into `out`, and large weights into `values`. `values` must be a second
    /// file in the same folder, called `name`.
    ///
    /// # Errors
    /// All errors of [`write`](Onnx::write) except [`Limit`](crate::ErrorKind::Limit).
    pub fn write_external(&self, name: &str, out: impl Write, values: impl Write) -> Result<()> {
        let (out, values) = (&mut Plain(out), &mut Plain(values));
        self.parts.write_external(self.model.as_deref(), name, out, values)
    }

    /// Returns the bytes of the file.
    ///
    /// # Errors
    /// All errors of [`write`](Onnx::write).
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.size()).unwrap_or(0));
        self.write(&mut bytes)?;
        Ok(bytes)
    }
}

fn model_proto(net: &Net, options: &OnnxOptions, custom: &Custom<'_>) -> ModelProto {
    let transforms = net
        .transforms()
        .iter()
        .map(|(blob, transform)| (format!("caffe.transform_param.{blob}"), transform.to_string()));
    let name_of = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let sources = net.sources().iter().map(|(what, path)| (format!("caffe.{what}"), name_of(path)));
    let metadata = options.metadata.iter().cloned().chain(sources).chain(transforms);
    let domain = |domain: &str, version| OperatorSetIdProto { domain: domain.into(), version };
    let mut domains = vec![domain("", OPSET)];
    if !custom.is_empty() {
        domains.push(domain(custom::DOMAIN, custom::DOMAIN_VERSION));
    }
    ModelProto {
        ir_version: IR_VERSION,
        producer_name: env!("CARGO_PKG_NAME").into(),
        producer_version: env!("CARGO_PKG_VERSION").into(),
        opset_import: domains,
        metadata_props: metadata
            .map(|(key, value)| StringStringEntryProto { key, value })
            .collect(),
    }
}

/// Returns a warning for each output that is renamed because an input has the same name.
fn renamed(plan: &Plan<'_>, graph: &Graph, ends: &Ends) -> Vec<String> {
    let names = ends.outputs.iter().map(|&(at, value)| (plan.blob(at), graph.name(value)));
    let renamed = names.filter(|(blob, name)| blob != name).map(|(blob, name)| {
        let (blob, name) = (blob.escape_default(), name.escape_default());
        format!("the output '{blob}' is called '{name}' in the file: an input is called '{blob}'")
    });
    renamed.collect()
}

/// Returns the size of the batch, which is the size of the first input's first axis.
fn batch(inputs: &[Shape]) -> Option<i64> {
    inputs.first()?.first().copied()
}

/// The shapes of inputs and layers for a larger batch, and the name of the batch's axis.
type Larger<'a> = (Vec<Shape>, Vec<Inferred>, &'a str);

/// Computes the names, types and shapes of values.
struct Infos<'a> {
    plan: &'a Plan<'a>,
    inputs: Vec<Shape>,
    layers: &'a [Inferred],
    other: Option<Larger<'a>>,
    half: bool,
}

impl Infos<'_> {
    fn message(&self, name: &str, graph: &Graph, ends: &Ends) -> Result<GraphProto> {
        let of_ends = |ends: &[(usize, Value)]| {
            let info = |&(at, value): &(usize, Value)| match self.info(graph, at, value, false)? {
                Some(info) => Ok(info),
                None => Err(unknown_output(self.plan.blob(at))),
            };
            ends.iter().map(info).collect::<Result<Vec<_>>>()
        };
        let mut inner: Vec<(usize, Value)> = ends.values.iter().map(|(&at, &v)| (at, v)).collect();
        let outer: HashSet<Value> =
            ends.inputs.iter().chain(&ends.outputs).map(|end| end.1).collect();
        inner.retain(|(_, value)| !outer.contains(value));
        inner.sort_unstable_by_key(|&(at, _)| at);
        let inner = inner.iter().map(|&(at, value)| self.info(graph, at, value, self.half));
        let inner = inner.filter_map(Result::transpose);
        Ok(GraphProto {
            node: Vec::new(),
            name: if name.is_empty() { "net" } else { name }.into(), // ONNX requires a name
            input: of_ends(&ends.inputs)?,
            output: of_ends(&ends.outputs)?,
            value_info: inner.collect::<Result<_>>()?,
        })
    }

    /// Describes a value. Returns `None` if the value's shape is not known.
    fn info(
        &self,
        graph: &Graph,
        at: usize,
        value: Value,
        half: bool,
    ) -> Result<Option<ValueInfoProto>> {
        let Some(shape) = self.plan.shape(at, &self.inputs, self.layers) else { return Ok(None) };
        let dim = |value| Dimension { value: Some(value) };
        let mut dims: Vec<Dimension> =
            shape.iter().map(|&n| dim(DimensionValue::Value(n))).collect();
        if let Some((inputs, layers, name)) = &self.other {
            let larger = self.plan.shape(at, inputs, layers).unwrap_or(shape);
            if let Some(axis) = growing_axis(shape, larger)? {
                // Axes with the same name have the same size. An axis whose size is a multiple of
                // the batch needs another name.
                let is_batch = Some(shape[axis]) == batch(&self.inputs);
                let name = match is_batch && larger[axis] == shape[axis] + 1 {
                    true => (*name).to_owned(),
                    false => format!("{}_{name}", graph.name(value)),
                };
                dims[axis] = dim(DimensionValue::Param(name));
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
        Ok(Some(ValueInfoProto {
            name: graph.name(value).to_owned(),
            r#type: Some(TypeProto { tensor_type: Some(tensor) }),
        }))
    }
}

/// Returns the error for an output whose shape is not known. ONNX requires shapes of outputs.
fn unknown_output(name: &str) -> Error {
    let name = name.escape_default();
    Error::invalid(format_args!(
        "the shape of the output '{name}' is not known, because a custom layer makes the \
         output; set the shape by --shape {name}=SHAPE"
    ))
}

#[cfg(test)]
mod tests;
