//! Cuts a blob into parts along an axis.

use super::concat::axis;
use super::{fixed, size, Rule, Setup, Shapes, ANY, IN_PLACE};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static SLICE: Rule = Rule {
    layer_type: "Slice",
    parameters: Some("slice_param"),
    tops: (1, ANY),
    shapes,
    emit,
    ..IN_PLACE
};

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let axis = axis(setup, "slice_dim")?;
    let part = |length: i64| {
        let mut top = setup.bottoms[0].clone();
        top[axis] = length;
        top
    };
    let lengths = lengths(setup, setup.bottoms[0][axis])?;
    Ok(Shapes { tops: lengths.into_iter().map(part).collect(), blobs: Vec::new() })
}

/// Returns the length of each top along the axis. Without a `slice_point`, all lengths are equal.
fn lengths(setup: &Setup<'_>, whole: i64) -> Result<Vec<i64>> {
    let points = setup.parameters.ints("slice_point");
    let number = setup.layer.tops.len();
    if points.is_empty() {
        let parts = number as i64;
        return match whole % parts {
            0 => Ok(vec![whole / parts; number]),
            _ => Err(Error::invalid(format_args!("{whole} cannot be divided among {number} tops"))),
        };
    }
    if points.len() != number - 1 || whole < number as i64 {
        let text = format_args!("slice_point {points:?} cannot cut {whole} into {number} tops");
        return Err(Error::invalid(text));
    }
    let begins = [&[0], &*points].concat();
    let ends = [&*points, &[whole]].concat();
    if points[0] < 1 || points.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(Error::invalid(format_args!("slice_point {points:?} does not increase")));
    }
    begins.iter().zip(ends).map(|(begin, end)| size((end - begin).into())).collect()
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    let axis = axis(&e.setup(), "slice_dim")?;
    if e.top_shapes.len() == 1 {
        lengths(&e.setup(), e.bottom_shapes[0][axis])?;
        e.pass(0, 0);
        return Ok(());
    }
    fixed(e, axis..axis + 1)?;
    let lengths: Vec<i64> = e.top_shapes.iter().map(|shape| shape[axis]).collect();
    let lengths = e.ints(&lengths);
    e.node("Split").int("axis", axis as i64).input(e.bottom(0)).input(lengths).all_tops(e);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn parts_are_equal_or_cut_at_points() {
        let bottom: &[&[i64]] = &[&[2, 6]];
        check(
            "Slice",
            &[
                ("", bottom, Some((&[&[2, 3], &[2, 3]], &[]))),
                ("slice_dim: 0", bottom, Some((&[&[1, 6], &[1, 6]], &[]))),
                ("axis: -1 slice_point: 5", bottom, Some((&[&[2, 5], &[2, 1]], &[]))),
                (
                    "slice_point: 1 slice_point: 3",
                    bottom,
                    Some((&[&[2, 1], &[2, 2], &[2, 3]], &[])),
                ),
                ("", bottom, Some((bottom, &[]))),
                ("slice_point: 1", bottom, None),
                ("axis: 2", bottom, None),
            ],
        );
    }

    #[test]
    fn wrong_points_are_refused() {
        use crate::layers::testing::Case;
        for (text, tops) in [
            ("slice_point: 3 slice_point: 3", 3),
            ("slice_point: 0", 2),
            ("slice_point: 7", 2),
            ("slice_point: 1", 3),
            ("", 4),
        ] {
            let case = Case { layer_type: "Slice", text, bottoms: &[&[2, 6]], tops };
            assert!(case.shapes().is_err(), "{text}");
        }
    }
}
