//! ReLU6, of forks for MobileNet and YOLO, is a ReLU with an upper limit, which is 6 by default.
//! Clip, a layer of Caffe since 2018, has a lower and an upper limit.

use super::{Rule, IN_PLACE};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static RELU6: Rule =
    Rule { layer_type: "ReLU6", parameters: Some("relu6_param"), emit, ..IN_PLACE };

pub(super) static CLIP: Rule =
    Rule { layer_type: "Clip", parameters: Some("clip_param"), emit: clip, ..IN_PLACE };

/// Requires both limits, as Caffe does. ONNX and Caffe both apply the upper limit last.
fn clip(e: &mut Emit<'_>) -> Result<()> {
    let p = e.parameters;
    if !p.has("min") || !p.has("max") {
        return Err(Error::invalid("the layer needs a min and a max"));
    }
    let limits = [p.float("min"), p.float("max")].map(|limit| e.float(limit));
    e.node("Clip").input(e.bottom(0)).inputs(limits).top(e, 0);
    Ok(())
}

/// Reads the limit from the field `n` of some forks, or from the field `threshold` of others.
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
