//! Adds Caffe's preprocessing of pixels as the first nodes: channel order, mean and scale.

use super::graph::{Data, Graph, Node, Value};
use super::proto::DataType;
use crate::net::Shape;
use crate::{Error, Result};

/// Preprocessing of every input with four axes, as in Caffe's data layers and
/// `caffe.io.Transformer`: swaps channels, subtracts the mean, then multiplies by the scale. The
/// net must have such an input.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Preprocessing {
    /// Whether images have the channel order RGB, although the net needs BGR.
    pub swap_rb: bool,
    /// The mean to subtract.
    pub mean: Option<Mean>,
    /// The factor by which pixels are multiplied after the mean is subtracted. `None` means 1.
    pub scale: Option<f32>,
}

/// A mean, whose channels have the order that the net needs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Mean {
    /// One number for each channel.
    Channels(Vec<f32>),
    /// A mean image of channels × height × width.
    Image {
        /// Channels, height, width.
        shape: [i64; 3],
        /// The numbers, in the order of the axes.
        values: Vec<f32>,
    },
}

impl Mean {
    fn dims(&self) -> Vec<i64> {
        match self {
            Self::Channels(values) => {
                vec![1, i64::try_from(values.len()).unwrap_or(i64::MAX), 1, 1]
            }
            Self::Image { shape, .. } => [&[1][..], shape].concat(),
        }
    }

    fn values(&self) -> &[f32] {
        match self {
            Self::Channels(values) | Self::Image { values, .. } => values,
        }
    }
}

impl Preprocessing {
    /// Refuses preprocessing that applies to no input, and numbers that are not finite.
    pub(super) fn check(&self, inputs: &[(String, Shape)]) -> Result<()> {
        let mean = self.mean.iter().flat_map(Mean::values);
        if !mean.chain(&self.scale).all(|number| number.is_finite()) {
            return Err(Error::argument("the mean or the scale is not finite"));
        }
        if *self == Self::default() || inputs.iter().any(|(_, shape)| shape.len() == 4) {
            return Ok(());
        }
        let shapes: Vec<String> = inputs
            .iter()
            .map(|(name, shape)| format!("'{}' has {shape:?}", name.escape_default()))
            .collect();
        Err(Error::argument(format_args!(
            "mean, scale and swap_rb need an input with 4 axes, but {}",
            shapes.join(", ")
        )))
    }

    /// Adds the nodes of the preprocessing. Returns the value that layers read instead of `input`.
    pub(super) fn apply(&self, graph: &mut Graph, input: Value, shape: &Shape) -> Result<Value> {
        let mut steps =
            Steps { name: format!("{}/preprocessed", graph.name(input)), graph, value: input };
        let [_, channels, height, width] = shape.as_slice() else { return Ok(input) };
        if self.swap_rb {
            if *channels != 3 {
                return Err(Error::argument(format_args!(
                    "red and blue cannot be swapped in {channels} channels: 3 are needed"
                )));
            }
            let order = [2_i64, 1, 0].iter().flat_map(|index| index.to_le_bytes()).collect();
            steps.node(Node::new("Gather").int("axis", 1), DataType::Int64, vec![3], order);
        }
        if let Some(mean) = &self.mean {
            let dims = mean.dims();
            let fits =
                dims[1] == *channels && (dims[2..] == [1, 1] || dims[2..] == [*height, *width]);
            if !fits || dims.iter().product::<i64>() != mean.values().len() as i64 {
                return Err(Error::argument(format_args!(
                    "the mean's shape {:?} does not fit the input's shape {shape:?}",
                    &dims[1..]
                )));
            }
            let bytes = mean.values().iter().flat_map(|value| value.to_le_bytes()).collect();
            steps.node(Node::new("Sub"), DataType::Float, dims, bytes);
        }
        if let Some(scale) = self.scale {
            steps.node(Node::new("Mul"), DataType::Float, vec![], scale.to_le_bytes().to_vec());
        }
        Ok(steps.value)
    }
}

/// Adds nodes one after another. Each node reads the previous node's output and a constant.
struct Steps<'g> {
    graph: &'g mut Graph,
    name: String,
    value: Value,
}

impl Steps<'_> {
    fn node(&mut self, node: Node, data_type: DataType, dims: Vec<i64>, bytes: Vec<u8>) {
        let constant =
            self.graph.initializer(self.name.clone(), data_type, dims, Data::Bytes(bytes));
        let value = self.graph.value(self.name.clone());
        self.graph.add(&self.name, node.inputs([self.value, constant]), &[value]);
        self.value = value;
    }
}
