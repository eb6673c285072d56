//! Divides values by the square root of their sum of squares, then multiplies the results by
//! weights. The layer is from SSD; some forks call it `NormalizeBBox`.

use super::{fixed, Rule, Setup, Shapes, IN_PLACE};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static NORMALIZE: Rule = Rule {
    layer_type: "Normalize",
    parameters: Some("norm_param"),
    shapes,
    emit,
    fork_parameters: Some("normalize_bbox_param"),
    full_precision: true,
    ..IN_PLACE
};

pub(super) static NORMALIZE_BBOX: Rule = Rule { layer_type: "NormalizeBBox", ..NORMALIZE };

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let bottom = &setup.bottoms[0];
    if !(2..=4).contains(&bottom.len()) {
        return Err(Error::invalid(format_args!("the bottom has {} axes, not 2-4", bottom.len())));
    }
    let scale = match setup.parameters.bool("channel_shared") {
        true => vec![],
        false => vec![bottom[1]],
    };
    Ok(Shapes::top(bottom.clone()).with_blobs(vec![scale]))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["scale_filler"]);
    let axes = e.bottom_shapes[0].len();
    let across = e.parameters.bool("across_spatial");
    let mut dims = e.blob_shapes[0].clone();
    if !dims.is_empty() {
        fixed(e, 1..2)?;
        dims.resize(axes - 1, 1);
    }
    let (scale, eps) = (e.blob_as(0, dims)?, e.float(e.parameters.float("eps")));
    let summed: Vec<i64> = (1..if across { axes as i64 } else { 2 }).collect();
    let summed = e.ints(&summed);
    let x = e.bottom(0);
    let squares = e.apply("Mul", [x, x]);
    let sum = e.node("ReduceSum").int("keepdims", 1).input(squares).input(summed).value(e);
    let sum = e.apply("Add", [sum, eps]);
    let norm = e.apply("Sqrt", [sum]);
    let normal = e.apply("Div", [x, norm]);
    e.node("Mul").input(normal).input(scale).top(e, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn weights_are_for_each_channel_or_for_all() {
        let bottom: &[&[i64]] = &[&[2, 3, 4, 5]];
        check(
            "Normalize",
            &[
                ("", bottom, Some((bottom, &[&[]]))),
                ("channel_shared: false", bottom, Some((bottom, &[&[3]]))),
                ("", &[&[2]], None),
                ("", &[&[2, 3, 4, 5, 6]], None),
            ],
        );
    }
}
