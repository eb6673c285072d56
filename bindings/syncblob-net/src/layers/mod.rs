//! What each type of layer means: one file a type (or a family), one row of the table each.

mod convolution;
mod detection_output;
mod prior_box;
mod relu;

use std::borrow::Cow;

use crate::message::{Message, Place};
use crate::net::{Layer, Shape};
use crate::onnx::Emit;
use crate::{Error, Result};

/// What a type of layer means.
pub(crate) struct Rule {
    /// The type, as prototxts have it.
    pub layer_type: &'static str,
    /// The field of the layer that holds its parameters, if there is one.
    pub parameters: Option<&'static str>,
    /// The numbers of bottoms that it takes, and of tops: the least and the most.
    pub bottoms: (usize, usize),
    pub tops: (usize, usize),
    /// The shapes of its tops and of its own blobs, by Caffe's rules.
    pub shapes: fn(&Setup<'_>) -> Result<Shapes>,
    /// Adds its nodes to the graph. Every parameter that is set must be asked for, here or in
    /// `shapes`: one that nobody asked for is reported as not converted.
    pub emit: fn(&mut Emit<'_>) -> Result<()>,
}

/// As many as there are.
pub(crate) const ANY: usize = usize::MAX;

/// Every type of layer that is known, by name.
static RULES: &[&Rule] = &[
    &convolution::CONVOLUTION,
    &detection_output::DETECTION_OUTPUT,
    &prior_box::PRIOR_BOX,
    &relu::RELU,
];

/// What a type of layer means, if it is known.
pub(crate) fn rule(layer_type: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.layer_type == layer_type).copied()
}

impl Layer {
    /// The parameters of its type; without any the empty message.
    pub(crate) fn parameters(&self, rule: &Rule) -> Cow<'_, Message> {
        let field = rule.parameters.unwrap_or("dropout_param"); // of a type that has none: never read
        match self.message.message(field) {
            Some(message) => Cow::Borrowed(message),
            None => Cow::Owned(Message::new(self.message.type_of(field), Place::Made)),
        }
    }
}

/// A layer among shapes that are known.
pub(crate) struct Setup<'a> {
    pub layer: &'a Layer,
    /// Its parameters; without any the empty message.
    pub parameters: &'a Message,
    /// The shapes of its bottoms.
    pub bottoms: &'a [Shape],
    /// The shapes of the blobs that the model has for it: empty without weights.
    pub stored: &'a [Shape],
}

/// The shapes that a layer makes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Shapes {
    pub tops: Vec<Shape>,
    /// Of its own blobs, which Caffe's users call weights.
    pub blobs: Vec<Shape>,
}

impl Shapes {
    /// One top, no blobs.
    pub fn top(shape: Shape) -> Self {
        Self { tops: vec![shape], blobs: Vec::new() }
    }

    pub fn with_blobs(self, blobs: Vec<Shape>) -> Self {
        Self { blobs, ..self }
    }
}

impl Setup<'_> {
    /// An axis as Caffe's parameters give it, from the end if it is negative.
    pub fn axis(&self, axis: i64, bottom: usize) -> Result<usize> {
        let axes = self.bottoms[bottom].len();
        let from_start = if axis < 0 { axis.saturating_add_unsigned(axes as u64) } else { axis };
        match usize::try_from(from_start) {
            Ok(axis) if axis < axes => Ok(axis),
            _ => Err(Error::invalid(format_args!("axis {axis} of a blob with {axes} axes"))),
        }
    }
}

/// The number of elements. Shapes that a layer makes were checked to have less than 2^63.
pub(crate) fn count(shape: &[i64]) -> i64 {
    shape.iter().product()
}

/// A dimension of a blob as Caffe's older code sees it: four axes, those that are missing 1.
pub(crate) fn legacy_dim(shape: &[i64], axis: usize) -> Result<i64> {
    match shape.len() {
        0..=4 => Ok(shape.get(axis).copied().unwrap_or(1)),
        axes => Err(Error::invalid(format_args!("a blob of {axes} axes, of more than 4"))),
    }
}

/// Each top is as the bottom of its number.
pub(crate) fn as_bottoms(setup: &Setup<'_>) -> Result<Shapes> {
    Ok(Shapes { tops: setup.bottoms.to_vec(), blobs: Vec::new() })
}
