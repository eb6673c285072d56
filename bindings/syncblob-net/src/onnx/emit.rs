//! The interface through which a layer's rule adds nodes to the graph.

use syncblob::BlobAt;

use super::graph::{Data, Graph, Node, Value};
use super::proto::DataType;
use crate::layers::{fill, Setup};
use crate::message::Message;
use crate::net::{Layer, Shape};
use crate::{Error, Result};

/// The weights of a layer: the model, and the position of each of the layer's blobs in the model.
#[derive(Clone, Copy)]
pub(crate) struct Weights<'a> {
    pub model: &'a syncblob::Model,
    pub blobs: &'a [BlobAt],
}

/// A layer that is being added to the graph.
pub(crate) struct Emit<'a> {
    pub layer: &'a Layer,
    /// The layer's parameters, or an empty message.
    pub parameters: &'a Message,
    /// The shapes of the layer's bottoms and tops.
    pub bottom_shapes: &'a [Shape],
    pub top_shapes: &'a [Shape],
    /// The shapes of the layer's blobs by Caffe's rules, which match the shapes in the model.
    pub blob_shapes: &'a [Shape],
    /// For each bottom and top: the axis whose size depends on the batch, if the batch has a
    /// variable size.
    pub bottom_batch: &'a [Option<usize>],
    pub top_batch: &'a [Option<usize>],
    pub(super) graph: &'a mut Graph,
    pub(super) bottoms: &'a [Value],
    pub(super) tops: &'a [Value],
    pub(super) weights: Option<Weights<'a>>,
}

/// Returns the beginning of a layer's name. The names of the layer's nodes contain only this text,
/// because a long name would be stored many times.
pub(super) fn short(name: &str) -> &str {
    const MOST: usize = 128;
    let end = (0..=name.len().min(MOST)).rev().find(|&end| name.is_char_boundary(end));
    &name[..end.unwrap_or_default()]
}

