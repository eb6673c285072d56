//! Layers that apply a function to each value.

use super::{Rule, IN_PLACE, PLAIN};
use crate::onnx::Emit;
use crate::Result;

/// |x|
pub(super) static ABS_VAL: Rule = Rule { layer_type: "AbsVal", emit: |e| plain(e, "Abs"), ..PLAIN };

/// log(1 + exp(x))
pub(super) static BNLL: Rule =
    Rule { layer_type: "BNLL", emit: |e| plain(e, "Softplus"), ..IN_PLACE };

/// x if x is above 0, else alpha * (exp(x) - 1)
pub(super) static ELU: Rule =
    Rule { layer_type: "ELU", parameters: Some("elu_param"), emit: elu, ..IN_PLACE };

pub(super) static SIGMOID: Rule = Rule {
    layer_type: "Sigmoid",
    parameters: Some("sigmoid_param"),
    emit: |e| with_engine(e, "Sigmoid"),
    ..IN_PLACE
};

pub(super) static TANH: Rule = Rule {
    layer_type: "TanH",
    parameters: Some("tanh_param"),
    emit: |e| with_engine(e, "Tanh"),
    ..IN_PLACE
};

/// 1 if x is above the threshold, else 0
pub(super) static THRESHOLD: Rule = Rule {
    layer_type: "Threshold",
    parameters: Some("threshold_param"),
    emit: threshold,
    ..IN_PLACE
};

#[allow(clippy::unnecessary_wraps)] // a rule's `emit` returns a result
fn plain(e: &mut Emit<'_>, op: &'static str) -> Result<()> {
    e.node(op).input(e.bottom(0)).top(e, 0);
    Ok(())
}

fn with_engine(e: &mut Emit<'_>, op: &'static str) -> Result<()> {
    e.ignore(["engine"]);
    plain(e, op)
}

fn elu(e: &mut Emit<'_>) -> Result<()> {
    let alpha = e.parameters.float("alpha");
    e.node("Elu").float("alpha", alpha).input(e.bottom(0)).top(e, 0);
    Ok(())
}

fn threshold(e: &mut Emit<'_>) -> Result<()> {
    let threshold = e.float(e.parameters.float("threshold"));
    let (one, zero) = (e.float(1.0), e.float(0.0));
    let above = e.apply("Greater", [e.bottom(0), threshold]);
    e.node("Where").input(above).input(one).input(zero).top(e, 0);
    Ok(())
}
