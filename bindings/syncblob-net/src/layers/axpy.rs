//! Multiplies a blob by one factor for each channel and adds another blob. A layer of SENet.

use super::{Rule, Setup, Shapes, PLAIN};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static AXPY: Rule = Rule {
    layer_type: "Axpy",
    parameters: Some("axpy_param"),
    bottoms: (3, 3),
    shapes,
    emit,
    ..PLAIN
};

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let [a, x, y] = setup.bottoms else { return Err(Error::invalid("three bottoms are needed")) };
    let channels = 2.min(x.len());
    let alike = a.len() <= x.len() && a.len() >= 2 && a[..channels] == x[..channels];
    if !alike || a[2..].iter().any(|&dim| dim != 1) || x != y {
        return Err(Error::invalid(format_args!(
            "the shapes of the bottoms do not fit: {a:?}, {x:?} and {y:?}"
        )));
    }
    Ok(Shapes::top(x.clone()))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    let (given, needed) = (e.bottom_shapes[0].len() as i64, e.bottom_shapes[1].len() as i64);
    let mut factor = e.bottom(0);
    if given < needed {
        let axes = e.ints(&(given..needed).collect::<Vec<_>>());
        factor = e.apply("Unsqueeze", [factor, axes]);
    }
    let product = e.apply("Mul", [factor, e.bottom(1)]);
    e.node("Add").input(product).input(e.bottom(2)).top(e, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn each_channel_has_a_factor() {
        let x: &[i64] = &[2, 3, 4, 5];
        check(
            "Axpy",
            &[
                ("", &[&[2, 3], x, x], Some((&[x], &[]))),
                ("", &[&[2, 3, 1, 1], x, x], Some((&[x], &[]))),
                ("", &[&[2, 4], x, x], None),
                ("", &[&[2, 3, 4, 1], x, x], None),
                ("", &[&[2], x, x], None),
                ("", &[&[2, 3], x, &[2, 3, 4, 6]], None),
                ("", &[&[2], &[2], &[2]], None),
            ],
        );
    }
}
