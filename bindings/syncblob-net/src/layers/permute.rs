//! Reorders axes.

use super::{Rule, Setup, Shapes, PLAIN};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static PERMUTE: Rule =
    Rule { layer_type: "Permute", parameters: Some("permute_param"), shapes, emit, ..PLAIN };

/// Returns the listed axes, followed by the other axes in their order.
fn order(setup: &Setup<'_>) -> Result<Vec<usize>> {
    let axes = setup.bottoms[0].len();
    let mut order = Vec::with_capacity(axes);
    for axis in setup.parameters.ints("order") {
        match usize::try_from(axis) {
            Ok(axis) if axis < axes && !order.contains(&axis) => order.push(axis),
            _ => {
                let text = format_args!("axis {axis} in order is repeated, or not below {axes}");
                return Err(Error::invalid(text));
            }
        }
    }
    let others: Vec<usize> = (0..axes).filter(|axis| !order.contains(axis)).collect();
    order.extend(others);
    Ok(order)
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let bottom = &setup.bottoms[0];
    Ok(Shapes::top(order(setup)?.into_iter().map(|axis| bottom[axis]).collect()))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    let order = order(&e.setup())?;
    let order = order.into_iter().map(|axis| axis as i64);
    e.node("Transpose").ints("perm", order).input(e.bottom(0)).top(e, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn axes_that_are_not_listed_follow() {
        let bottom: &[&[i64]] = &[&[2, 3, 4, 5]];
        check(
            "Permute",
            &[
                ("order: 0 order: 2 order: 3 order: 1", bottom, Some((&[&[2, 4, 5, 3]], &[]))),
                ("order: 2", bottom, Some((&[&[4, 2, 3, 5]], &[]))),
                ("", bottom, Some((bottom, &[]))),
                ("order: 4", bottom, None),
                ("order: 1 order: 1", bottom, None),
            ],
        );
    }
}
