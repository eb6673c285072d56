//! Outputs weights as a blob.

use super::{size, Rule, Setup, Shapes, PLAIN};
use crate::net::Shape;
use crate::onnx::Emit;
use crate::Result;

pub(super) static PARAMETER: Rule = Rule {
    layer_type: "Parameter",
    parameters: Some("parameter_param"),
    bottoms: (0, 0),
    shapes,
    emit,
    ..PLAIN
};

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let dims = setup.parameters.message("shape").map_or(Vec::new(), |shape| shape.ints("dim"));
    let shape = dims.into_iter().map(|dim| size(dim.into())).collect::<Result<Shape>>()?;
    Ok(Shapes::top(shape.clone()).with_blobs(vec![shape]))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    let blob = e.blob(0)?;
    e.node("Identity").input(blob).top(e, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn the_shape_is_given() {
        check(
            "Parameter",
            &[
                ("shape { dim: 2 dim: 3 }", &[], Some((&[&[2, 3]], &[&[2, 3]]))),
                ("", &[], Some((&[&[]], &[&[]]))),
                ("shape { dim: 3000000000 }", &[], None),
                ("shape { dim: -1 }", &[], None),
            ],
        );
    }
}
