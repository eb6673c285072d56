//! The interface with which a layer's rule adds nodes.

use syncblob::BlobAt;

use super::graph::{Data, Graph, Node, Value};
use super::proto::DataType;
use crate::layers::{fill, Setup};
use crate::message::Message;
use crate::net::{Layer, Shape};
use crate::{Error, Result};

/// The weights of a layer: the model, and where in it each blob stands.
#[derive(Clone, Copy)]
pub(crate) struct Weights<'a> {
    pub model: &'a syncblob::Model,
    pub blobs: &'a [BlobAt],
}

/// One layer that is being added to the graph. Shapes are known; names are made here.
pub(crate) struct Emit<'a> {
    pub layer: &'a Layer,
    /// Its parameters; without any the empty message.
    pub parameters: &'a Message,
    /// The shapes of its bottoms and tops.
    pub bottom_shapes: &'a [Shape],
    pub top_shapes: &'a [Shape],
    /// The shapes of its blobs, by Caffe's rules, to which the stored shapes were compared.
    pub blob_shapes: &'a [Shape],
    /// For each bottom and top the axis that grows with the batch, if the batch has no fixed size.
    pub bottom_batch: &'a [Option<usize>],
    pub top_batch: &'a [Option<usize>],
    pub(super) graph: &'a mut Graph,
    pub(super) bottoms: &'a [Value],
    pub(super) tops: &'a [Value],
    pub(super) weights: Option<Weights<'a>>,
}

/// The beginning of a layer's name: a graph has it once for every node, so that a long one would
/// be many times as much as it was in the net.
pub(super) fn short(name: &str) -> &str {
    const MOST: usize = 128;
    let end = (0..=name.len().min(MOST)).rev().find(|&end| name.is_char_boundary(end));
    &name[..end.unwrap_or_default()]
}

fn little_endian(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

impl Emit<'_> {
    /// The inputs of its shape computation.
    pub fn setup(&self) -> Setup<'_> {
        Setup { layer: self.layer, parameters: self.parameters, bottoms: self.bottom_shapes }
    }

    /// The value of a bottom.
    pub fn bottom(&self, index: usize) -> Value {
        self.bottoms[index]
    }

    /// Marks parameters that change nothing.
    pub fn ignore<const N: usize>(&self, names: [&str; N]) {
        names.iter().for_each(|name| self.parameters.ignore(name));
    }

    /// Begins a node. It is added by [`Node::top`] or [`Node::value`].
    #[allow(clippy::unused_self)] // so that every rule builds nodes by `e`
    pub fn node(&self, op: &'static str) -> Node {
        Node::new(op)
    }

    /// A node without attributes, whose output is for other nodes of the layer.
    pub fn apply<const N: usize>(&mut self, op: &'static str, inputs: [Value; N]) -> Value {
        self.node(op).inputs(inputs).value(self)
    }

    /// `value` with other dimensions; 0 and -1 as ONNX's `Reshape` has them.
    pub fn reshape(&mut self, value: Value, dims: &[i64]) -> Value {
        let dims = self.ints(dims);
        self.apply("Reshape", [value, dims])
    }

    /// `value` as another data type.
    pub fn cast(&mut self, value: Value, to: DataType) -> Value {
        self.node("Cast").int("to", to as i64).input(value).value(self)
    }

    /// One of the layer's own blobs as it is stored, with the shape that Caffe gives it.
    pub fn blob(&mut self, index: usize) -> Result<Value> {
        let shape = self.blob_shapes[index].clone();
        self.blob_as(index, shape)
    }

    /// The same with another shape of as many elements.
    pub fn blob_as(&mut self, index: usize, dims: Shape) -> Result<Value> {
        let data = match self.place_of(index)? {
            Some((_, at)) => Data::Stored(at),
            None => Data::Bytes(little_endian(&self.filled(index)?)),
        };
        let wish = format!("{}.{index}", short(&self.layer.name));
        Ok(self.graph.initializer(wish, DataType::Float, dims, data))
    }

    /// All of the layer's own blobs.
    pub fn blobs(&mut self) -> Result<Vec<Value>> {
        (0..self.blob_shapes.len()).map(|index| self.blob(index)).collect()
    }

    /// The values of one of the layer's blobs, for computed constants.
    pub fn blob_values(&self, index: usize) -> Result<Vec<f32>> {
        match self.place_of(index)? {
            Some((model, at)) => Ok(model.load::<f32>(at)?.data()?.to_vec()),
            None => self.filled(index),
        }
    }

    /// Where the model has a blob, if it has it.
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

    /// A tensor of numbers.
    pub fn floats(&mut self, dims: &[i64], values: &[f32]) -> Value {
        self.constant(DataType::Float, dims, little_endian(values))
    }

    /// A number without axes.
    pub fn float(&mut self, value: f32) -> Value {
        self.floats(&[], &[value])
    }

    /// A list of integers, as shapes, axes and bounds are given.
    pub fn ints(&mut self, values: &[i64]) -> Value {
        self.ints_of(&[values.len() as i64], values)
    }

    /// A tensor of integers.
    pub fn ints_of(&mut self, dims: &[i64], values: &[i64]) -> Value {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(DataType::Int64, dims, bytes)
    }

    fn constant(&mut self, data_type: DataType, dims: &[i64], bytes: Vec<u8>) -> Value {
        let wish = format!("{}/constant", short(&self.layer.name));
        self.graph.initializer(wish, data_type, dims.to_vec(), Data::Bytes(bytes))
    }

    /// `value` with the shape of a top, as that top. Of an axis that grows with the batch only
    /// that it does is written.
    pub fn reshape_to_top(&mut self, value: Value, top: usize) {
        let mut dims = self.top_shapes[top].clone();
        if let Some(axis) = self.top_batch[top] {
            dims[axis] = -1;
        }
        let dims = self.ints(&dims);
        self.node("Reshape").input(value).input(dims).top(self, top);
    }

    /// The size of a top's axis is known only when the net runs.
    pub fn varies(&mut self, top: usize, axis: usize) {
        self.graph.varying.insert(self.tops[top], axis);
    }

    /// A bottom, unchanged, as a top.
    pub fn pass(&mut self, bottom: usize, top: usize) {
        self.node("Identity").input(self.bottom(bottom)).top(self, top);
    }
}

impl Node {
    /// Adds the node; its output is a top of the layer.
    pub fn top(self, e: &mut Emit<'_>, index: usize) {
        let top = e.tops[index];
        self.add(e, &[top]);
    }

    /// Adds the node; its outputs are the tops of the layer.
    pub fn all_tops(self, e: &mut Emit<'_>) {
        let tops = e.tops;
        self.add(e, tops);
    }

    /// Adds the node; its first output is a top of the layer, the second for other nodes.
    pub fn top_and_value(self, e: &mut Emit<'_>, index: usize) -> Value {
        let value = e.graph.value(format!("{}/{}", short(&e.layer.name), self.op));
        let top = e.tops[index];
        self.add(e, &[top, value]);
        value
    }

    /// Adds the node; its output is for other nodes of the layer.
    pub fn value(self, e: &mut Emit<'_>) -> Value {
        self.values(e, 1)[0]
    }

    /// Adds the node, which has several outputs.
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
