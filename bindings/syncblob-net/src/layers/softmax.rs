//! Divides exp(x) by the sum of exp(x) along an axis.

use super::{as_bottoms, Rule, Setup, Shapes, IN_PLACE};
use crate::onnx::Emit;
use crate::Result;

pub(super) static SOFTMAX: Rule =
    Rule { layer_type: "Softmax", parameters: Some("softmax_param"), shapes, emit, ..IN_PLACE };

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    setup.own_axis()?;
    as_bottoms(setup)
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["engine"]);
    let axis = e.setup().own_axis()? as i64;
    e.node("Softmax").int("axis", axis).input(e.bottom(0)).top(e, 0);
    Ok(())
}
