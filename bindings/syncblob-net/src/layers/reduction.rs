//! Computes a sum, a mean, or a sum of absolute values or squares over `axis` and all later axes.

use super::{Rule, Setup, Shapes, PLAIN};
use crate::onnx::{Emit, Node};
use crate::Result;

pub(super) static REDUCTION: Rule = Rule {
    layer_type: "Reduction",
    parameters: Some("reduction_param"),
    shapes,
    emit,
    full_precision: true,
    ..PLAIN
};

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    Ok(Shapes::top(setup.bottoms[0][..setup.own_axis()?].to_vec()))
}

#[allow(clippy::float_cmp)]
fn emit(e: &mut Emit<'_>) -> Result<()> {
    let axes: Vec<i64> = (e.setup().own_axis()? as i64..e.bottom_shapes[0].len() as i64).collect();
    let reduced = match e.parameters.enumeration("operation") {
        "ASUM" => over("ReduceL1", e, &axes),
        "SUMSQ" => over("ReduceSumSquare", e, &axes),
        "MEAN" => over("ReduceMean", e, &axes),
        _ => {
            let axes = e.ints(&axes);
            e.node("ReduceSum").input(e.bottom(0)).input(axes).int("keepdims", 0)
        }
    };
    let coefficient = e.parameters.float("coeff");
    if coefficient == 1.0 {
        reduced.top(e, 0);
    } else {
        let (reduced, coefficient) = (reduced.value(e), e.float(coefficient));
        e.node("Mul").input(reduced).input(coefficient).top(e, 0);
    }
    Ok(())
}

fn over(op: &'static str, e: &Emit<'_>, axes: &[i64]) -> Node {
    e.node(op).input(e.bottom(0)).ints("axes", axes.iter().copied()).int("keepdims", 0)
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn axes_in_front_remain() {
        let bottom: &[&[i64]] = &[&[2, 3, 4]];
        check(
            "Reduction",
            &[
                ("", bottom, Some((&[&[]], &[]))),
                ("axis: 2", bottom, Some((&[&[2, 3]], &[]))),
                ("axis: -2", bottom, Some((&[&[2]], &[]))),
                ("axis: 3", bottom, None),
                ("", &[&[]], None),
            ],
        );
    }
}
