//! Reshape and Flatten change the axes of a blob, but not its values.

use super::{count, size, Rule, Setup, Shapes, PLAIN};
use crate::net::Shape;
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static RESHAPE: Rule = Rule {
    layer_type: "Reshape",
    parameters: Some("reshape_param"),
    shapes: reshape,
    emit,
    ..PLAIN
};

pub(super) static FLATTEN: Rule = Rule {
    layer_type: "Flatten",
    parameters: Some("flatten_param"),
    shapes: flatten,
    emit,
    ..PLAIN
};

/// Returns the range of replaced axes: the first axis, and the axis after the last.
fn replaced(setup: &Setup<'_>) -> Result<(usize, usize)> {
    let (p, axes) = (setup.parameters, setup.bottoms[0].len() as i64);
    let (axis, num_axes) = (p.int("axis"), p.int("num_axes"));
    let start = if axis < 0 { axis + axes + 1 } else { axis };
    let end = if num_axes == -1 { axes } else { start.saturating_add(num_axes) };
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) if start <= end && end as i64 <= axes => Ok((start, end)),
        _ => {
            let text = format_args!("axis {axis} and num_axes {num_axes} exceed the {axes} axes");
            Err(Error::invalid(text))
        }
    }
}

fn reshape(setup: &Setup<'_>) -> Result<Shapes> {
    let bottom = &setup.bottoms[0];
    let (start, end) = replaced(setup)?;
    let wished = setup.parameters.message("shape").map_or(Vec::new(), |shape| shape.ints("dim"));
    let (mut dims, inferred) = new_dims(bottom, start, &wished)?;
    if let Some(at) = inferred {
        let others = [&bottom[..start], &dims, &bottom[end..]].concat();
        dims[at] = match (count(bottom)?, count(&others)?) {
            (whole, others) if others > 0 && whole % others == 0 => whole / others,
            (whole, others) => {
                return Err(Error::invalid(format_args!(
                    "the dimension -1 is not whole: {whole} values divided by {others}"
                )));
            }
        };
    }
    let top = [&bottom[..start], &dims, &bottom[end..]].concat();
    same_count(bottom, top)
}

/// Returns the new sizes, with 0 replaced by the bottom's size and -1 by 1. Also returns the index
/// of the -1.
fn new_dims(bottom: &[i64], start: usize, wished: &[i64]) -> Result<(Shape, Option<usize>)> {
    let (mut dims, mut inferred) = (Vec::with_capacity(wished.len()), None);
    for (index, &dim) in wished.iter().enumerate() {
        dims.push(match dim {
            0 => *bottom.get(start + index).ok_or_else(|| {
                Error::invalid(format_args!("the bottom has no axis {}", start + index))
            })?,
            -1 if inferred.is_none() => {
                inferred = Some(index);
                1
            }
            -1 => return Err(Error::invalid("the shape has -1 twice")),
            dim => size(dim.into())?,
        });
    }
    Ok((dims, inferred))
}

fn same_count(bottom: &Shape, top: Shape) -> Result<Shapes> {
    match count(bottom)? == count(&top)? {
        true => Ok(Shapes::top(top)),
        false => Err(Error::invalid(format_args!(
            "{bottom:?} and {top:?} have different numbers of values"
        ))),
    }
}

fn flatten(setup: &Setup<'_>) -> Result<Shapes> {
    let (p, bottom) = (setup.parameters, &setup.bottoms[0]);
    let start = setup.own_axis()?;
    let end = setup.axis(p.int("end_axis"))? + 1;
    if start > end {
        return Err(Error::invalid(format_args!("axis {start} is after end_axis {}", end - 1)));
    }
    let flat = count(&bottom[start..end])?;
    Ok(Shapes::top([&bottom[..start], &[flat], &bottom[end..]].concat()))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.reshape_to_top(e.bottom(0), 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn sizes_are_copied_inferred_and_counted() {
        let bottom: &[&[i64]] = &[&[2, 3, 4]];
        check(
            "Reshape",
            &[
                ("shape { dim: 0 dim: -1 }", bottom, Some((&[&[2, 12]], &[]))),
                ("shape { dim: -1 dim: 0 }", bottom, Some((&[&[8, 3]], &[]))),
                ("shape { dim: 6 dim: 2 } axis: 1", bottom, Some((&[&[2, 6, 2]], &[]))),
                ("shape { dim: 1 } axis: -1", bottom, Some((&[&[2, 3, 4, 1]], &[]))),
                ("shape { dim: 1 } num_axes: 0", bottom, Some((&[&[1, 2, 3, 4]], &[]))),
                ("shape { dim: 6 } num_axes: 2", bottom, Some((&[&[6, 4]], &[]))),
                ("num_axes: 0", bottom, Some((bottom, &[]))),
                ("shape { } axis: 1", &[&[2, 1, 1]], Some((&[&[2]], &[]))),
            ],
        );
    }

    #[test]
    fn wrong_shapes_are_refused() {
        let bottom: &[&[i64]] = &[&[2, 3, 4]];
        check(
            "Reshape",
            &[
                ("shape { dim: -1 dim: -1 }", bottom, None),
                ("shape { dim: 5 dim: -1 }", bottom, None),
                ("shape { dim: 25 }", bottom, None),
                ("shape { dim: -2 }", bottom, None),
                ("shape { dim: 1 dim: 1 dim: 1 dim: 0 }", bottom, None),
                ("shape { dim: 0 dim: -1 }", &[&[0, 3]], None),
                ("shape { dim: -1 } axis: 4", bottom, None),
                ("shape { dim: -1 } axis: -5", bottom, None),
                ("shape { dim: -1 } axis: 2 num_axes: 2", bottom, None),
                ("shape { dim: -1 } num_axes: -2", bottom, None),
                ("shape { dim: -1 dim: 2000000000 dim: 2000000000 }", bottom, None),
            ],
        );
    }

    #[test]
    fn flat_axes_become_one() {
        let bottom: &[&[i64]] = &[&[2, 3, 4, 5]];
        check(
            "Flatten",
            &[
                ("", bottom, Some((&[&[2, 60]], &[]))),
                ("axis: 0 end_axis: 1", bottom, Some((&[&[6, 4, 5]], &[]))),
                ("axis: -2 end_axis: -2", bottom, Some((bottom, &[]))),
                ("axis: 2 end_axis: 1", bottom, Some((&[&[2, 3, 1, 4, 5]], &[]))),
                ("axis: 3 end_axis: 1", bottom, None),
                ("axis: 4", bottom, None),
            ],
        );
    }
}
