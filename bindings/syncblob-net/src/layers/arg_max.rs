//! Outputs the indices of the largest values, the values themselves, or both.

use super::{count, fixed, Rule, Setup, Shapes, PLAIN};
use crate::onnx::{DataType, Emit, Value};
use crate::{Error, Result};

pub(super) static ARG_MAX: Rule = Rule {
    layer_type: "ArgMax",
    parameters: Some("argmax_param"),
    shapes,
    emit,
    full_precision: true,
    ..PLAIN
};

/// Returns the parameter `axis`, if set, and the number of values to compare.
fn along(setup: &Setup<'_>) -> Result<(Option<usize>, i64)> {
    let bottom = &setup.bottoms[0];
    let axis = setup.parameters.given_int("axis").map(|axis| setup.axis(axis)).transpose()?;
    let whole = match axis {
        Some(axis) => bottom[axis],
        None if bottom.is_empty() => return Err(Error::invalid("the bottom has no axes")),
        None => count(&bottom[1..])?,
    };
    Ok((axis, whole))
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let bottom = &setup.bottoms[0];
    let (axis, whole) = along(setup)?;
    let top_k = setup.parameters.int("top_k");
    if top_k < 1 || top_k > whole {
        return Err(Error::invalid(format_args!("top_k is {top_k}, not from 1 to {whole}")));
    }
    let mut top = bottom.clone();
    if let Some(axis) = axis {
        top[axis] = top_k;
    } else {
        top = vec![1; bottom.len().max(3)];
        top[0] = bottom[0];
        top[1] = if setup.parameters.bool("out_max_val") { 2 } else { 1 };
        top[2] = top_k;
    }
    Ok(Shapes::top(top))
}

/// Reverses the axis: of equal values, ONNX's `TopK` takes the first, but Caffe takes the last.
fn emit(e: &mut Emit<'_>) -> Result<()> {
    let (axis, whole) = along(&e.setup())?;
    let values_too = e.parameters.bool("out_max_val");
    let at = axis.unwrap_or(1);
    fixed(e, at..axis.map_or(usize::MAX, |axis| axis + 1))?;
    let x = match axis {
        Some(_) => e.bottom(0),
        None => e.node("Flatten").int("axis", 1).input(e.bottom(0)).value(e),
    };
    let (values, places) = largest(e, x, at as i64, whole);
    let best = match (values_too, axis) {
        (true, None) => e.node("Concat").int("axis", 1).inputs([places, values]).value(e),
        (true, Some(_)) => values,
        (false, _) => places,
    };
    e.reshape_to_top(best, 0);
    Ok(())
}

/// Returns the largest values along an axis, and their indices as floats.
fn largest(e: &mut Emit<'_>, x: Value, axis: i64, whole: i64) -> (Value, Value) {
    let turn = [-1, i64::MIN, axis, -1].map(|number| e.ints(&[number]));
    let turned = e.node("Slice").input(x).inputs(turn).value(e);
    let top_k = e.ints(&[e.parameters.int("top_k")]);
    let best = e.node("TopK").int("axis", axis).input(turned).input(top_k).values(e, 2);
    let last = e.ints(&[whole - 1]);
    let places = e.apply("Sub", [last, best[1]]);
    (best[0], e.cast(places, DataType::Float))
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn values_are_chosen_along_an_axis_or_over_all() {
        let bottom: &[&[i64]] = &[&[2, 3, 4, 5]];
        check(
            "ArgMax",
            &[
                ("", bottom, Some((&[&[2, 1, 1, 1]], &[]))),
                ("out_max_val: true top_k: 7", bottom, Some((&[&[2, 2, 7, 1]], &[]))),
                ("top_k: 60", &[&[2, 60]], Some((&[&[2, 1, 60]], &[]))),
                ("axis: 1 top_k: 2", bottom, Some((&[&[2, 2, 4, 5]], &[]))),
                ("axis: -1", bottom, Some((&[&[2, 3, 4, 1]], &[]))),
                ("axis: 1 top_k: 4", bottom, None),
                ("top_k: 61", bottom, None),
                ("top_k: 0", bottom, None),
                ("axis: 4", bottom, None),
                ("", &[&[]], None),
            ],
        );
    }
}
