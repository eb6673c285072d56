//! Divides regions of an image into bins and computes the bins' maxima. The layer is from Fast
//! R-CNN, and the rules follow its source. A region is an image's number and two corners. The
//! pixels at the two corners belong to the region. The coordinates are scaled, then rounded. An
//! empty bin is 0. ONNX does not define the rounding, but onnxruntime rounds like Caffe.

use super::pooling::plane;
use super::{count, fixed, size, Rule, Setup, Shapes, PLAIN};
use crate::onnx::{Emit, Value};
use crate::{Error, Result};

pub(super) static ROI_POOLING: Rule = Rule {
    layer_type: "ROIPooling",
    parameters: Some("roi_pooling_param"),
    bottoms: (2, 2),
    shapes,
    emit,
    full_precision: true,
    ..PLAIN
};

/// Returns the number of regions. Each region has 5 numbers.
pub(super) fn regions(setup: &Setup<'_>) -> Result<i64> {
    match &*setup.bottoms[1] {
        [number, rest @ ..] if rest.len() < 4 && matches!(count(rest), Ok(5)) => Ok(*number),
        other => Err(Error::invalid(format_args!("regions need 5 numbers each, not {other:?}"))),
    }
}

/// Returns the regions as the rows of a matrix.
pub(super) fn rows(e: &mut Emit<'_>) -> Value {
    if e.bottom_shapes[1].len() == 2 {
        return e.bottom(1);
    }
    e.reshape(e.bottom(1), &[-1, 5])
}

fn bins(setup: &Setup<'_>) -> Result<[i64; 2]> {
    match ["pooled_h", "pooled_w"].map(|name| size(setup.parameters.int(name).into())) {
        [Ok(height @ 1..), Ok(width @ 1..)] => Ok([height, width]),
        _ => Err(Error::invalid("the layer needs pooled_h and pooled_w above 0")),
    }
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    plane(&setup.bottoms[0])?;
    let ([height, width], channels) = (bins(setup)?, setup.bottoms[0][1]);
    Ok(Shapes::top(vec![regions(setup)?, channels, height, width]))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    fixed(e, 2..4)?;
    let (bins, scale) = (bins(&e.setup())?, e.parameters.float("spatial_scale"));
    let rows = rows(e);
    let node = e.node("MaxRoiPool").ints("pooled_shape", bins).float("spatial_scale", scale);
    node.input(e.bottom(0)).input(rows).top(e, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn each_region_is_five_numbers() {
        let top: &[&[i64]] = &[&[7, 3, 4, 6]];
        let bins = "pooled_h: 4 pooled_w: 6 spatial_scale: 0.0625";
        check(
            "ROIPooling",
            &[
                (bins, &[&[2, 3, 9, 9], &[7, 5]], Some((top, &[]))),
                (bins, &[&[2, 3, 9, 9], &[7, 5, 1, 1]], Some((top, &[]))),
                (bins, &[&[2, 3, 9, 9], &[7, 4]], None),
                (bins, &[&[2, 3, 9, 9], &[]], None),
                (bins, &[&[2, 3, 9, 9], &[0, i64::MAX, i64::MAX]], None),
                (bins, &[&[3, 9, 9], &[7, 5]], None),
                ("pooled_h: 4", &[&[2, 3, 9, 9], &[7, 5]], None),
            ],
        );
    }
}
