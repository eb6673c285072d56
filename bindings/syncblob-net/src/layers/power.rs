//! The layers Power, Exp and Log scale and shift each value, then apply a function.

use super::{Rule, IN_PLACE};
use crate::message::Message;
use crate::onnx::{Emit, Value};
use crate::{Error, Result};

/// (shift + scale * x) ^ power
pub(super) static POWER: Rule =
    Rule { layer_type: "Power", parameters: Some("power_param"), emit: power, ..IN_PLACE };

/// base ^ (shift + scale * x)
pub(super) static EXP: Rule =
    Rule { layer_type: "Exp", parameters: Some("exp_param"), emit: exp, ..IN_PLACE };

/// The logarithm of shift + scale * x
pub(super) static LOG: Rule =
    Rule { layer_type: "Log", parameters: Some("log_param"), emit: log, ..IN_PLACE };

fn power(e: &mut Emit<'_>) -> Result<()> {
    let power = e.parameters.float("power");
    let (scale, shift) = (e.parameters.float("scale"), e.parameters.float("shift"));
    let x = e.bottom(0);
    if power * scale == 0.0 {
        constant(e, if power == 0.0 { 1.0 } else { shift.powf(power) });
        return Ok(());
    }
    let x = combine(e, "Mul", x, scale, 1.0);
    let x = combine(e, "Add", x, shift, 0.0);
    finish(e, "Pow", x, power);
    Ok(())
}

/// Fills the top with one number. Only the bottom's shape matters.
fn constant(e: &mut Emit<'_>, number: f32) {
    let number = e.float(number);
    let shape = e.apply("Shape", [e.bottom(0)]);
    e.node("Expand").input(number).input(shape).top(e, 0);
}

fn exp(e: &mut Emit<'_>) -> Result<()> {
    let (base, ln) = base(e.parameters)?;
    let (scale, shift) = (e.parameters.float("scale"), e.parameters.float("shift"));
    let outer = base.map_or(shift.exp(), |base| base.powf(shift));
    let x = combine(e, "Mul", e.bottom(0), ln * scale, 1.0);
    let x = e.apply("Exp", [x]);
    finish(e, "Mul", x, if shift == 0.0 { 1.0 } else { outer });
    Ok(())
}

fn log(e: &mut Emit<'_>) -> Result<()> {
    let ln = base(e.parameters)?.1;
    if !ln.recip().is_finite() {
        return Err(Error::invalid("a logarithm cannot have the base 1"));
    }
    let (scale, shift) = (e.parameters.float("scale"), e.parameters.float("shift"));
    let x = combine(e, "Mul", e.bottom(0), scale, 1.0);
    let x = combine(e, "Add", x, shift, 0.0);
    let x = e.apply("Log", [x]);
    finish(e, "Mul", x, ln.recip());
    Ok(())
}

/// Returns the base, or `None` for e, and the natural logarithm of the base.
#[allow(clippy::float_cmp)] // in Caffe -1 means e
fn base(p: &Message) -> Result<(Option<f32>, f32)> {
    match p.float("base") {
        -1.0 => Ok((None, 1.0)),
        base if base > 0.0 && base.ln().is_finite() => Ok((Some(base), base.ln())),
        base => Err(Error::invalid(format_args!("base is {base}, which is invalid"))),
    }
}

/// Returns `x op number`, or `x` if `number` is neutral.
#[allow(clippy::float_cmp)]
fn combine(e: &mut Emit<'_>, op: &'static str, x: Value, number: f32, neutral: f32) -> Value {
    if number == neutral {
        return x;
    }
    let number = e.float(number);
    e.apply(op, [x, number])
}

/// Adds the node that computes the top: `x op number`, or `x` if `number` is 1.
#[allow(clippy::float_cmp)]
fn finish(e: &mut Emit<'_>, op: &'static str, x: Value, number: f32) {
    if number == 1.0 {
        e.node("Identity").input(x).top(e, 0);
        return;
    }
    let number = e.float(number);
    e.node(op).input(x).input(number).top(e, 0);
}
