//! Subtracts each channel's mean and divides by its standard deviation. In NVIDIA's fork the layer
//! may also scale and shift; its eps is then at least 1e-5, as cuDNN requires.

use super::{fixed, Rule, Setup, Shapes, IN_PLACE};
use crate::message::Message;
use crate::onnx::{Emit, Node, Value};
use crate::{Error, Result};

pub(super) static BATCH_NORM: Rule = Rule {
    layer_type: "BatchNorm",
    parameters: Some("batch_norm_param"),
    shapes,
    emit,
    ..IN_PLACE
};

/// ONNX's `BatchNormalization` is used only if no mean exceeds this number of standard deviations.
/// This operator multiplies before it subtracts. Caffe subtracts first, which is more exact if the
/// mean is far from 0.
const FAR: f32 = 16.0;

/// The smallest eps in NVIDIA's fork.
const LEAST_EPS: f32 = 1e-5;

/// Returns whether the layer also scales and shifts.
fn scales(p: &Message) -> bool {
    p.bool("scale_bias") || p.has("scale_filler") || p.has("bias_filler")
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let bottom = &setup.bottoms[0];
    if bottom.len() < 2 {
        return Err(Error::invalid("the bottom has no channels"));
    }
    let channels = || vec![bottom[1]];
    let mut blobs = vec![channels(), channels(), vec![1]];
    if scales(setup.parameters) {
        blobs.extend([channels(), channels()]);
    }
    Ok(Shapes::top(bottom.clone()).with_blobs(blobs))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["engine", "moving_average_fraction", "scale_filler", "bias_filler"]);
    let scales = scales(e.parameters);
    let given = e.parameters.has("use_global_stats");
    if given && !e.parameters.bool("use_global_stats") {
        if scales {
            return Err(Error::unsupported("use_global_stats is false, which some forks ignore"));
        }
        let normal = of_batch(e, e.parameters.float("eps"));
        e.node("Identity").input(normal).top(e, 0);
        return Ok(());
    }
    fixed(e, 1..2)?;
    let (mean, variance) = statistics(e, scales)?;
    let eps = e.parameters.float("eps");
    let (scale, bias, eps) = match scales {
        true => (Some(e.blob_values(3)?), Some(e.blob_values(4)?), eps.max(LEAST_EPS)),
        false => (None, None, eps),
    };
    Normal { mean, variance, eps, scale, bias }.emit(e);
    Ok(())
}

/// Returns the mean and the variance: the sums in blobs 0 and 1, divided by blob 2. If the layer
/// also scales, blob 2 must be 1, because some forks ignore blob 2.
fn statistics(e: &Emit<'_>, scales: bool) -> Result<(Vec<f32>, Vec<f32>)> {
    let factor = match *e.blob_values(2)? {
        [1.0] => 1.0,
        [other] if scales => {
            let text = format_args!("blob 2 is {other}, not 1: forks disagree about its meaning");
            return Err(Error::unsupported(text));
        }
        [factor] if factor != 0.0 => factor.recip(),
        _ => 0.0,
    };
    let scaled = |index| -> Result<Vec<f32>> {
        let values = e.blob_values(index)?;
        Ok(values.into_iter().map(|value| value * factor).collect())
    };
    Ok((scaled(0)?, scaled(1)?))
}

/// The mean and variance from the model, and the scale and shift to apply after normalising.
pub(super) struct Normal {
    pub mean: Vec<f32>,
    pub variance: Vec<f32>,
    pub eps: f32,
    pub scale: Option<Vec<f32>>,
    pub bias: Option<Vec<f32>>,
}

impl Normal {
    /// Adds nodes that normalise the first bottom; the result is the first top.
    pub fn emit(self, e: &mut Emit<'_>) {
        let mut pairs = self.mean.iter().zip(&self.variance);
        match pairs.any(|(mean, variance)| mean.abs() > FAR * (variance + self.eps).sqrt()) {
            true => self.subtract_first(e),
            false => self.multiply_first(e),
        }
    }

    fn multiply_first(self, e: &mut Emit<'_>) {
        let channels = self.mean.len();
        let scale = self.scale.unwrap_or_else(|| vec![1.0; channels]);
        let bias = self.bias.unwrap_or_else(|| vec![0.0; channels]);
        let inputs = [scale, bias, self.mean, self.variance]
            .map(|values| e.floats(&[channels as i64], &values));
        let node = e.node("BatchNormalization").float("epsilon", self.eps);
        node.input(e.bottom(0)).inputs(inputs).top(e, 0);
    }

    fn subtract_first(self, e: &mut Emit<'_>) {
        let deviation = |variance: &f32| (variance + self.eps).sqrt();
        let deviations: Vec<f32> = self.variance.iter().map(deviation).collect();
        let steps = [
            ("Sub", Some(self.mean)),
            ("Div", Some(deviations)),
            ("Mul", self.scale),
            ("Add", self.bias),
        ];
        let mut steps = steps.into_iter().filter_map(|(op, values)| Some((op, values?))).peekable();
        let mut x = e.bottom(0);
        while let Some((op, values)) = steps.next() {
            let values = by_channel(e, &values);
            let node = e.node(op).input(x).input(values);
            match steps.peek() {
                Some(_) => x = node.value(e),
                None => return node.top(e, 0),
            }
        }
    }
}

/// Makes a constant with one number for each channel, which broadcasts over the first bottom.
pub(super) fn by_channel(e: &mut Emit<'_>, values: &[f32]) -> Value {
    let mut dims = vec![1; e.bottom_shapes[0].len() - 1];
    dims[0] = values.len() as i64;
    e.floats(&dims, values)
}

/// Normalises the first bottom by the batch's own mean and variance.
pub(super) fn of_batch(e: &mut Emit<'_>, eps: f32) -> Value {
    let axes = e.bottom_shapes[0].len() as i64;
    let others = std::iter::once(0).chain(2..axes);
    let mean = |value| {
        Node::new("ReduceMean").ints("axes", others.clone()).int("keepdims", 1).input(value)
    };
    let middle = mean(e.bottom(0)).value(e);
    let centred = e.apply("Sub", [e.bottom(0), middle]);
    let squares = e.apply("Mul", [centred, centred]);
    let variance = mean(squares).value(e);
    let eps = e.float(eps);
    let variance = e.apply("Add", [variance, eps]);
    let deviation = e.apply("Sqrt", [variance]);
    e.apply("Div", [centred, deviation])
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn each_channel_has_a_mean_and_a_variance() {
        check(
            "BatchNorm",
            &[
                ("", &[&[2, 3]], Some((&[&[2, 3]], &[&[3], &[3], &[1]]))),
                ("", &[&[2, 3, 4, 5, 6]], Some((&[&[2, 3, 4, 5, 6]], &[&[3], &[3], &[1]]))),
                ("", &[&[2]], None),
                (
                    "scale_bias: true",
                    &[&[2, 3, 4]],
                    Some((&[&[2, 3, 4]], &[&[3], &[3], &[1], &[3], &[3]])),
                ),
                (
                    "scale_filler {}",
                    &[&[2, 3]],
                    Some((&[&[2, 3]], &[&[3], &[3], &[1], &[3], &[3]])),
                ),
            ],
        );
    }
}
