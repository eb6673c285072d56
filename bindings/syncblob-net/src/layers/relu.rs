//! max(x, 0) + negative_slope * min(x, 0).

use super::{Rule, IN_PLACE};
use crate::onnx::Emit;
use crate::Result;

pub(super) static RELU: Rule =
    Rule { layer_type: "ReLU", parameters: Some("relu_param"), emit, ..IN_PLACE };

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["engine"]);
    let slope = e.parameters.float("negative_slope");
    let node = match slope {
        0.0 => e.node("Relu"),
        _ => e.node("LeakyRelu").float("alpha", slope),
    };
    node.input(e.bottom(0)).top(e, 0);
    Ok(())
}
