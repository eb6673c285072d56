//! Swish and similar layers, which multiply each value by a function of this value. Swish is a
//! layer of BVLC's Caffe. The other layers are from forks.

use super::{Rule, IN_PLACE};
use crate::onnx::Emit;
use crate::Result;

/// x * sigmoid(beta * x)
pub(super) static SWISH: Rule =
    Rule { layer_type: "Swish", parameters: Some("swish_param"), emit: swish, ..IN_PLACE };

/// x * tanh(log(1 + exp(x)))
pub(super) static MISH: Rule = Rule { layer_type: "Mish", emit: mish, ..IN_PLACE };

/// max(0, min(1, alpha * x + beta))
pub(super) static HARD_SIGMOID: Rule = Rule {
    layer_type: "HardSigmoid",
    parameters: Some("hardsigmoid_param"),
    emit: hard_sigmoid,
    ..IN_PLACE
};

/// x * max(0, min(1, x / 6 + 1 / 2))
pub(super) static HARD_SWISH: Rule = Rule { layer_type: "HardSwish", emit: hard_swish, ..IN_PLACE };

#[allow(clippy::float_cmp)]
fn swish(e: &mut Emit<'_>) -> Result<()> {
    let (mut x, beta) = (e.bottom(0), e.parameters.float("beta"));
    if beta != 1.0 {
        let beta = e.float(beta);
        x = e.apply("Mul", [x, beta]);
    }
    let gate = e.apply("Sigmoid", [x]);
    e.node("Mul").input(e.bottom(0)).input(gate).top(e, 0);
    Ok(())
}

#[allow(clippy::unnecessary_wraps)] // a rule's `emit` returns a result
fn mish(e: &mut Emit<'_>) -> Result<()> {
    let gate = e.apply("Softplus", [e.bottom(0)]);
    let gate = e.apply("Tanh", [gate]);
    e.node("Mul").input(e.bottom(0)).input(gate).top(e, 0);
    Ok(())
}

fn hard_sigmoid(e: &mut Emit<'_>) -> Result<()> {
    let (alpha, beta) = (e.parameters.float("alpha"), e.parameters.float("beta"));
    let node = e.node("HardSigmoid").float("alpha", alpha).float("beta", beta);
    node.input(e.bottom(0)).top(e, 0);
    Ok(())
}

#[allow(clippy::unnecessary_wraps)] // a rule's `emit` returns a result
fn hard_swish(e: &mut Emit<'_>) -> Result<()> {
    e.node("HardSwish").input(e.bottom(0)).top(e, 0);
    Ok(())
}
