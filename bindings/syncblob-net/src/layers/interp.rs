//! Removes the border of each plane, then resizes the plane with aligned corners. The layer is from
//! DeepLab and PSPNet.

use super::pooling::plane;
use super::{fixed, size, Rule, Setup, Shapes, PLAIN};
use crate::onnx::{Emit, Value};
use crate::{Error, Result};

pub(super) static INTERP: Rule = Rule {
    layer_type: "Interp",
    parameters: Some("interp_param"),
    bottoms: (1, 2),
    shapes,
    emit,
    ..PLAIN
};

/// Returns the widths of the margins to remove at the beginning and at the end of each axis.
fn borders(setup: &Setup<'_>) -> Result<[i128; 2]> {
    let borders = ["pad_beg", "pad_end"].map(|name| -i128::from(setup.parameters.int(name)));
    match borders.iter().all(|&border| border >= 0) {
        true => Ok(borders),
        false => Err(Error::invalid("pad_beg and pad_end must not be above 0")),
    }
}

/// Returns the height and the width without the margins.
fn cut(setup: &Setup<'_>) -> Result<[i64; 2]> {
    let [before, behind] = borders(setup)?;
    let left = |side: i64| match i128::from(side) - before - behind {
        side if side > 0 => size(side),
        _ => Err(Error::invalid(format_args!("the pads remove a whole side of {side}"))),
    };
    let [height, width] = plane(&setup.bottoms[0])?;
    Ok([left(height)?, left(width)?])
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let [height, width] = wished(setup)?;
    if height < 1 || width < 1 {
        return Err(Error::invalid(format_args!("the top would be {height} by {width}")));
    }
    Ok(Shapes::top([&setup.bottoms[0][..2], &[height, width]].concat()))
}

/// Returns the top's height and width, which a second bottom, sizes or factors determine.
fn wished(setup: &Setup<'_>) -> Result<[i64; 2]> {
    let (p, cut) = (setup.parameters, cut(setup)?);
    let [shrink, zoom, height, width] =
        ["shrink_factor", "zoom_factor", "height", "width"].map(|name| p.given_int(name));
    if let Some(other) = setup.bottoms.get(1) {
        return match [shrink, zoom, height, width].iter().all(Option::is_none) {
            true => plane(other),
            false => Err(Error::invalid("it has a second bottom and sets a size or a factor")),
        };
    }
    match (shrink, zoom, height, width) {
        (None, None, Some(height), Some(width)) => Ok([size(height.into())?, size(width.into())?]),
        (None, None, ..) => Err(Error::invalid("it needs a height and a width, or a factor")),
        (shrink, zoom, ..) => scaled(cut, shrink.unwrap_or(1), zoom.unwrap_or(1)),
    }
}

fn scaled(sides: [i64; 2], shrink: i64, zoom: i64) -> Result<[i64; 2]> {
    if shrink < 1 || zoom < 1 {
        return Err(Error::invalid(format_args!("a factor is below 1: {shrink} or {zoom}")));
    }
    let [height, width] =
        sides.map(|side| size(i128::from((side - 1) / shrink) * i128::from(zoom) + 1));
    Ok([height?, width?])
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    fixed(e, 2..4)?;
    let kind = e.parameters.text("interp_type");
    if kind != b"bilinear" {
        let kind = kind.escape_ascii();
        return Err(Error::unsupported(format_args!("interp_type '{kind}' is not supported")));
    }
    let x = without_borders(e)?;
    let sizes = sizes(e);
    let node = e.node("Resize").text("mode", "linear");
    let node = node.text("coordinate_transformation_mode", "align_corners");
    node.input(x).no_input().no_input().input(sizes).top(e, 0);
    Ok(())
}

fn without_borders(e: &mut Emit<'_>) -> Result<Value> {
    let ([before, behind], sides) = (borders(&e.setup())?, cut(&e.setup())?);
    if before == 0 && behind == 0 {
        return Ok(e.bottom(0));
    }
    let before = size(before)?;
    let bounds = [[before; 2], sides.map(|side| before + side), [2, 3]];
    let bounds = bounds.map(|bound| e.ints(&bound));
    Ok(e.node("Slice").input(e.bottom(0)).inputs(bounds).value(e))
}

/// Returns the sizes of the top's axes. If the batch has a variable size, reads the sizes of the
/// first two axes from the bottom.
fn sizes(e: &mut Emit<'_>) -> Value {
    let top = &e.top_shapes[0];
    if e.top_batch[0].is_none() {
        return e.ints(top);
    }
    let sides = e.ints(&top[2..]);
    let first = e.node("Shape").int("end", 2).input(e.bottom(0)).value(e);
    e.node("Concat").int("axis", 0).input(first).input(sides).value(e)
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn sizes_are_given_or_by_factors() {
        let bottom: &[&[i64]] = &[&[2, 3, 7, 9]];
        check(
            "Interp",
            &[
                ("height: 3 width: 4", bottom, Some((&[&[2, 3, 3, 4]], &[]))),
                ("zoom_factor: 2", bottom, Some((&[&[2, 3, 13, 17]], &[]))),
                ("shrink_factor: 2", bottom, Some((&[&[2, 3, 4, 5]], &[]))),
                ("shrink_factor: 3 zoom_factor: 2", bottom, Some((&[&[2, 3, 5, 5]], &[]))),
                ("zoom_factor: 2 height: 1 width: 1", bottom, Some((&[&[2, 3, 13, 17]], &[]))),
                ("zoom_factor: 2 pad_beg: -1 pad_end: -2", bottom, Some((&[&[2, 3, 7, 11]], &[]))),
                ("", &[&[2, 3, 7, 9], &[1, 1, 2, 4]], Some((&[&[2, 3, 2, 4]], &[]))),
            ],
        );
    }

    #[test]
    fn wrong_sizes_are_refused() {
        let bottom: &[&[i64]] = &[&[2, 3, 7, 9]];
        let rows = [
            "",
            "height: 3",
            "height: 0 width: 1",
            "height: -1 width: 1",
            "zoom_factor: 0",
            "shrink_factor: -1",
            "zoom_factor: 2147483647",
            "zoom_factor: 2 pad_beg: 1",
            "zoom_factor: 2 pad_beg: -4 pad_end: -3",
            "zoom_factor: 2 pad_beg: -2147483648 pad_end: -2147483648",
        ];
        check("Interp", &rows.map(|text| (text, bottom, None)));
        check("Interp", &[("zoom_factor: 2", &[&[2, 3, 7, 9], &[1, 1, 2, 4]], None)]);
        check("Interp", &[("zoom_factor: 2", &[&[2, 3, 7]], None)]);
    }
}
