//! What each type of layer means: one file a type (or a family), one row of the table each.

mod activation;
mod arg_max;
mod batch_norm;
mod batch_reindex;
mod concat;
mod convolution;
mod crop;
mod deconvolution;
mod detection_output;
mod dropout;
mod eltwise;
mod embed;
mod im2col;
mod inner_product;
mod lrn;
mod mvn;
mod normalize;
mod parameter;
mod permute;
mod pooling;
mod power;
mod prelu;
mod prior_box;
mod reduction;
mod relu;
mod reshape;
mod scale;
mod slice;
mod softmax;
mod split;
mod spp;
#[cfg(test)]
mod testing;
mod tile;

use std::borrow::Cow;
use std::ops::Range;

use crate::message::{Message, Place};
use crate::net::{Layer, Shape};
use crate::onnx::Emit;
use crate::{Error, ErrorKind, Result};

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

/// One bottom, one top of its shape, no blobs, no nodes: what a rule does not mention.
const PLAIN: Rule = Rule {
    layer_type: "",
    parameters: None,
    bottoms: (1, 1),
    tops: (1, 1),
    shapes: as_bottoms,
    emit: |_| Ok(()),
};

/// As many as there are.
pub(crate) const ANY: usize = usize::MAX;

/// Every type of layer that is known, by name.
static RULES: &[&Rule] = &[
    &activation::ABS_VAL,
    &arg_max::ARG_MAX,
    &activation::BNLL,
    &batch_norm::BATCH_NORM,
    &batch_reindex::BATCH_REINDEX,
    &scale::BIAS,
    &concat::CONCAT,
    &convolution::CONVOLUTION,
    &crop::CROP,
    &deconvolution::DECONVOLUTION,
    &detection_output::DETECTION_OUTPUT,
    &dropout::DROPOUT,
    &activation::ELU,
    &eltwise::ELTWISE,
    &embed::EMBED,
    &power::EXP,
    &reshape::FLATTEN,
    &im2col::IM2COL,
    &inner_product::INNER_PRODUCT,
    &lrn::LRN,
    &power::LOG,
    &mvn::MVN,
    &normalize::NORMALIZE,
    &prelu::PRELU,
    &parameter::PARAMETER,
    &permute::PERMUTE,
    &pooling::POOLING,
    &power::POWER,
    &prior_box::PRIOR_BOX,
    &relu::RELU,
    &reduction::REDUCTION,
    &reshape::RESHAPE,
    &spp::SPP,
    &scale::SCALE,
    &activation::SIGMOID,
    &split::SILENCE,
    &slice::SLICE,
    &softmax::SOFTMAX,
    &split::SPLIT,
    &activation::TANH,
    &activation::THRESHOLD,
    &tile::TILE,
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

/// The number of elements, or of those of some axes.
pub(crate) fn count(shape: &[i64]) -> Result<i64> {
    let product = shape.iter().try_fold(1_i128, |product, &dim| product.checked_mul(dim.into()));
    size(product.unwrap_or(i128::MAX))
}

/// A computed size, if it is one for Caffe, whose sizes are of the type `int`.
pub(crate) fn size(computed: i128) -> Result<i64> {
    match i32::try_from(computed) {
        Ok(size) if size >= 0 => Ok(size.into()),
        _ => Err(Error::invalid(format_args!("a size of {computed}"))),
    }
}

/// The number of elements of a tensor that a rule computes, of which a net's text may want any
/// number: few enough to keep in memory.
fn constants(shape: &[i64]) -> Result<i64> {
    const MOST: i64 = 1 << 24;
    match count(shape)? {
        number if number > MOST => {
            let text = format_args!("{number} numbers that are computed, more than {MOST}");
            Err(Error::new(ErrorKind::Limit, text))
        }
        number => Ok(number),
    }
}

/// Refuses a layer if the axis of its first bottom that grows with the batch is one of those for
/// which the graph has weights or numbers.
fn fixed(e: &Emit<'_>, axes: Range<usize>) -> Result<()> {
    match e.bottom_batch[0] {
        Some(axis) if axes.contains(&axis) => Err(Error::unsupported(format_args!(
            "its axis {axis} grows with the batch; what it computes is for one size"
        ))),
        _ => Ok(()),
    }
}

/// A shape without axes from `axis` on, and `rest` in their place.
fn with_rest(shape: &[i64], axis: usize, rest: &[i64]) -> Shape {
    [&shape[..axis], rest].concat()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_sorted_by_name() {
        assert!(RULES.is_sorted_by(|one, next| one.layer_type < next.layer_type));
    }
}
