//! A blob without the mean of each channel, over the channel's deviation.

use super::{fixed, Rule, Setup, Shapes, PLAIN};
use crate::onnx::{Emit, Node};
use crate::{Error, Result};

pub(super) static BATCH_NORM: Rule =
    Rule { layer_type: "BatchNorm", parameters: Some("batch_norm_param"), shapes, emit, ..PLAIN };

/// How many deviations a mean may be from 0 so that `BatchNormalization`, which multiplies first
/// and then adds, is as exact as Caffe, which subtracts first.
const FAR: f32 = 16.0;

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let bottom = &setup.bottoms[0];
    if bottom.len() < 2 {
        return Err(Error::invalid("a bottom without channels"));
    }
    let blobs = vec![vec![bottom[1]], vec![bottom[1]], vec![1]];
    Ok(Shapes::top(bottom.clone()).with_blobs(blobs))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["engine", "moving_average_fraction"]);
    let given = e.parameters.has("use_global_stats");
    if given && !e.parameters.bool("use_global_stats") {
        of_batch(e);
        return Ok(());
    }
    fixed(e, 1..2)?;
    let (mean, variance) = statistics(e)?;
    let eps = e.parameters.float("eps");
    let mut pairs = mean.iter().zip(&variance);
    if pairs.any(|(mean, variance)| mean.abs() > FAR * (variance + eps).sqrt()) {
        subtract_first(e, &mean, &variance, eps);
    } else {
        normalize(e, &mean, &variance, eps);
    }
    Ok(())
}

/// The stored mean and variance are sums, with the factor that makes them means.
fn statistics(e: &Emit<'_>) -> Result<(Vec<f32>, Vec<f32>)> {
    let factor = match e.blob_values(2)?.first() {
        None | Some(0.0) => 0.0,
        Some(factor) => factor.recip(),
    };
    let scaled = |index| -> Result<Vec<f32>> {
        let values = e.blob_values(index)?;
        Ok(values.into_iter().map(|value| value * factor).collect())
    };
    Ok((scaled(0)?, scaled(1)?))
}

fn normalize(e: &mut Emit<'_>, mean: &[f32], variance: &[f32], eps: f32) {
    let channels = [mean.len() as i64];
    let (ones, zeros) = (vec![1.0; mean.len()], vec![0.0; mean.len()]);
    let inputs = [&ones, &zeros, mean, variance].map(|values| e.floats(&channels, values));
    let node = e.node("BatchNormalization").float("epsilon", eps);
    node.input(e.bottom(0)).inputs(inputs).top(e, 0);
}

fn subtract_first(e: &mut Emit<'_>, mean: &[f32], variance: &[f32], eps: f32) {
    let mut dims = vec![1; e.bottom_shapes[0].len() - 1];
    dims[0] = mean.len() as i64;
    let deviation: Vec<f32> = variance.iter().map(|variance| (variance + eps).sqrt()).collect();
    let (mean, deviation) = (e.floats(&dims, mean), e.floats(&dims, &deviation));
    let centred = e.node("Sub").input(e.bottom(0)).input(mean).value(e);
    e.node("Div").input(centred).input(deviation).top(e, 0);
}

/// With the statistics of the batch itself.
fn of_batch(e: &mut Emit<'_>) {
    let axes = e.bottom_shapes[0].len() as i64;
    let others = std::iter::once(0).chain(2..axes);
    let mean = |value| {
        Node::new("ReduceMean").ints("axes", others.clone()).int("keepdims", 1).input(value)
    };
    let middle = mean(e.bottom(0)).value(e);
    let centred = e.node("Sub").input(e.bottom(0)).input(middle).value(e);
    let squares = e.node("Mul").input(centred).input(centred).value(e);
    let variance = mean(squares).value(e);
    let eps = e.float(e.parameters.float("eps"));
    let variance = e.node("Add").input(variance).input(eps).value(e);
    let deviation = e.node("Sqrt").input(variance).value(e);
    e.node("Div").input(centred).input(deviation).top(e, 0);
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn a_mean_and_a_variance_for_each_channel() {
        check(
            "BatchNorm",
            &[
                ("", &[&[2, 3]], Some((&[&[2, 3]], &[&[3], &[3], &[1]]))),
                ("", &[&[2, 3, 4, 5, 6]], Some((&[&[2, 3, 4, 5, 6]], &[&[3], &[3], &[1]]))),
                ("", &[&[2]], None),
            ],
        );
    }
}
