//! Selects rows of a weight matrix, by indices in the bottom.

use super::{size, Rule, Setup, Shapes, PLAIN};
use crate::onnx::{DataType, Emit};
use crate::{Error, Result};

pub(super) static EMBED: Rule = Rule {
    layer_type: "Embed",
    parameters: Some("embed_param"),
    shapes,
    emit,
    full_precision: true,
    ..PLAIN
};

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let p = setup.parameters;
    let (inputs, outputs) = (size(p.int("input_dim").into())?, size(p.int("num_output").into())?);
    if inputs == 0 || outputs == 0 {
        return Err(Error::invalid(format_args!(
            "input_dim {inputs} or num_output {outputs} is 0"
        )));
    }
    let mut blobs = vec![vec![inputs, outputs]];
    if p.bool("bias_term") {
        blobs.push(vec![outputs]);
    }
    Ok(Shapes::top([&*setup.bottoms[0], &[outputs]].concat()).with_blobs(blobs))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["weight_filler", "bias_filler"]);
    let blobs = e.blobs()?;
    let rows = e.cast(e.bottom(0), DataType::Int64);
    let gather = e.node("Gather").int("axis", 0).input(blobs[0]).input(rows);
    match blobs.get(1) {
        None => gather.top(e, 0),
        Some(bias) => {
            let values = gather.value(e);
            e.node("Add").input(values).input(*bias).top(e, 0);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn each_index_selects_a_row() {
        check(
            "Embed",
            &[
                ("num_output: 5 input_dim: 9", &[&[2, 3]], Some((&[&[2, 3, 5]], &[&[9, 5], &[5]]))),
                (
                    "num_output: 5 input_dim: 9 bias_term: false",
                    &[&[]],
                    Some((&[&[5]], &[&[9, 5]])),
                ),
                ("num_output: 5", &[&[2]], None),
            ],
        );
    }
}
