//! The layer BN. Forks of Caffe have three kinds of this layer. The rules follow the forks'
//! sources.
//!
//! - DeconvNet, SegNet and ENet: a scale and a shift. Unless `bn_mode` is `INFERENCE`, the layer
//!   first normalises the bottom by the statistics of the batch, also in phase TEST.
//! - PSPNet and TSN: a slope, a bias, a mean and a variance, like `BatchNorm` and `Scale` together.
//! - PSPNet's first version: the same four blobs. Unless `moving_average` is set, the layer uses
//!   the statistics of the batch.
//!
//! The kind of a layer follows from the names of the parameters that the layer sets.

use super::batch_norm::{by_channel, of_batch, Normal};
use super::{fixed, Rule, Setup, Shapes, IN_PLACE};
use crate::message::{Message, Place};
use crate::onnx::{Emit, Value};
use crate::{Error, Result};

pub(super) static BN: Rule =
    Rule { layer_type: "BN", parameters: Some("bn_param"), shapes, emit, ..IN_PLACE };

/// The eps of the first kind, which has no field for an eps.
const EPS: f32 = 1e-9;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Mode,
    Slope,
    MovingAverage,
}

/// The fields that identify a kind. The fields in `NUMBERS_OF_ALL` identify a kind only in a
/// prototxt: in a binary message, every kind may have fields with these numbers.
const MOVING_AVERAGE: [&str; 3] = ["moving_average", "decay", "var_eps"];
const SLOPE: [&str; 5] = ["eps", "frozen", "momentum", "slope_filler", "bias_filler"];
const NUMBERS_OF_ALL: [&str; 3] = ["momentum", "slope_filler", "bias_filler"];

fn identifies(p: &Message, name: &str) -> bool {
    let from_text = |place| !matches!(place, Place::Byte(_));
    p.all(name).any(|field| from_text(field.place()) || !NUMBERS_OF_ALL.contains(&name))
}

fn kind(p: &Message) -> Result<Kind> {
    let any = |names: &[&str]| names.iter().any(|name| identifies(p, name));
    match (any(&SLOPE), any(&MOVING_AVERAGE)) {
        (false, false) => Ok(Kind::Mode),
        (true, false) => Ok(Kind::Slope),
        (false, true) => Ok(Kind::MovingAverage),
        (true, true) => Err(Error::unsupported(
            "its parameters do not show whether mean and variance are from its blobs or the batch",
        )),
    }
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let bottom = &setup.bottoms[0];
    let &[_, channels, ..] = &**bottom else {
        return Err(Error::invalid("the bottom has no channels"));
    };
    if bottom.len() != 4 {
        return Err(Error::invalid(format_args!("the bottom has {} axes, not 4", bottom.len())));
    }
    if setup.parameters.has("axis") && setup.parameters.int("axis") != 1 {
        return Err(Error::unsupported("the layer's axis is not 1"));
    }
    let number = if kind(setup.parameters)? == Kind::Mode { 2 } else { 4 };
    let blobs = vec![vec![1, channels, 1, 1]; number];
    Ok(Shapes::top(bottom.clone()).with_blobs(blobs))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["scale_filler", "shift_filler", "slope_filler", "bias_filler"]);
    e.ignore(["engine", "momentum", "decay", "frozen"]);
    fixed(e, 1..2)?;
    let (p, kind) = (e.parameters, kind(e.parameters)?);
    let x = match (kind, p.enumeration("bn_mode"), p.bool("moving_average")) {
        (Kind::Slope, ..) => return normalize(e, p.float("eps")),
        (Kind::MovingAverage, _, true) => return normalize(e, p.float("var_eps")),
        (Kind::MovingAverage, _, false) => of_batch(e, p.float("var_eps")),
        (Kind::Mode, "INFERENCE", _) => e.bottom(0),
        (Kind::Mode, ..) => of_batch(e, EPS),
    };
    scale(e, x)
}

fn normalize(e: &mut Emit<'_>, eps: f32) -> Result<()> {
    let [scale, bias] = [0, 1].map(|index| e.blob_values(index));
    let (mean, variance) = (e.blob_values(2)?, e.blob_values(3)?);
    Normal { mean, variance, eps, scale: Some(scale?), bias: Some(bias?) }.emit(e);
    Ok(())
}

fn scale(e: &mut Emit<'_>, x: Value) -> Result<()> {
    let [scale, shift] = [0, 1].map(|index| e.blob_values(index));
    let (scale, shift) = (by_channel(e, &scale?), by_channel(e, &shift?));
    let scaled = e.apply("Mul", [x, scale]);
    e.node("Add").input(scaled).input(shift).top(e, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{kind, Kind};
    use crate::layers::testing::{check, Case};
    use crate::testing::of_bytes;
    use crate::ErrorKind;

    #[test]
    fn kinds_have_two_or_four_blobs() {
        let bottom: &[&[i64]] = &[&[2, 3, 4, 5]];
        let one: &[i64] = &[1, 3, 1, 1];
        let (two, four): (&[&[i64]], &[&[i64]]) = (&[one; 2], &[one; 4]);
        check(
            "BN",
            &[
                ("", bottom, Some((bottom, two))),
                ("bn_mode: INFERENCE scale_filler {}", bottom, Some((bottom, two))),
                ("slope_filler {} bias_filler {} frozen: true", bottom, Some((bottom, four))),
                ("eps: 0.001", bottom, Some((bottom, four))),
                ("moving_average: true var_eps: 0.001 axis: 1", bottom, Some((bottom, four))),
                ("", &[&[3]], None),
                ("", &[&[2, 3]], None),
            ],
        );
    }

    #[test]
    fn numbers_of_all_kinds_identify_none() {
        for (bytes, want) in [(&b"\x0a\x00\x1d\x00\x00\x80\x3f"[..], false), (b"\x28\x01", true)] {
            let message = of_bytes("BNParameter", bytes);
            assert_eq!(kind(&message).unwrap() == Kind::Slope, want, "{message}");
        }
    }

    #[test]
    fn kinds_are_not_mixed() {
        for text in ["eps: 0.001 var_eps: 0.001", "moving_average: true axis: 2"] {
            let case = Case { layer_type: "BN", text, bottoms: &[&[2, 3, 4, 5]], tops: 1 };
            assert_eq!(case.shapes().unwrap_err().kind(), ErrorKind::Unsupported, "{text}");
        }
    }
}
