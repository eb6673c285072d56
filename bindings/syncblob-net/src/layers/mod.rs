//! Rules for converting layers. Each layer type, or family of types, has a file. Each type has a
//! row in `RULES`.

mod activation;
mod arg_max;
mod axpy;
mod batch_norm;
mod batch_reindex;
mod bn;
mod c3d;
mod concat;
mod convolution;
mod crop;
mod deconvolution;
mod depthwise;
mod detection_output;
mod dropout;
mod eltwise;
mod embed;
pub(crate) mod fill;
mod im2col;
mod inner_product;
mod interp;
mod lrn;
mod mvn;
mod normalize;
mod parameter;
mod permute;
mod pooling;
mod power;
mod prelu;
mod prior_box;
mod psroi_pooling;
mod recurrent;
mod reduction;
mod relu;
mod relu6;
mod reorg;
mod reshape;
mod reverse;
mod roi_pooling;
mod scale;
mod shuffle_channel;
mod slice;
mod softmax;
mod split;
mod spp;
mod swish;
#[cfg(test)]
mod testing;
mod tile;
mod unpooling;
mod upsample;

use std::borrow::Cow;
use std::ops::Range;

use crate::message::{Message, Place};
use crate::net::{Layer, Shape};
use crate::onnx::Emit;
use crate::{Error, ErrorKind, Result};

/// How to convert layers of a type.
pub(crate) struct Rule {
    /// The type's name in prototxts.
    pub layer_type: &'static str,
    /// The field of the layer's message that contains the parameters, if the type has parameters.
    pub parameters: Option<&'static str>,
    /// The field that contains the parameters in a fork of Caffe, if its name differs.
    pub fork_parameters: Option<&'static str>,
    /// The smallest and the largest number of bottoms.
    pub bottoms: (usize, usize),
    /// The smallest and the largest number of tops.
    pub tops: (usize, usize),
    /// Whether the layer computes with `f32` even if the file stores weights as 16-bit floats.
    /// Boxes, indices and sums of squares need `f32`, and some operators do not support 16-bit
    /// floats.
    pub full_precision: bool,
    /// Whether the layer may work in place: overwrite a bottom with a top of the same shape. True
    /// if Caffe's layer never reads a value after overwriting it.
    pub in_place: bool,
    /// Computes the shapes of the layer's tops and blobs, by Caffe's rules.
    pub shapes: fn(&Setup<'_>) -> Result<Shapes>,
    /// Adds the layer's nodes to the graph. This function or `shapes` must read every parameter
    /// that the layer sets. An unread parameter makes the conversion fail, because the result would
    /// ignore the parameter.
    pub emit: fn(&mut Emit<'_>) -> Result<()>,
}

/// The default rule: one bottom, one top of the same shape, no blobs, and no nodes.
const PLAIN: Rule = Rule {
    layer_type: "",
    parameters: None,
    fork_parameters: None,
    bottoms: (1, 1),
    tops: (1, 1),
    full_precision: false,
    in_place: false,
    shapes: as_bottoms,
    emit: |_| Ok(()),
};

/// The default rule of a layer that may work in place.
const IN_PLACE: Rule = Rule { in_place: true, ..PLAIN };

/// The largest number of bottoms or tops for a type without a limit.
pub(crate) const ANY: usize = usize::MAX;

/// The rules of all known layer types, sorted by name.
static RULES: &[&Rule] = &[
    &activation::ABS_VAL,
    &arg_max::ARG_MAX,
    &axpy::AXPY,
    &bn::BN,
    &activation::BNLL,
    &batch_norm::BATCH_NORM,
    &batch_reindex::BATCH_REINDEX,
    &scale::BIAS,
    &relu6::CLIP,
    &concat::CONCAT,
    &reverse::CONTINUATION_INDICATOR,
    &convolution::CONVOLUTION,
    &c3d::CONVOLUTION,
    &depthwise::CONVOLUTION_DEPTHWISE,
    &crop::CROP,
    &deconvolution::DECONVOLUTION,
    &depthwise::DEPTHWISE_CONVOLUTION,
    &detection_output::DETECTION_OUTPUT,
    &dropout::DROPOUT,
    &activation::ELU,
    &eltwise::ELTWISE,
    &embed::EMBED,
    &power::EXP,
    &reshape::FLATTEN,
    &swish::HARD_SIGMOID,
    &swish::HARD_SWISH,
    &im2col::IM2COL,
    &inner_product::INNER_PRODUCT,
    &interp::INTERP,
    &lrn::LRN,
    &recurrent::LSTM,
    &power::LOG,
    &mvn::MVN,
    &swish::MISH,
    &normalize::NORMALIZE,
    &normalize::NORMALIZE_BBOX,
    &prelu::PRELU,
    &psroi_pooling::PSROI_POOLING,
    &parameter::PARAMETER,
    &permute::PERMUTE,
    &pooling::POOLING,
    &c3d::POOLING,
    &power::POWER,
    &prior_box::PRIOR_BOX,
    &recurrent::RNN,
    &roi_pooling::ROI_POOLING,
    &relu::RELU,
    &relu6::RELU6,
    &reduction::REDUCTION,
    &reorg::REORG,
    &reshape::RESHAPE,
    &reverse::REVERSE,
    &spp::SPP,
    &scale::SCALE,
    &shuffle_channel::SHUFFLE_CHANNEL,
    &activation::SIGMOID,
    &split::SILENCE,
    &slice::SLICE,
    &softmax::SOFTMAX,
    &dropout::SPATIAL_DROPOUT,
    &split::SPLIT,
    &swish::SWISH,
    &activation::TANH,
    &activation::THRESHOLD,
    &tile::TILE,
    &reverse::TRANSPOSE,
    &unpooling::UNPOOLING,
    &upsample::UPSAMPLE,
];

/// Returns the rule of a layer type, if the type is known.
pub(crate) fn rule(layer_type: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.layer_type == layer_type).copied()
}

impl Layer {
    /// Returns the field that holds the parameters of the layer's type.
    pub(crate) fn parameters_field(&self, rule: &Rule) -> Option<&'static str> {
        let has = |name: &str| self.message.all(name).next().is_some();
        match (rule.parameters, rule.fork_parameters) {
            (Some(usual), Some(other)) if !has(usual) && has(other) => Some(other),
            (usual, _) => usual,
        }
    }

