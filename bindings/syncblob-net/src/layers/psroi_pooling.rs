//! Divides regions of an image into bins and computes the bins' means. Each bin reads separate
//! channels. The layer is from R-FCN, and the rules follow its source. The two corners of a region
//! are rounded, the second corner is increased by one, then both corners are scaled. A region is at
//! least a tenth of a pixel wide. A bin contains all pixels that it touches. The mean of an empty
//! bin is 0.
//!
//! The sum of a bin is computed from a summed-area table, which needs doubles.

use super::pooling::plane;
use super::roi_pooling::{regions, rows};
use super::{constants, fixed, size, Rule, Setup, Shapes, PLAIN};
use crate::onnx::{DataType, Emit, Value};
use crate::{Error, Result};

pub(super) static PSROI_POOLING: Rule = Rule {
    layer_type: "PSROIPooling",
    parameters: Some("psroi_pooling_param"),
    bottoms: (2, 2),
    shapes,
    emit,
    full_precision: true,
    ..PLAIN
};

/// Returns the top's number of channels, and the number of bins along a side of each region.
fn sizes(setup: &Setup<'_>) -> Result<[i64; 2]> {
    let [outputs, bins] =
        ["output_dim", "group_size"].map(|name| size(setup.parameters.int(name).into()));
    let (outputs, bins) = (outputs?, bins?);
    plane(&setup.bottoms[0])?;
    let channels = i128::from(outputs) * i128::from(bins) * i128::from(bins);
    match i128::from(setup.bottoms[0][1]) {
        has if has == channels && channels > 0 => Ok([outputs, bins]),
        has => {
            let text = format_args!("it has {has} channels, not {outputs} * {bins} * {bins}");
            Err(Error::invalid(text))
        }
    }
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let [outputs, bins] = sizes(setup)?;
    Ok(Shapes::top(vec![regions(setup)?, outputs, bins, bins]))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    fixed(e, 1..4)?;
    let rows = rows(e);
    let corners = corners(e, rows);
    let bounds = bounds(e, corners)?;
    let images = part(e, rows, 1, 0, 1);
    let (sums, area) = (sums(e, &bounds, images)?, area(e, &bounds));
    let mean = e.apply("Div", [sums, area]);
    e.node("Cast").int("to", DataType::Float as i64).input(mean).top(e, 0);
    Ok(())
}

/// Slices the elements with indices from `from` to `to` - 1 along an axis.
fn part(e: &mut Emit<'_>, value: Value, axis: i64, from: i64, to: i64) -> Value {
    let bounds = [from, to, axis].map(|bound| e.ints(&[bound]));
    e.node("Slice").input(value).inputs(bounds).value(e)
}

/// The x and y of each region's first and second corner, in pixels of the bottom.
struct Corners {
    begin: Value,
    end: Value,
}

fn corners(e: &mut Emit<'_>, rows: Value) -> Corners {
    let rounded = rounded(e, rows);
    let (one, scale) = (e.float(1.0), e.float(e.parameters.float("spatial_scale")));
    let (begin, end) = (part(e, rounded, 1, 1, 3), part(e, rounded, 1, 3, 5));
    let end = e.apply("Add", [end, one]);
    Corners { begin: e.apply("Mul", [begin, scale]), end: e.apply("Mul", [end, scale]) }
}

/// Rounds 0.5 away from 0, unlike ONNX's `Round`. Adds 0.5 in doubles, so the sum is exact.
fn rounded(e: &mut Emit<'_>, value: Value) -> Value {
    let half = e.float(0.5);
    let [value, half] = [value, half].map(|value| e.cast(value, DataType::Double));
    let (sign, size) = (e.apply("Sign", [value]), e.apply("Abs", [value]));
    let size = e.apply("Add", [size, half]);
    let size = e.apply("Floor", [size]);
    let rounded = e.apply("Mul", [sign, size]);
    e.cast(rounded, DataType::Float)
}

/// The bounds of each region's bins. The shape is (regions, 2 for x and y, bins).
struct Bounds {
    begin: Value,
    end: Value,
}

/// Returns the bounds of the bins. Computes in doubles, so that each bound is rounded once, like
/// the fused multiply-add of R-FCN's GPU layer. The rounding may decide whether a bin is empty.
#[allow(clippy::cast_precision_loss)] // there are fewer bins than channels
fn bounds(e: &mut Emit<'_>, Corners { begin, end }: Corners) -> Result<Bounds> {
    let ([_, bins], [height, width]) = (sizes(&e.setup())?, plane(&e.bottom_shapes[0])?);
    let (least, number) = (e.float(0.1), e.float(bins as f32));
    let size = e.apply("Sub", [end, begin]);
    let size = e.apply("Max", [size, least]);
    let size = e.apply("Div", [size, number]);
    let [begin, size] = [begin, size].map(|value| {
        let value = e.reshape(value, &[-1, 2, 1]);
        e.cast(value, DataType::Double)
    });
    let limits = e.floats(&[2, 1], &[width as f32, height as f32]);
    let mut bound = |op, first: i64| {
        let steps: Vec<f32> = (first..first + bins).map(|step| step as f32).collect();
        let steps = e.floats(&[bins], &steps);
        let steps = e.cast(steps, DataType::Double);
        let offset = e.apply("Mul", [size, steps]);
        let place = e.apply("Add", [offset, begin]);
        let place = e.cast(place, DataType::Float);
        let place = e.apply(op, [place]);
        let zero = e.float(0.0);
        let place = e.apply("Max", [place, zero]);
        e.apply("Min", [place, limits])
    };
    Ok(Bounds { begin: bound("Floor", 0), end: bound("Ceil", 1) })
}

