//! The transpose of a convolution, which makes a blob larger.

use super::convolution::{channels, shapes_of, weights, Window};
use super::{size, Rule, Setup, Shapes, ANY, IN_PLACE};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static DECONVOLUTION: Rule = Rule {
    layer_type: "Deconvolution",
    parameters: Some("convolution_param"),
    bottoms: (1, ANY),
    tops: (1, ANY),
    shapes,
    emit,
    ..IN_PLACE
};

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let window = Window::new(setup)?;
    let (inputs, outputs, group) = channels(setup, window.axis)?;
    let bottom = &setup.bottoms[0];
    let mut top = [&bottom[..window.axis], &[outputs]].concat();
    for (axis, &length) in bottom[window.axis + 1..].iter().enumerate() {
        let steps = i128::from(window.stride[axis]) * (i128::from(length) - 1);
        match steps + window.extent(axis) - 2 * i128::from(window.pad[axis]) {
            length if length < 1 => return Err(Error::invalid("its pads remove the whole output")),
            length => top.push(size(length)?),
        }
    }
    shapes_of(setup, top, [&[inputs, outputs / group], &*window.kernel].concat())
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    let window = Window::new(&e.setup())?;
    let weights = weights(e, &window)?;
    let group = e.parameters.int("group");
    for index in 0..e.top_shapes.len() {
        let node = window.node(e, "ConvTranspose", index, &window.pad).int("group", group);
        window.finish(e, node.inputs(weights.iter().copied()), index);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn windows_overlap() {
        let bottom: &[&[i64]] = &[&[2, 4, 3, 5]];
        check(
            "Deconvolution",
            &[
                (
                    "num_output: 6 kernel_size: 4 stride: 2 pad: 1",
                    bottom,
                    Some((&[&[2, 6, 6, 10]], &[&[4, 6, 4, 4], &[6]])),
                ),
                (
                    "num_output: 6 kernel_size: 2 dilation: 3 group: 2 bias_term: false",
                    bottom,
                    Some((&[&[2, 6, 6, 8]], &[&[4, 3, 2, 2]])),
                ),
                ("num_output: 6 kernel_size: 1 pad: 2", bottom, None),
                ("num_output: 6 kernel_size: 1 group: 3", bottom, None),
                ("num_output: 6 kernel_size: 2147483647 stride: 2147483647", bottom, None),
            ],
        );
    }
}
