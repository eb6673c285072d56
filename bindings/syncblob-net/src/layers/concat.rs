//! Concatenates blobs along an axis.

use super::{size, Rule, Setup, Shapes, ANY, IN_PLACE};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static CONCAT: Rule = Rule {
    layer_type: "Concat",
    parameters: Some("concat_param"),
    bottoms: (1, ANY),
    shapes,
    emit,
    ..IN_PLACE
};

/// Returns the axis that the field `axis` or the older field `old` contains.
pub(super) fn axis(setup: &Setup<'_>, old: &str) -> Result<usize> {
    let p = setup.parameters;
    match (p.given_int("axis"), p.given_int(old)) {
        (Some(_), Some(_)) => Err(Error::invalid(format_args!("both axis and {old} are set"))),
        (None, Some(axis)) => setup.axis(axis),
        _ => setup.own_axis(),
    }
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let axis = axis(setup, "concat_dim")?;
    let mut top = setup.bottoms[0].clone();
    for bottom in &setup.bottoms[1..] {
        let same = |at: usize| at == axis || bottom[at] == top[at];
        if bottom.len() != top.len() || !(0..top.len()).all(same) {
            let text = format_args!(
                "bottoms {:?} and {bottom:?} must not differ except along axis {axis}",
                setup.bottoms[0]
            );
            return Err(Error::invalid(text));
        }
        top[axis] = size(i128::from(top[axis]) + i128::from(bottom[axis]))?;
    }
    Ok(Shapes::top(top))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["engine"]);
    let axis = axis(&e.setup(), "concat_dim")? as i64;
    let bottoms: Vec<_> = (0..e.bottom_shapes.len()).map(|index| e.bottom(index)).collect();
    e.node("Concat").int("axis", axis).inputs(bottoms).top(e, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn sizes_along_the_axis_add_up() {
        let bottoms: &[&[i64]] = &[&[2, 3, 4], &[2, 5, 4]];
        check(
            "Concat",
            &[
                ("", bottoms, Some((&[&[2, 8, 4]], &[]))),
                ("axis: -2", bottoms, Some((&[&[2, 8, 4]], &[]))),
                ("concat_dim: 1", bottoms, Some((&[&[2, 8, 4]], &[]))),
                ("", &[&[2, 3]], Some((&[&[2, 3]], &[]))),
                ("axis: 1 concat_dim: 1", bottoms, None),
                ("axis: 2", bottoms, None),
                ("concat_dim: 3", bottoms, None),
                ("", &[&[2, 3], &[2, 3, 1]], None),
            ],
        );
    }
}
