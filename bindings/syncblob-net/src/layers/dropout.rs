//! Dropout, and ENet's dropout of whole channels. In phase TEST neither layer drops values.

use super::{Rule, IN_PLACE};
use crate::onnx::Emit;
use crate::Result;

pub(super) static DROPOUT: Rule =
    Rule { layer_type: "Dropout", parameters: Some("dropout_param"), emit, ..IN_PLACE };

pub(super) static SPATIAL_DROPOUT: Rule = Rule {
    layer_type: "SpatialDropout",
    parameters: Some("spatial_dropout_param"),
    emit: pass,
    ..IN_PLACE
};

#[allow(clippy::unnecessary_wraps)] // a rule's `emit` returns a result
fn pass(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["dropout_ratio"]);
    e.pass(0, 0);
    Ok(())
}

/// Scales all values if a fork's field `scale_train` is false: training has then not scaled the
/// kept values.
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
