//! Divides each value by a power of the sum of squares around the value, in one channel or across
//! channels.

use super::pooling::{plane, Pool, Windows};
use super::{as_bottoms, fixed, size, Rule, Setup, Shapes, IN_PLACE};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static LRN: Rule =
    Rule { layer_type: "LRN", parameters: Some("lrn_param"), shapes, emit, ..IN_PLACE };

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    plane(&setup.bottoms[0])?;
    let local_size = size(setup.parameters.int("local_size").into())?;
    if local_size % 2 == 0 {
        return Err(Error::invalid(format_args!("local_size is {local_size}, but must be odd")));
    }
    as_bottoms(setup)
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["engine"]);
    let k = e.parameters.float("k");
    match e.parameters.enumeration("norm_region") {
        "WITHIN_CHANNEL" => within(e),
        _ => across(e, k),
    }
}

fn across(e: &mut Emit<'_>, k: f32) -> Result<()> {
    e.layer.refuse_in_place()?;
    let p = e.parameters;
    let (alpha, beta) = (p.float("alpha"), p.float("beta"));
    if alpha <= 0.0 || beta <= 0.0 {
        let text =
            format_args!("alpha is {alpha} and beta {beta}, but runtimes need numbers above 0");
        return Err(Error::unsupported(text));
    }
    e.node("LRN")
        .int("size", p.int("local_size"))
        .float("alpha", alpha)
        .float("beta", beta)
        .float("bias", k)
        .input(e.bottom(0))
        .top(e, 0);
    Ok(())
}

/// Computes x * (1 + alpha * m)^-beta, where m is the mean of the squares around x. Ignores k.
fn within(e: &mut Emit<'_>) -> Result<()> {
    let p = e.parameters;
    fixed(e, 2..4)?;
    let local_size = p.int("local_size");
    let [h, w] = plane(&e.bottom_shapes[0])?
        .map(|size| Windows::new(size, local_size, 1, (local_size - 1) / 2, true));
    let pool = Pool::of("AVE", vec![h?, w?]);
    let x = e.bottom(0);
    let squares = e.apply("Mul", [x, x]);
    let mean = pool.mean(e, squares)?.value(e);
    let [alpha, one, power] =
        [p.float("alpha"), 1.0, -p.float("beta")].map(|number| e.float(number));
    let sum = e.apply("Mul", [mean, alpha]);
    let sum = e.apply("Add", [sum, one]);
    let factor = e.apply("Pow", [sum, power]);
    e.node("Mul").input(x).input(factor).top(e, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn the_size_is_odd_and_the_bottom_has_four_axes() {
        let bottom: &[&[i64]] = &[&[2, 3, 4, 5]];
        check(
            "LRN",
            &[
                ("", bottom, Some((bottom, &[]))),
                ("local_size: 3 norm_region: WITHIN_CHANNEL", bottom, Some((bottom, &[]))),
                ("local_size: 4", bottom, None),
                ("", &[&[2, 3]], None),
            ],
        );
    }
}
