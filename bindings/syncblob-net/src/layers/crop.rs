//! Cuts a blob to the size of another blob.

use super::{Rule, Setup, Shapes, PLAIN};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static CROP: Rule = Rule {
    layer_type: "Crop",
    parameters: Some("crop_param"),
    bottoms: (2, 2),
    shapes,
    emit,
    ..PLAIN
};

/// Returns for each axis the offset at which the remaining part begins.
fn offsets(setup: &Setup<'_>) -> Result<Vec<i64>> {
    let axes = setup.bottoms[0].len();
    let axis = setup.own_axis()?;
    let given = match setup.parameters.ints("offset").as_slice() {
        [] => vec![0; axes - axis],
        [one] => vec![*one; axes - axis],
        all if all.len() == axes - axis => all.to_vec(),
        all => {
            let text = format_args!("{} offsets for {} axes", all.len(), axes - axis);
            return Err(Error::invalid(text));
        }
    };
    Ok([vec![0; axis], given].concat())
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let (bottom, like) = (&setup.bottoms[0], &setup.bottoms[1]);
    let mut top = bottom.clone();
    let start = setup.own_axis()?;
    for (axis, offset) in offsets(setup)?.into_iter().enumerate().skip(start) {
        top[axis] = match like.get(axis) {
            Some(&part) if bottom[axis] - offset >= part => part,
            _ => {
                let text = format_args!(
                    "axis {axis}: {like:?} does not fit into {bottom:?} at offset {offset}"
                );
                return Err(Error::invalid(text));
            }
        };
    }
    Ok(Shapes::top(top))
}

/// Slices only the axes that become shorter, because an unchanged axis may be the batch's axis.
fn emit(e: &mut Emit<'_>) -> Result<()> {
    let (bottom, top) = (&e.bottom_shapes[0], &e.top_shapes[0]);
    let offsets = offsets(&e.setup())?;
    let axes: Vec<usize> = (0..top.len()).filter(|&axis| bottom[axis] != top[axis]).collect();
    if axes.is_empty() {
        e.pass(0, 0);
        return Ok(());
    }
    if axes.iter().any(|&axis| e.bottom_batch[0] == Some(axis) || e.top_batch[0] == Some(axis)) {
        return Err(Error::unsupported("the layer cuts an axis whose size depends on the batch"));
    }
    let begins: Vec<i64> = axes.iter().map(|&axis| offsets[axis]).collect();
    let ends: Vec<i64> = axes.iter().map(|&axis| offsets[axis] + top[axis]).collect();
    let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
    let lists = [begins, ends, axes].map(|list| e.ints(&list));
    e.node("Slice").input(e.bottom(0)).inputs(lists).top(e, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn axes_from_one_on_are_cut() {
        let bottoms: &[&[i64]] = &[&[2, 3, 8, 9], &[7, 7, 4, 5]];
        check(
            "Crop",
            &[
                ("", bottoms, Some((&[&[2, 3, 4, 5]], &[]))),
                ("offset: 4", bottoms, Some((&[&[2, 3, 4, 5]], &[]))),
                ("offset: 4 offset: 2", bottoms, Some((&[&[2, 3, 4, 5]], &[]))),
                ("axis: -1 offset: 4", bottoms, Some((&[&[2, 3, 8, 5]], &[]))),
                ("offset: 5", bottoms, None),
                ("axis: 1", bottoms, None),
                ("offset: 1 offset: 1 offset: 1", bottoms, None),
                ("axis: 3 offset: 0", &[&[1, 1, 1, 4], &[4]], None),
            ],
        );
    }
}
