//! Moves the squares of a plane into channels or, with `reverse`, channels into squares. As in
//! YOLO, the first direction reads its bottom as if the bottom had the shape of the second
//! direction's top. Therefore the second direction does not undo the first, unlike ONNX's
//! `SpaceToDepth` and `DepthToSpace`.

use super::pooling::plane;
use super::{fixed, size, Rule, Setup, Shapes, PLAIN};
use crate::net::Shape;
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static REORG: Rule =
    Rule { layer_type: "Reorg", parameters: Some("reorg_param"), shapes, emit, ..PLAIN };

/// Returns the bottom's channels, height and width, and the side of the squares. In both directions
/// the number of channels must be a multiple of the side's square.
fn sizes(setup: &Setup<'_>) -> Result<([i64; 3], i64)> {
    let (bottom, stride) = (&setup.bottoms[0], setup.parameters.int("stride"));
    let ([height, width], channels) = (plane(bottom)?, bottom[1]);
    let area = size(i128::from(stride) * i128::from(stride))?;
    let planes = [height, width].iter().all(|side| stride > 0 && side % stride == 0);
    if !planes || channels % area != 0 {
        return Err(Error::invalid(format_args!("squares of side {stride} do not fit {bottom:?}")));
    }
    Ok(([channels, height, width], stride))
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let ([channels, height, width], stride) = sizes(setup)?;
    let area = stride * stride;
    let top = match setup.parameters.bool("reverse") {
        true => {
            let sides = [height, width].map(|side| size(i128::from(side) * i128::from(stride)));
            let [height, width] = sides;
            [channels / area, height?, width?]
        }
        false => {
            let channels = size(i128::from(channels) * i128::from(area))?;
            [channels, height / stride, width / stride]
        }
    };
    Ok(Shapes::top([&setup.bottoms[0][..1], &top].concat()))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    fixed(e, 1..4)?;
    let ([channels, height, width], stride) = sizes(&e.setup())?;
    let few = channels / (stride * stride);
    let (dims, order): (Shape, [i64; 6]) = match e.parameters.bool("reverse") {
        true => (vec![-1, stride, stride, few, height, width], [0, 3, 4, 1, 5, 2]),
        false => (vec![-1, few, height, stride, width, stride], [0, 3, 5, 1, 2, 4]),
    };
    let squares = e.reshape(e.bottom(0), &dims);
    let moved = e.node("Transpose").ints("perm", order).input(squares).value(e);
    e.reshape_to_top(moved, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn planes_become_channels() {
        let bottom: &[&[i64]] = &[&[2, 8, 4, 6]];
        check(
            "Reorg",
            &[
                ("stride: 2", bottom, Some((&[&[2, 32, 2, 3]], &[]))),
                ("stride: 2 reverse: true", bottom, Some((&[&[2, 2, 8, 12]], &[]))),
                ("stride: 1", bottom, Some((bottom, &[]))),
                ("", bottom, None),
                ("stride: 4", bottom, None),
                ("stride: 4294967295", bottom, None),
                ("stride: 2", &[&[2, 6, 4, 6]], None),
                ("stride: 2", &[&[8, 4, 6]], None),
            ],
        );
    }
}
