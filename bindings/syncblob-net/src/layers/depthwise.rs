//! Convolutions in which each channel is a separate group. The layers are from forks for MobileNet.
//! The rules follow the forks' sources and OpenCV's importer. Prototxts always set `group` for
//! `DepthwiseConvolution`, but not always for `ConvolutionDepthwise`.

use super::convolution::{convolve, shapes_of, Window};
use super::{Rule, Setup, Shapes, PLAIN};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static CONVOLUTION_DEPTHWISE: Rule = Rule {
    layer_type: "ConvolutionDepthwise",
    parameters: Some("convolution_param"),
    shapes,
    emit,
    ..PLAIN
};

pub(super) static DEPTHWISE_CONVOLUTION: Rule =
    Rule { layer_type: "DepthwiseConvolution", ..CONVOLUTION_DEPTHWISE };

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let (window, p, bottom) = (Window::new(setup)?, setup.parameters, &setup.bottoms[0]);
    if window.axis != 1 {
        return Err(Error::unsupported(format_args!(
            "channels are on axis {}, not 1",
            window.axis
        )));
    }
    let (channels, outputs, group) = (bottom[1], p.int("num_output"), p.int("group"));
    if outputs != channels || (group != 1 && group != channels) {
        let text = format_args!("{channels} channels, {outputs} outputs, {group} groups");
        return Err(Error::invalid(text));
    }
    let top = [&bottom[..2], &*window.all_positions(bottom)?].concat();
    shapes_of(setup, top, [&[channels, 1], &*window.kernel].concat())
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    let channels = e.bottom_shapes[0][1];
    convolve(e, channels)
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn each_channel_is_a_group() {
        let bottom: &[&[i64]] = &[&[2, 4, 7, 8]];
        for layer_type in ["ConvolutionDepthwise", "DepthwiseConvolution"] {
            check(
                layer_type,
                &[
                    (
                        "num_output: 4 kernel_size: 3 stride: 2 pad: 1",
                        bottom,
                        Some((&[&[2, 4, 4, 4]], &[&[4, 1, 3, 3], &[4]])),
                    ),
                    (
                        "num_output: 4 kernel_size: 3 group: 4 bias_term: false",
                        bottom,
                        Some((&[&[2, 4, 5, 6]], &[&[4, 1, 3, 3]])),
                    ),
                    ("num_output: 8 kernel_size: 3", bottom, None),
                    ("num_output: 4 kernel_size: 3 group: 2", bottom, None),
                    ("kernel_size: 3", bottom, None),
                ],
            );
        }
    }
}