/// Returns each bin's number of pixels, at least 1. The shape is (regions, 1, rows, columns).
fn area(e: &mut Emit<'_>, bounds: &Bounds) -> Value {
    let lengths = e.apply("Sub", [bounds.end, bounds.begin]);
    let [width, height] = along(e, lengths);
    let (area, one) = (e.apply("Mul", [width, height]), e.float(1.0));
    let area = e.apply("Max", [area, one]);
    e.cast(area, DataType::Double)
}

/// Splits a value into its parts for x and for y, and reshapes both to broadcast over rows and
/// columns of bins.
fn along(e: &mut Emit<'_>, value: Value) -> [Value; 2] {
    [(0, [-1, 1, 1, 0]), (1, [-1, 1, 0, 1])].map(|(axis, mut dims)| {
        let one = part(e, value, 1, axis, axis + 1);
        for dim in dims.iter_mut().filter(|dim| **dim == 0) {
            *dim = e.top_shapes[0][3];
        }
        e.reshape(one, &dims)
    })
}

/// Returns the sum of each bin's pixels. The shape is (regions, outputs, rows, columns).
fn sums(e: &mut Emit<'_>, bounds: &Bounds, images: Value) -> Result<Value> {
    let (table, [_, width]) = (table(e), plane(&e.bottom_shapes[0])?);
    let planes = planes(e, images)?;
    let pitch = e.ints(&[width + 1]);
    let [begin, end] = [bounds.begin, bounds.end].map(|bound| {
        let bound = e.cast(bound, DataType::Int64);
        let [x, y] = along(e, bound);
        (x, e.apply("Mul", [y, pitch]))
    });
    let mut at = |x, y| {
        let place = e.apply("Add", [x, y]);
        let place = e.apply("Add", [place, planes]);
        e.apply("Gather", [table, place])
    };
    let [right_end, right_begin] = [end.1, begin.1].map(|y| at(end.0, y));
    let [left_end, left_begin] = [end.1, begin.1].map(|y| at(begin.0, y));
    let right = e.apply("Sub", [right_end, right_begin]);
    let left = e.apply("Sub", [left_end, left_begin]);
    Ok(e.apply("Sub", [right, left]))
}

/// Returns the summed-area table as a vector. Each element of the table is the sum of the bottom's
/// elements above and to the left. A plane of the table has one row and one column more than a
/// plane of the bottom.
fn table(e: &mut Emit<'_>) -> Value {
    let border = e.ints(&[0, 0, 1, 1, 0, 0, 0, 0]);
    let padded = e.apply("Pad", [e.bottom(0), border]);
    let mut sums = e.cast(padded, DataType::Double);
    for axis in [2, 3] {
        let axis = e.ints_of(&[], &[axis]);
        sums = e.apply("CumSum", [sums, axis]);
    }
    e.reshape(sums, &[-1])
}

/// Returns for each bin the index in the table at which the bin's plane begins. The shape is
/// (regions, outputs, rows, columns).
fn planes(e: &mut Emit<'_>, images: Value) -> Result<Value> {
    let ([outputs, bins], [height, width]) = (sizes(&e.setup())?, plane(&e.bottom_shapes[0])?);
    let channels = constants(&[outputs, bins, bins])?;
    let area = size(i128::from(height + 1) * i128::from(width + 1))?;
    let offsets: Vec<i64> = (0..channels).map(|channel| channel * area).collect();
    let offsets = e.ints_of(&[1, outputs, bins, bins], &offsets);
    let pitch = e.ints(&[channels * area]);
    let images = e.cast(images, DataType::Int64);
    let images = e.apply("Mul", [images, pitch]);
    let images = e.reshape(images, &[-1, 1, 1, 1]);
    Ok(e.apply("Add", [images, offsets]))
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn each_bin_has_its_channels() {
        let text = "output_dim: 5 group_size: 3 spatial_scale: 0.0625";
        check(
            "PSROIPooling",
            &[
                (text, &[&[2, 45, 9, 8], &[7, 5]], Some((&[&[7, 5, 3, 3]], &[]))),
                (text, &[&[2, 44, 9, 8], &[7, 5]], None),
                (text, &[&[2, 45, 9, 8], &[7, 6]], None),
                ("output_dim: 0 group_size: 0", &[&[2, 0, 9, 8], &[7, 5]], None),
                ("output_dim: 5 group_size: 2147483647", &[&[2, 45, 9, 8], &[7, 5]], None),
            ],
        );
    }
}
