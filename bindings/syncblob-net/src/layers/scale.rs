//! Scale multiplies the first bottom by the second bottom, or by weights. Bias adds instead.

use super::{fixed, Rule, Setup, Shapes, IN_PLACE};
use crate::net::Shape;
use crate::onnx::{Emit, Value};
use crate::{Error, Result};

pub(super) static SCALE: Rule = Rule {
    layer_type: "Scale",
    parameters: Some("scale_param"),
    bottoms: (1, 2),
    shapes: scale_shapes,
    emit: scale,
    ..IN_PLACE
};

pub(super) static BIAS: Rule = Rule {
    layer_type: "Bias",
    parameters: Some("bias_param"),
    bottoms: (1, 2),
    shapes: bias_shapes,
    emit: bias,
    ..IN_PLACE
};

/// Returns the axis of the first bottom at which the second operand begins, and the operand's
/// shape.
fn covered(setup: &Setup<'_>) -> Result<(usize, Shape)> {
    let (p, bottom) = (setup.parameters, &setup.bottoms[0]);
    let (axis, num_axes) = (p.int("axis"), p.int("num_axes"));
    if let Some(other) = setup.bottoms.get(1) {
        let axis = if other.is_empty() { 0 } else { setup.axis(axis)? };
        if !bottom[axis..].starts_with(other) {
            return Err(Error::invalid(format_args!(
                "the second bottom {other:?} does not fit {bottom:?} at axis {axis}"
            )));
        }
        return Ok((axis, other.clone()));
    }
    let axis = setup.axis(axis)?;
    let end = match usize::try_from(num_axes) {
        Ok(number) if number <= bottom.len() - axis => axis + number,
        Err(_) if num_axes == -1 => bottom.len(),
        _ => {
            let text = format_args!("axis {axis} and num_axes {num_axes} exceed {bottom:?}");
            return Err(Error::invalid(text));
        }
    };
    Ok((axis, bottom[axis..end].to_vec()))
}

fn scale_shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let mut shapes = bias_shapes(setup)?;
    if setup.parameters.bool("bias_term") {
        shapes.blobs.push(covered(setup)?.1);
    }
    Ok(shapes)
}

fn bias_shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let covered = covered(setup)?.1;
    let blobs = if setup.bottoms.len() == 1 { vec![covered] } else { Vec::new() };
    Ok(Shapes::top(setup.bottoms[0].clone()).with_blobs(blobs))
}

fn scale(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["filler", "bias_filler"]);
    let factor = second(e)?;
    let scaled = e.node("Mul").input(e.bottom(0)).input(factor);
    if e.parameters.bool("bias_term") {
        let scaled = scaled.value(e);
        let term = weights(e, e.blob_shapes.len() - 1)?;
        e.node("Add").input(scaled).input(term).top(e, 0);
    } else {
        scaled.top(e, 0);
    }
    Ok(())
}

fn bias(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["filler"]);
    let term = second(e)?;
    e.node("Add").input(e.bottom(0)).input(term).top(e, 0);
    Ok(())
}

/// Returns the second operand: the second bottom or the layer's first blob.
fn second(e: &mut Emit<'_>) -> Result<Value> {
    if e.bottom_shapes.len() == 1 {
        return weights(e, 0);
    }
    let (axis, covered) = covered(&e.setup())?;
    let behind = e.bottom_shapes[0].len() - axis - covered.len();
    if behind == 0 || covered.is_empty() {
        return Ok(e.bottom(1));
    }
    let first = covered.len() as i64;
    let axes: Vec<i64> = (first..first + behind as i64).collect();
    let axes = e.ints(&axes);
    Ok(e.apply("Unsqueeze", [e.bottom(1), axes]))
}

/// Returns a blob of the layer, with axes of size 1 appended so that it broadcasts over the first
/// bottom.
fn weights(e: &mut Emit<'_>, index: usize) -> Result<Value> {
    let (axis, mut dims) = covered(&e.setup())?;
    fixed(e, axis..axis + dims.len())?;
    if !dims.is_empty() {
        dims.resize(e.bottom_shapes[0].len() - axis, 1);
    }
    e.blob_as(index, dims)
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn weights_cover_some_axes() {
        let bottom: &[&[i64]] = &[&[2, 3, 4]];
        check(
            "Scale",
            &[
                ("", bottom, Some((bottom, &[&[3]]))),
                ("bias_term: true", bottom, Some((bottom, &[&[3], &[3]]))),
                ("num_axes: -1", bottom, Some((bottom, &[&[3, 4]]))),
                ("axis: 0 num_axes: 0", bottom, Some((bottom, &[&[]]))),
                ("axis: -1 num_axes: 1", bottom, Some((bottom, &[&[4]]))),
                ("axis: -1 num_axes: 2", bottom, None),
                ("num_axes: -2", bottom, None),
                ("axis: 3", bottom, None),
            ],
        );
        check("Bias", &[("num_axes: 2", bottom, Some((bottom, &[&[3, 4]])))]);
    }

    #[test]
    fn a_second_bottom_covers_some_axes() {
        let top: &[&[i64]] = &[&[2, 3, 4]];
        check(
            "Scale",
            &[
                ("", &[&[2, 3, 4], &[3]], Some((top, &[]))),
                ("axis: 0 bias_term: true", &[&[2, 3, 4], &[2, 3]], Some((top, &[&[2, 3]]))),
                ("axis: 7", &[&[2, 3, 4], &[]], Some((top, &[]))),
                ("", &[&[2, 3, 4], &[2]], None),
                ("axis: 2", &[&[2, 3, 4], &[4, 1]], None),
            ],
        );
        check("Bias", &[("axis: 0", &[&[2, 3, 4], &[2]], Some((top, &[])))]);
    }
}
