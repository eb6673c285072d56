//! Subtracts the mean of each image or channel, and divides by the standard deviation.

use super::{Rule, Setup, Shapes, IN_PLACE};
use crate::net::Shape;
use crate::onnx::{Emit, Node};
use crate::{Error, Result};

pub(super) static MVN: Rule = Rule {
    layer_type: "MVN",
    parameters: Some("mvn_param"),
    shapes,
    emit,
    full_precision: true,
    ..IN_PLACE
};

/// Returns the shape of the top, which always has four axes.
fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let mut top: Shape = setup.bottoms[0].clone();
    if top.len() > 4 {
        return Err(Error::invalid(format_args!("the bottom has {} axes, more than 4", top.len())));
    }
    top.resize(4, 1);
    Ok(Shapes::top(top))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    let p = e.parameters;
    let (across, eps) = (p.bool("across_channels"), p.float("eps"));
    let axes = if across { 1..4 } else { 2..4 };
    let mut x = e.bottom(0);
    if e.bottom_shapes[0].len() < 4 {
        let missing: Vec<i64> = (e.bottom_shapes[0].len() as i64..4).collect();
        let missing = e.ints(&missing);
        x = e.apply("Unsqueeze", [x, missing]);
    }
    let mean =
        |value| Node::new("ReduceMean").ints("axes", axes.clone()).int("keepdims", 1).input(value);
    let middle = mean(x).value(e);
    let centred = e.node("Sub").input(x).input(middle);
    if !p.bool("normalize_variance") {
        centred.top(e, 0);
        return Ok(());
    }
    let centred = centred.value(e);
    let squares = e.apply("Mul", [centred, centred]);
    let variance = mean(squares).value(e);
    let deviation = e.apply("Sqrt", [variance]);
    let eps = e.float(eps);
    let deviation = e.apply("Add", [deviation, eps]);
    e.node("Div").input(centred).input(deviation).top(e, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn the_top_has_four_axes() {
        check(
            "MVN",
            &[
                ("", &[&[2, 3]], Some((&[&[2, 3, 1, 1]], &[]))),
                ("", &[&[2, 3, 4, 5]], Some((&[&[2, 3, 4, 5]], &[]))),
                ("", &[&[2, 3, 4, 5, 6]], None),
            ],
        );
    }
}
