//! Enlarges a plane. The rules follow the forks' sources. With one bottom, this is MobileNet-YOLO's
//! layer: each value becomes a square. With two bottoms, this is SegNet's layer: the second bottom,
//! which a pooling makes, contains a position for each value. Each value moves to its position; all
//! other values are 0. If the pooling's windows overlap, two values may have the same position.
//! ONNX does not define which value is then stored; onnxruntime and SegNet store the last value.

use super::pooling::plane;
use super::{fixed, size, Rule, Setup, Shapes, PLAIN};
use crate::onnx::{DataType, Emit, Value};
use crate::{Error, Result};

pub(super) static UPSAMPLE: Rule = Rule {
    layer_type: "Upsample",
    parameters: Some("upsample_param"),
    bottoms: (1, 2),
    shapes,
    emit,
    full_precision: true,
    ..PLAIN
};

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    match setup.bottoms.len() {
        1 => {
            let (scale, [height, width]) = (squares(setup)?, plane(&setup.bottoms[0])?);
            let sides = [scaled(height, scale)?, scaled(width, scale)?];
            Ok(Shapes::top([&setup.bottoms[0][..2], &sides].concat()))
        }
        _ => scattered(setup, unpooled(setup)?),
    }
}

fn scaled(side: i64, scale: i64) -> Result<i64> {
    size(i128::from(side) * i128::from(scale))
}

/// Returns the side of the square that each value becomes.
fn squares(setup: &Setup<'_>) -> Result<i64> {
    match setup.parameters.int("scale") {
        scale @ 1.. => Ok(scale),
        scale => Err(Error::invalid(format_args!("a scale of {scale}"))),
    }
}

/// Returns the height and the width of the plane before the pooling. If the parameters set no
/// height and width, multiplies the bottom's sides by the scales; `pad_out_h` and `pad_out_w` each
/// subtract 1.
fn unpooled(setup: &Setup<'_>) -> Result<[i64; 2]> {
    let p = setup.parameters;
    let pads = ["pad_out_h", "pad_out_w"].map(|name| i64::from(p.bool(name)));
    let [both, h, w, height, width] =
        ["scale", "scale_h", "scale_w", "upsample_h", "upsample_w"].map(|name| p.given_int(name));
    let scales = match (height, width, both, h, w) {
        (Some(height @ 2..), Some(width @ 2..), ..) => {
            return Ok([size(height.into())?, size(width.into())?])
        }
        (None, None, None, Some(h), Some(w)) => [h, w],
        (None, None, both, None, None) => [both.unwrap_or(2); 2],
        _ => return Err(Error::invalid("the layer needs both sides, one scale, or two scales")),
    };
    let sides = plane(&setup.bottoms[0])?;
    let side = |at: usize| match (scales[at], pads[at]) {
        (scale, pad) if scale == 2 || (scale > 2 && pad == 0) => {
            scaled(sides[at], scale).map(|side| (side - pad).max(0))
        }
        (scale, _) => Err(Error::invalid(format_args!("a scale of {scale}"))),
    };
    Ok([side(0)?, side(1)?])
}

/// Returns the shape of a top with these sides. Refuses bottoms with different shapes.
pub(super) fn scattered(setup: &Setup<'_>, sides: [i64; 2]) -> Result<Shapes> {
    let (values, places) = (&setup.bottoms[0], &setup.bottoms[1]);
    plane(values)?;
    if values != places {
        return Err(Error::invalid(format_args!("{values:?} values, but {places:?} positions")));
    }
    Ok(Shapes::top([&values[..2], &sides].concat()))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    match e.bottom_shapes.len() {
        1 => enlarge(e),
        _ => scatter(e),
    }
}

#[allow(clippy::cast_precision_loss)]
fn enlarge(e: &mut Emit<'_>) -> Result<()> {
    let scale = squares(&e.setup())? as f32;
    let scales = e.floats(&[4], &[1.0, 1.0, scale, scale]);
    let node = e.node("Resize").text("mode", "nearest").text("nearest_mode", "floor");
    let node = node.text("coordinate_transformation_mode", "asymmetric");
    node.input(e.bottom(0)).no_input().input(scales).top(e, 0);
    Ok(())
}

/// Moves each value of the first bottom within its plane, to the index that the second bottom
/// contains.
pub(super) fn scatter(e: &mut Emit<'_>) -> Result<()> {
    fixed(e, 1..4)?;
    let values = flat(e, e.bottom(0));
    let places = e.cast(e.bottom(1), DataType::Int64);
    let places = flat(e, places);
    let (zero, dims) = (e.float(0.0), flat_top(e));
    let zeros = e.apply("Expand", [zero, dims]);
    let inputs = [zeros, places, values];
    let top = e.node("ScatterElements").int("axis", 2).inputs(inputs).value(e);
    e.reshape_to_top(top, 0);
    Ok(())
}

/// Reshapes a value that has the first bottom's shape, so that each plane becomes a row.
fn flat(e: &mut Emit<'_>, value: Value) -> Value {
    e.reshape(value, &[0, 0, -1])
}

/// Returns the top's shape, with each plane as one row. The first two sizes are read from the
/// bottom.
fn flat_top(e: &mut Emit<'_>) -> Value {
    let area = e.ints(&[e.top_shapes[0][2] * e.top_shapes[0][3]]);
    let first = e.node("Shape").int("end", 2).input(e.bottom(0)).value(e);
    e.node("Concat").int("axis", 0).input(first).input(area).value(e)
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn one_bottom_becomes_squares() {
        let bottom: &[&[i64]] = &[&[2, 3, 4, 5]];
        check(
            "Upsample",
            &[
                ("scale: 2", bottom, Some((&[&[2, 3, 8, 10]], &[]))),
                ("", bottom, Some((bottom, &[]))),
                ("scale: 0", bottom, None),
                ("scale: 2147483647", bottom, None),
                ("scale: 2", &[&[3, 4, 5]], None),
            ],
        );
    }

    #[test]
    fn positions_restore_a_pooled_plane() {
        let bottoms: &[&[i64]] = &[&[2, 3, 4, 5], &[2, 3, 4, 5]];
        check(
            "Upsample",
            &[
                ("", bottoms, Some((&[&[2, 3, 8, 10]], &[]))),
                ("scale: 3", bottoms, Some((&[&[2, 3, 12, 15]], &[]))),
                ("scale_h: 2 scale_w: 3", bottoms, Some((&[&[2, 3, 8, 15]], &[]))),
                ("scale: 2 pad_out_w: true", bottoms, Some((&[&[2, 3, 8, 9]], &[]))),
                ("upsample_h: 7 upsample_w: 9", bottoms, Some((&[&[2, 3, 7, 9]], &[]))),
                ("scale: 2 upsample_h: 7 upsample_w: 9", bottoms, Some((&[&[2, 3, 7, 9]], &[]))),
                ("scale: 3 pad_out_w: true", bottoms, None),
                ("scale: 1", bottoms, None),
                ("scale: 2 scale_h: 2 scale_w: 2", bottoms, None),
                ("scale_h: 2", bottoms, None),
                ("upsample_h: 7", bottoms, None),
                ("", &[&[2, 3, 4, 5], &[2, 3, 4, 4]], None),
            ],
        );
    }
}
