//! Computes the sum, product or maximum of blobs that have the same shape.

use super::{Rule, Setup, Shapes, ANY, IN_PLACE};
use crate::onnx::{Emit, Value};
use crate::{Error, Result};

pub(super) static ELTWISE: Rule = Rule {
    layer_type: "Eltwise",
    parameters: Some("eltwise_param"),
    bottoms: (2, ANY),
    shapes,
    emit,
    ..IN_PLACE
};

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let first = &setup.bottoms[0];
    if let Some(other) = setup.bottoms.iter().find(|shape| *shape != first) {
        return Err(Error::invalid(format_args!(
            "the shapes of the bottoms must be equal: {first:?} and {other:?}"
        )));
    }
    let coefficients = setup.parameters.floats("coeff").len();
    if coefficients != 0 && coefficients != setup.bottoms.len() {
        let text = format_args!("{coefficients} coefficients, {} bottoms", setup.bottoms.len());
        return Err(Error::invalid(text));
    }
    Ok(Shapes::top(first.clone()))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["stable_prod_grad"]);
    let operation = e.parameters.enumeration("operation");
    if operation != "PROD" {
        e.layer.refuse_in_place()?;
    }
    let coefficients = e.parameters.floats("coeff");
    let bottoms: Vec<Value> = (0..e.bottom_shapes.len()).map(|index| e.bottom(index)).collect();
    match operation {
        "PROD" if !coefficients.is_empty() => {
            return Err(Error::invalid("a product cannot have coefficients"))
        }
        "PROD" => fold(e, "Mul", &bottoms),
        "MAX" => fold(e, "Max", &bottoms),
        "SUM" if coefficients.is_empty() => fold(e, "Add", &bottoms),
        "SUM" => {
            let pairs = bottoms.into_iter().zip(coefficients);
            let terms: Vec<Value> = pairs.map(|(value, by)| times(e, value, by)).collect();
            fold(e, "Add", &terms);
        }
        other => {
            return Err(Error::unsupported(format_args!("operation {other} is not supported")))
        }
    }
    Ok(())
}

#[allow(clippy::float_cmp)]
fn times(e: &mut Emit<'_>, value: Value, coefficient: f32) -> Value {
    if coefficient == 1.0 {
        return value;
    }
    let coefficient = e.float(coefficient);
    e.apply("Mul", [value, coefficient])
}

/// As in Caffe, applies `op` to the first two values, then to each result and the next value.
fn fold(e: &mut Emit<'_>, op: &'static str, values: &[Value]) {
    let (last, others) = values.split_last().expect("two bottoms or more");
    let first = others.iter().copied().reduce(|one, next| e.apply(op, [one, next]));
    e.node(op).inputs(first).input(*last).top(e, 0);
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn bottoms_have_one_shape() {
        check(
            "Eltwise",
            &[
                ("", &[&[2, 3], &[2, 3], &[2, 3]], Some((&[&[2, 3]], &[]))),
                ("coeff: 1 coeff: -1", &[&[2], &[2]], Some((&[&[2]], &[]))),
                ("coeff: 1", &[&[2], &[2]], None),
                ("", &[&[2, 3], &[2, 3, 1]], None),
            ],
        );
    }
}
