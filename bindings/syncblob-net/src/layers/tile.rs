//! Repeats a blob along an axis.

use super::{size, Rule, Setup, Shapes, IN_PLACE};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static TILE: Rule =
    Rule { layer_type: "Tile", parameters: Some("tile_param"), shapes, emit, ..IN_PLACE };

/// Returns the axis and the number of repetitions.
fn tiles(setup: &Setup<'_>) -> Result<(usize, i64)> {
    let tiles = setup.parameters.int("tiles");
    if tiles < 1 {
        return Err(Error::invalid(format_args!("tiles is {tiles}, below 1")));
    }
    Ok((setup.own_axis()?, tiles))
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let (axis, tiles) = tiles(setup)?;
    let mut top = setup.bottoms[0].clone();
    top[axis] = size(i128::from(top[axis]) * i128::from(tiles))?;
    Ok(Shapes::top(top))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    let (axis, tiles) = tiles(&e.setup())?;
    let mut repeats = vec![1; e.bottom_shapes[0].len()];
    repeats[axis] = tiles;
    let repeats = e.ints(&repeats);
    e.node("Tile").input(e.bottom(0)).input(repeats).top(e, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn one_axis_grows() {
        let bottom: &[&[i64]] = &[&[2, 3]];
        check(
            "Tile",
            &[
                ("tiles: 4", bottom, Some((&[&[2, 12]], &[]))),
                ("tiles: 4 axis: -2", bottom, Some((&[&[8, 3]], &[]))),
                ("", bottom, None),
                ("tiles: -1", bottom, None),
                ("tiles: 2000000000", bottom, None),
            ],
        );
    }
}
