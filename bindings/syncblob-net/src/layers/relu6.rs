//! ReLU that ends at a limit, which is 6 if none is given. Of MobileNet's and YOLO's forks.

use super::{Rule, PLAIN};
use crate::onnx::Emit;
use crate::Result;

pub(super) static RELU6: Rule =
    Rule { layer_type: "ReLU6", parameters: Some("relu6_param"), emit, ..PLAIN };

/// Forks name the limit in two ways.
fn emit(e: &mut Emit<'_>) -> Result<()> {
    let p = e.parameters;
    p.ignore("engine");
    let limit = if p.has("n") { p.float("n") } else { p.float("threshold") };
    let (slope, limit) = (p.float("negative_slope"), e.float(limit));
    if slope == 0.0 {
        let zero = e.float(0.0);
        e.node("Clip").input(e.bottom(0)).input(zero).input(limit).top(e, 0);
    } else {
        let x = e.node("LeakyRelu").float("alpha", slope).input(e.bottom(0)).value(e);
        e.node("Min").input(x).input(limit).top(e, 0);
    }
    Ok(())
}