fn little_endian(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

impl Emit<'_> {
    /// Returns the arguments for the rule's `shapes`.
    pub fn setup(&self) -> Setup<'_> {
        Setup { layer: self.layer, parameters: self.parameters, bottoms: self.bottom_shapes }
    }

    /// Returns the value of a bottom.
    pub fn bottom(&self, index: usize) -> Value {
        self.bottoms[index]
    }

    /// Marks the named parameters as read, because they do not change what the layer computes. The
    /// conversion would fail if a parameter was not read.
    pub fn ignore<const N: usize>(&self, names: [&str; N]) {
        names.iter().for_each(|name| self.parameters.ignore(name));
    }

    /// Begins a node, which [`Node::top`] or [`Node::value`] adds to the graph.
    #[allow(clippy::unused_self)] // every rule builds its nodes from `e`
    pub fn node(&self, op: &'static str) -> Node {
        Node::new(op)
    }

    /// Adds a node without attributes. Returns the node's output, an input for the layer's other
    /// nodes.
    pub fn apply<const N: usize>(&mut self, op: &'static str, inputs: [Value; N]) -> Value {
        self.node(op).inputs(inputs).value(self)
    }

    /// Reshapes `value`. As in ONNX's `Reshape`, 0 copies a dimension and -1 infers a dimension.
    pub fn reshape(&mut self, value: Value, dims: &[i64]) -> Value {
        let dims = self.ints(dims);
        self.apply("Reshape", [value, dims])
    }

    /// Casts `value` to another data type.
    pub fn cast(&mut self, value: Value, to: DataType) -> Value {
        self.node("Cast").int("to", to as i64).input(value).value(self)
    }

    /// Returns one of the layer's blobs as a value, in the shape of `blob_shapes`.
    pub fn blob(&mut self, index: usize) -> Result<Value> {
        let shape = self.blob_shapes[index].clone();
        self.blob_as(index, shape)
    }

    /// Returns one of the layer's blobs as a value, in the shape `dims`, which has the same number
    /// of elements.
    pub fn blob_as(&mut self, index: usize, dims: Shape) -> Result<Value> {
        let data = match self.place_of(index)? {
            Some((_, at)) => Data::Stored(at),
            None => Data::Bytes(little_endian(&self.filled(index)?)),
        };
        let wish = format!("{}.{index}", short(&self.layer.name));
        Ok(self.graph.initializer(wish, DataType::Float, dims, data))
    }

    /// Returns all of the layer's blobs.
    pub fn blobs(&mut self) -> Result<Vec<Value>> {
        (0..self.blob_shapes.len()).map(|index| self.blob(index)).collect()
    }

    /// Returns the numbers in one of the layer's blobs, from which a rule computes constants.
    pub fn blob_values(&self, index: usize) -> Result<Vec<f32>> {
        match self.place_of(index)? {
            Some((model, at)) => Ok(model.load::<f32>(at)?.data()?.to_vec()),
            None => self.filled(index),
        }
    }

    /// Returns the position of a blob in the model, if the model has the blob.
    fn place_of(&self, index: usize) -> Result<Option<(&syncblob::Model, BlobAt)>> {
        let weights = self.weights.ok_or_else(|| Error::invalid("the layer needs weights"))?;
        Ok(weights.blobs.get(index).map(|at| (weights.model, *at)))
    }

    fn filled(&self, index: usize) -> Result<Vec<f32>> {
        let filler = fill::filler(self.layer, index, self.blob_shapes.len());
        let filler = filler.map_err(|why| {
            Error::invalid(format_args!("the model has no blob {index} for the layer, and {why}"))
        })?;
        fill::values(&filler, &self.blob_shapes[index])
    }

    /// Makes a constant tensor of floats.
    pub fn floats(&mut self, dims: &[i64], values: &[f32]) -> Value {
        self.constant(DataType::Float, dims, little_endian(values))
    }

    /// Makes a constant float without axes.
    pub fn float(&mut self, value: f32) -> Value {
        self.floats(&[], &[value])
    }

    /// Makes a constant list of integers, such as a shape, axes or bounds.
    pub fn ints(&mut self, values: &[i64]) -> Value {
        self.ints_of(&[values.len() as i64], values)
    }

    /// Makes a constant tensor of integers.
    pub fn ints_of(&mut self, dims: &[i64], values: &[i64]) -> Value {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(DataType::Int64, dims, bytes)
    }

    fn constant(&mut self, data_type: DataType, dims: &[i64], bytes: Vec<u8>) -> Value {
        let wish = format!("{}/constant", short(&self.layer.name));
        self.graph.initializer(wish, data_type, dims.to_vec(), Data::Bytes(bytes))
    }

    /// Reshapes `value`. The result is a top. If an axis depends on the batch, ONNX infers its
    /// size.
    pub fn reshape_to_top(&mut self, value: Value, top: usize) {
        let mut dims = self.top_shapes[top].clone();
        if let Some(axis) = self.top_batch[top] {
            dims[axis] = -1;
        }
        let dims = self.ints(&dims);
        self.node("Reshape").input(value).input(dims).top(self, top);
    }

    /// Records that a top has an axis whose size is known only when the net runs.
    pub fn varies(&mut self, top: usize, axis: usize) {
        self.graph.varying.insert(self.tops[top], axis);
    }

    /// Makes a top that equals a bottom.
    pub fn pass(&mut self, bottom: usize, top: usize) {
        self.node("Identity").input(self.bottom(bottom)).top(self, top);
    }
}

impl Node {
    /// Adds the node, whose output is a top of the layer.
    pub fn top(self, e: &mut Emit<'_>, index: usize) {
        let top = e.tops[index];
        self.add(e, &[top]);
    }

    /// Adds the node, whose outputs are the tops of the layer.
    pub fn all_tops(self, e: &mut Emit<'_>) {
        let tops = e.tops;
        self.add(e, tops);
    }

    /// Adds the node, whose first output is a top of the layer. Returns the second output.
    pub fn top_and_value(self, e: &mut Emit<'_>, index: usize) -> Value {
        let value = e.graph.value(format!("{}/{}", short(&e.layer.name), self.op));
        let top = e.tops[index];
        self.add(e, &[top, value]);
        value
    }

    /// Adds the node, and returns its output, which other nodes of the layer read.
    pub fn value(self, e: &mut Emit<'_>) -> Value {
        self.values(e, 1)[0]
    }

    /// Adds the node and returns its outputs.
    pub fn values(self, e: &mut Emit<'_>, number: usize) -> Vec<Value> {
        let wish = format!("{}/{}", short(&e.layer.name), self.op);
        let values: Vec<Value> = (0..number).map(|_| e.graph.value(wish.clone())).collect();
        self.add(e, &values);
        values
    }

    fn add(self, e: &mut Emit<'_>, outputs: &[Value]) {
        e.graph.add(short(&e.layer.name), self, outputs);
    }
}
