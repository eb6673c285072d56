//! Copies the values under each position of a sliding window to separate channels.

use super::convolution::Window;
use super::{constants, count, fixed, size, Rule, Setup, Shapes, PLAIN};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static IM2COL: Rule =
    Rule { layer_type: "Im2col", parameters: Some("convolution_param"), shapes, emit, ..PLAIN };

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let window = Window::new(setup)?;
    let bottom = &setup.bottoms[0];
    if window.kernel.is_empty() {
        return Err(Error::invalid("the layer's bottom has no axes after the channels"));
    }
    let kernel = i128::from(count(&window.kernel)?);
    let channels = size(i128::from(bottom[window.axis]) * kernel)?;
    let positions = window.all_positions(bottom)?;
    Ok(Shapes::top([&bottom[..window.axis], &[channels], &*positions].concat()))
}

/// Adds a convolution. Each kernel has a single 1, at the position of the value that it copies.
fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["engine", "force_nd_im2col", "num_output", "bias_term", "group"]);
    e.ignore(["weight_filler", "bias_filler"]);
    let window = Window::new(&e.setup())?;
    fixed(e, window.axis..e.bottom_shapes[0].len())?;
    let channels = e.bottom_shapes[0][window.axis];
    let kernel = count(&window.kernel)?;
    let number = constants(&[channels, kernel, kernel])?;
    let ones = (0..number).map(|at| if at / kernel % kernel == at % kernel { 1.0 } else { 0.0 });
    let dims = [&[channels * kernel, 1], &*window.kernel].concat();
    let weights = e.floats(&dims, &ones.collect::<Vec<f32>>());
    let after = window.pad_after(&e.bottom_shapes[0], &e.top_shapes[0])?;
    let node = window.node(e, "Conv", 0, &after).int("group", channels).input(weights);
    window.finish(e, node, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn channels_are_values_of_the_window() {
        check(
            "Im2col",
            &[
                ("kernel_size: 3", &[&[2, 3, 7, 8]], Some((&[&[2, 27, 5, 6]], &[]))),
                ("kernel_size: 2 stride: 2", &[&[2, 3, 8]], Some((&[&[2, 6, 4]], &[]))),
                ("kernel_size: 1", &[&[2, 3]], None),
                ("kernel_size: 65536", &[&[2, 3, 8, 8]], None),
            ],
        );
    }
}
