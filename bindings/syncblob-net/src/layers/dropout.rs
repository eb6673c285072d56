//! In phase TEST nothing is dropped.

use super::{Rule, PLAIN};
use crate::onnx::Emit;
use crate::Result;

pub(super) static DROPOUT: Rule =
    Rule { layer_type: "Dropout", parameters: Some("dropout_param"), emit, ..PLAIN };

/// With `scale_train: false`, a field of forks, training does not scale what it keeps, so that
/// phase TEST does.
fn emit(e: &mut Emit<'_>) -> Result<()> {
    let ratio = e.parameters.float("dropout_ratio");
    if e.parameters.bool("scale_train") {
        e.pass(0, 0);
    } else {
        let kept = e.float(1.0 - ratio);
        e.node("Mul").input(e.bottom(0)).input(kept).top(e, 0);
    }
    Ok(())
}
