//! Multiplies vectors by a weight matrix. A vector consists of the axes from `axis` to the last.

use super::{count, fixed, size, with_rest, Rule, Setup, Shapes, PLAIN};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static INNER_PRODUCT: Rule = Rule {
    layer_type: "InnerProduct",
    parameters: Some("inner_product_param"),
    shapes,
    emit,
    ..PLAIN
};

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let (p, bottom, axis) = (setup.parameters, &setup.bottoms[0], setup.own_axis()?);
    let (inputs, outputs) = (count(&bottom[axis..])?, size(p.int("num_output").into())?);
    if outputs == 0 {
        return Err(Error::invalid("num_output is 0"));
    }
    let mut blobs = match p.bool("transpose") {
        true => vec![vec![inputs, outputs]],
        false => vec![vec![outputs, inputs]],
    };
    if p.bool("bias_term") {
        blobs.push(vec![outputs]);
    }
    Ok(Shapes::top(with_rest(bottom, axis, &[outputs])).with_blobs(blobs))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["weight_filler", "bias_filler"]);
    let axis = e.setup().own_axis()?;
    let axes = e.bottom_shapes[0].len();
    fixed(e, axis..axes)?;
    let blobs = e.blobs()?;
    let matrix = match (axis, axes) {
        (1, 2) => e.bottom(0),
        _ => e.node("Flatten").int("axis", axis as i64).input(e.bottom(0)).value(e),
    };
    let trans_b = i64::from(!e.parameters.bool("transpose"));
    let product = e.node("Gemm").int("transB", trans_b).input(matrix).inputs(blobs);
    if axis == 1 {
        product.top(e, 0);
    } else {
        let product = product.value(e);
        e.reshape_to_top(product, 0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn axes_behind_axis_become_one() {
        let bottom: &[&[i64]] = &[&[2, 3, 4, 5]];
        check(
            "InnerProduct",
            &[
                ("num_output: 7", bottom, Some((&[&[2, 7]], &[&[7, 60], &[7]]))),
                (
                    "num_output: 7 axis: -1 bias_term: false",
                    bottom,
                    Some((&[&[2, 3, 4, 7]], &[&[7, 5]])),
                ),
                (
                    "num_output: 7 axis: 2 transpose: true",
                    bottom,
                    Some((&[&[2, 3, 7]], &[&[20, 7], &[7]])),
                ),
                ("num_output: 7 axis: 0", &[&[4]], Some((&[&[7]], &[&[7, 4], &[7]]))),
                ("num_output: 7 axis: 4", bottom, None),
                ("", bottom, None),
                ("num_output: 7", &[&[1, 1 << 30, 4]], None),
            ],
        );
    }
}
