//! Selects elements of the first bottom's batch, by indices in the second bottom.

use super::{with_rest, Rule, Setup, Shapes, PLAIN};
use crate::onnx::{DataType, Emit};
use crate::{Error, Result};

pub(super) static BATCH_REINDEX: Rule = Rule {
    layer_type: "BatchReindex",
    bottoms: (2, 2),
    shapes,
    emit,
    full_precision: true,
    ..PLAIN
};

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    match (&*setup.bottoms[0], &*setup.bottoms[1]) {
        ([_, parts @ ..], indices @ [_]) => Ok(Shapes::top(with_rest(indices, 1, parts))),
        _ => {
            Err(Error::invalid("the indices need one axis, and the first bottom at least one axis"))
        }
    }
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    let indices = e.cast(e.bottom(1), DataType::Int64);
    e.node("Gather").int("axis", 0).input(e.bottom(0)).input(indices).top(e, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn each_index_selects_a_part() {
        check(
            "BatchReindex",
            &[
                ("", &[&[2, 3], &[7]], Some((&[&[7, 3]], &[]))),
                ("", &[&[2, 3], &[7, 1]], None),
                ("", &[&[], &[7]], None),
            ],
        );
    }
}