    /// Returns the layer's parameters, or an empty message if the layer sets none.
    pub(crate) fn parameters(&self, rule: &Rule) -> Cow<'_, Message> {
        let field = self.parameters_field(rule);
        let field = field.unwrap_or("dropout_param"); // no parameters: any field will do
        match self.message.message(field) {
            Some(message) => Cow::Borrowed(message),
            None => {
                Cow::Owned(Message::new(self.message.type_of(field, &self.layer_type), Place::Made))
            }
        }
    }
}

/// The arguments of a rule's `shapes`.
pub(crate) struct Setup<'a> {
    pub layer: &'a Layer,
    /// The layer's parameters, or an empty message.
    pub parameters: &'a Message,
    /// The shapes of the layer's bottoms.
    pub bottoms: &'a [Shape],
}

/// The shapes of a layer's tops and blobs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Shapes {
    pub tops: Vec<Shape>,
    /// Shapes of the layer's blobs, which are its weights.
    pub blobs: Vec<Shape>,
}

impl Shapes {
    /// Returns the shapes of a layer with one top and without blobs.
    pub fn top(shape: Shape) -> Self {
        Self { tops: vec![shape], blobs: Vec::new() }
    }

    pub fn with_blobs(self, blobs: Vec<Shape>) -> Self {
        Self { blobs, ..self }
    }
}

impl Setup<'_> {
    /// Checks the parameter `axis` and returns the axis that it selects.
    pub fn own_axis(&self) -> Result<usize> {
        self.axis(self.parameters.int("axis"))
    }

    /// Checks an axis of the first bottom. As in Caffe, a negative axis counts from the end.
    pub fn axis(&self, axis: i64) -> Result<usize> {
        let axes = self.bottoms[0].len();
        let from_start = if axis < 0 { axis.saturating_add_unsigned(axes as u64) } else { axis };
        match usize::try_from(from_start) {
            Ok(axis) if axis < axes => Ok(axis),
            _ => Err(Error::invalid(format_args!("there is no axis {axis}: the blob has {axes}"))),
        }
    }
}

/// Returns the product of dimensions.
pub(crate) fn count(shape: &[i64]) -> Result<i64> {
    let product = shape.iter().try_fold(1_i128, |product, &dim| product.checked_mul(dim.into()));
    size(product.unwrap_or(i128::MAX))
}

/// Converts a computed size. As in Caffe, refuses a size that does not fit into an `int`.
pub(crate) fn size(computed: i128) -> Result<i64> {
    match i32::try_from(computed) {
        Ok(size) if size >= 0 => Ok(size.into()),
        _ => Err(Error::invalid(format_args!("a size is {computed}, not from 0 to 2147483647"))),
    }
}

/// Returns the number of elements of a constant that a rule computes. Refuses large numbers,
/// because a few bytes of a prototxt can request any number.
fn constants(shape: &[i64]) -> Result<i64> {
    const MOST: i64 = 1 << 24;
    match count(shape)? {
        number if number > MOST => {
            let text = format_args!("a constant has {number} elements, more than {MOST}");
            Err(Error::new(ErrorKind::Limit, text))
        }
        number => Ok(number),
    }
}

/// Refuses a layer if the size of one of the first bottom's `axes` depends on the batch. The
/// layer's constants fit only one size.
fn fixed(e: &Emit<'_>, axes: Range<usize>) -> Result<()> {
    match e.bottom_batch[0] {
        Some(axis) if axes.contains(&axis) => Err(Error::unsupported(format_args!(
            "the size of its axis {axis} depends on the batch, but constants need a fixed size"
        ))),
        _ => Ok(()),
    }
}

/// Returns the first `axis` axes of a shape, followed by `rest`.
fn with_rest(shape: &[i64], axis: usize, rest: &[i64]) -> Shape {
    [&shape[..axis], rest].concat()
}

