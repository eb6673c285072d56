//! Layers of forks of Caffe for text recognition. Reverse reverses an axis. Transpose reorders all
//! axes. ContinuationIndicator makes the second bottom of a recurrent layer, for sequences that
//! begin at the first step and end at the last.

use super::{size, Rule, Setup, Shapes, PLAIN};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static REVERSE: Rule =
    Rule { layer_type: "Reverse", parameters: Some("reverse_param"), shapes, emit, ..PLAIN };

pub(super) static TRANSPOSE: Rule = Rule {
    layer_type: "Transpose",
    parameters: Some("transpose_param"),
    shapes: transposed,
    emit: transpose,
    ..PLAIN
};

pub(super) static CONTINUATION_INDICATOR: Rule = Rule {
    layer_type: "ContinuationIndicator",
    parameters: Some("continuation_indicator_param"),
    bottoms: (0, 0),
    shapes: indicators,
    emit: indicate,
    ..PLAIN
};

fn axis(setup: &Setup<'_>) -> Result<usize> {
    match setup.parameters.int("axis") {
        axis @ 0.. => setup.axis(axis),
        axis => Err(Error::invalid(format_args!("axis {axis}"))),
    }
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    axis(setup)?;
    Ok(Shapes::top(setup.bottoms[0].clone()))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    let axis = axis(&e.setup())? as i64;
    let turn = [-1, i64::MIN, axis, -1].map(|number| e.ints(&[number]));
    e.node("Slice").input(e.bottom(0)).inputs(turn).top(e, 0);
    Ok(())
}

fn transposed(setup: &Setup<'_>) -> Result<Shapes> {
    let (bottom, order) = (&setup.bottoms[0], setup.parameters.ints("dim"));
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..bottom.len() as i64) {
        return Err(Error::invalid(format_args!("{order:?} cannot order the axes of {bottom:?}")));
    }
    let sizes = order.iter().filter_map(|&axis| bottom.get(usize::try_from(axis).ok()?));
    Ok(Shapes::top(sizes.copied().collect()))
}

fn transpose(e: &mut Emit<'_>) -> Result<()> {
    let order = e.parameters.ints("dim");
    e.node("Transpose").ints("perm", order).input(e.bottom(0)).top(e, 0);
    Ok(())
}

fn indicators(setup: &Setup<'_>) -> Result<Shapes> {
    let [steps, sequences] =
        ["time_step", "batch_size"].map(|name| size(setup.parameters.int(name).into()));
    match (steps?, sequences?) {
        (steps @ 1.., sequences @ 1..) => Ok(Shapes::top(vec![steps, sequences])),
        (steps, sequences) => {
            Err(Error::invalid(format_args!("it has {steps} steps and {sequences} sequences")))
        }
    }
}

/// Outputs 0 for the first step and 1 for all other steps.
fn indicate(e: &mut Emit<'_>) -> Result<()> {
    let (steps, sequences) = (e.top_shapes[0][0], e.top_shapes[0][1]);
    let mut fill = |value: f32, steps: i64| {
        let (value, dims) = (e.float(value), e.ints(&[steps, sequences]));
        e.apply("Expand", [value, dims])
    };
    let first = fill(0.0, 1);
    let others = (steps > 1).then(|| fill(1.0, steps - 1));
    e.node("Concat").int("axis", 0).input(first).inputs(others).top(e, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn an_axis_counts_from_the_start() {
        let bottom: &[&[i64]] = &[&[2, 3]];
        check(
            "Reverse",
            &[
                ("", bottom, Some((bottom, &[]))),
                ("axis: 1", bottom, Some((bottom, &[]))),
                ("axis: 2", bottom, None),
                ("axis: -1", bottom, None),
            ],
        );
    }

    #[test]
    fn every_axis_is_listed() {
        let bottom: &[&[i64]] = &[&[2, 3, 4]];
        check(
            "Transpose",
            &[
                ("dim: 2 dim: 0 dim: 1", bottom, Some((&[&[4, 2, 3]], &[]))),
                ("dim: 1 dim: 0", bottom, None),
                ("dim: 0 dim: 1 dim: 1", bottom, None),
                ("dim: 0 dim: 1 dim: -1", bottom, None),
            ],
        );
    }

    #[test]
    fn each_step_of_a_sequence_has_an_indicator() {
        check(
            "ContinuationIndicator",
            &[
                ("time_step: 5 batch_size: 2", &[], Some((&[&[5, 2]], &[]))),
                ("time_step: 5", &[], None),
                ("time_step: 4294967295 batch_size: 2", &[], None),
            ],
        );
    }
}