/// Returns a dimension of a blob. As in Caffe's legacy accessors, a missing axis has size 1.
pub(crate) fn legacy_dim(shape: &[i64], axis: usize) -> Result<i64> {
    match shape.len() {
        0..=4 => Ok(shape.get(axis).copied().unwrap_or(1)),
        axes => Err(Error::invalid(format_args!("a blob has {axes} axes, more than 4"))),
    }
}

/// Returns the bottoms' shapes as the shapes of the tops.
pub(crate) fn as_bottoms(setup: &Setup<'_>) -> Result<Shapes> {
    Ok(Shapes { tops: setup.bottoms.to_vec(), blobs: Vec::new() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{Field, Label, Value};
    use crate::schema::{FieldInfo, Kind};

    #[test]
    fn rules_are_sorted_by_name() {
        assert!(RULES.is_sorted_by(|one, next| one.layer_type < next.layer_type));
    }

    #[test]
    fn parameters_are_those_of_the_type() {
        let layer = Message::new("LayerParameter", Place::Made);
        for (layer_type, kind) in [
            ("Convolution", "ConvolutionParameter"),
            ("Convolution3D", "Convolution3DParameter"),
            ("", "ConvolutionParameter"),
        ] {
            assert_eq!(layer.type_of("convolution_param", layer_type), kind);
        }
    }

    /// Makes numbers, fields and shapes from bytes.
    struct Source<'a>(std::slice::Iter<'a, u8>);

    impl Source<'_> {
        fn below(&mut self, end: usize) -> usize {
            usize::from(self.0.next().copied().unwrap_or(0)) % end
        }

        fn integer(&mut self, field: &FieldInfo) -> i64 {
            let sizes = [1, 2, 3, 4, 5, 6, 8, 16, 0, -1, -2, i64::from(i32::MAX), 1 << 16];
            let other = match field.kind {
                Kind::Uint32 => u32::MAX.into(),
                Kind::Int32 => i32::MIN.into(),
                _ => i64::MIN,
            };
            match sizes.get(self.below(sizes.len() + 1)) {
                Some(-2..0) if field.kind == Kind::Uint32 => 1,
                Some(size) => *size,
                None => other,
            }
        }

        fn value(&mut self, field: &FieldInfo) -> Value {
            match field.kind {
                Kind::Bool => Value::Bool(self.below(2) == 1),
                Kind::Float | Kind::Double => {
                    Value::Float([0.0, 1.0, -1.0, 0.5, 1e38, f64::NAN][self.below(6)])
                }
                Kind::Text | Kind::Bytes => Value::Text(Box::default()),
                Kind::Enum(_) => Value::Int(self.below(4) as i64),
                Kind::Message(name) => Value::Message(Box::new(self.message(name))),
                _ => Value::Int(self.integer(field)),
            }
        }

        fn message(&mut self, name: &str) -> Message {
            let mut message = Message::new(name, Place::Made);
            let fields = &message.info.fields;
            for _ in 0..self.below(6) * fields.len().min(1) {
                let field = &fields[self.below(fields.len())];
                let value = self.value(field);
                message.push(field.name, value);
            }
            message
        }

        fn shape(&mut self) -> Shape {
            let mut left = i64::from(i32::MAX);
            let dims = (0..self.below(6)).map(|_| {
                let dim = [1, 2, 3, 4, 7, 0, 1 << 15, 1 << 20, left][self.below(9)].min(left);
                left /= dim.max(1);
                dim
            });
            dims.collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 5000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn shapes_are_sizes_or_errors(index in 0..RULES.len(), bytes in prop::collection::vec(any::<u8>(), 8..64)) {
            let (rule, mut source) = (RULES[index], Source(bytes.iter()));
            let mut message = Message::new("LayerParameter", Place::Made);
            message.push("type", Value::Text(rule.layer_type.as_bytes().into()));
            if let Some(name) = rule.parameters {
                let kind = message.type_of(name, rule.layer_type);
                let field = message.info.by_name(name, rule.layer_type).unwrap();
                let parameters = Value::Message(Box::new(source.message(kind)));
                if source.below(8) > 0 {
                    message.fields.push(Field::new(Label::Known(field), Place::Made, parameters));
                }
            }
            let mut names = |(least, most): (usize, usize)| {
                vec![String::new(); (least + source.below(3)).min(most)]
            };
            let (bottoms, tops) = (names(rule.bottoms), names(rule.tops));
            let shapes: Vec<Shape> = bottoms.iter().map(|_| source.shape()).collect();
            let layer = Layer {
                name: String::new(),
                layer_type: rule.layer_type.into(),
                bottoms,
                tops,
                message,
            };
            let parameters = layer.parameters(rule);
            let setup = Setup { layer: &layer, parameters: &parameters, bottoms: &shapes };
            if let Ok(made) = (rule.shapes)(&setup) {
                prop_assert!(made.tops.iter().chain(&made.blobs).flatten().all(|&dim| dim >= 0), "{made:?}");
            }
        }
    }
}
