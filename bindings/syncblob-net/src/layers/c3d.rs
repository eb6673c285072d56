//! Convolution and pooling of C3D, along time, height and width. The rules follow C3D's source. The
//! parameters are in fields with Caffe's names in C3D 1.0, and with other names in C3D 1.1.

use super::convolution::Window;
use super::pooling::{Pool, Windows};
use super::{count, fixed, size, Rule, Setup, Shapes, PLAIN};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static CONVOLUTION: Rule = Rule {
    layer_type: "Convolution3D",
    parameters: Some("convolution_param"),
    shapes: convolved,
    emit: convolve,
    fork_parameters: Some("convolution3d_param"),
    ..PLAIN
};

pub(super) static POOLING: Rule = Rule {
    layer_type: "Pooling3D",
    parameters: Some("pooling_param"),
    shapes: pooled,
    emit: pool,
    fork_parameters: Some("pooling3d_param"),
    ..PLAIN
};

/// Reads two sizes: one along time, and one along both height and width.
fn sizes(setup: &Setup<'_>, time: &str, plane: &str) -> Result<[i64; 3]> {
    let [time, plane] = [time, plane].map(|name| size(setup.parameters.int(name).into()));
    let plane = plane?;
    Ok([time?, plane, plane])
}

fn volume(setup: &Setup<'_>) -> Result<[i64; 3]> {
    match *setup.bottoms[0] {
        [_, _, length, height, width] => Ok([length, height, width]),
        ref bottom => Err(Error::invalid(format_args!("{} bottom axes, not 5", bottom.len()))),
    }
}

fn window(setup: &Setup<'_>) -> Result<Window> {
    volume(setup)?;
    let kernel = sizes(setup, "kernel_depth", "kernel_size")?.to_vec();
    let stride = sizes(setup, "temporal_stride", "stride")?.to_vec();
    if kernel.contains(&0) || stride.contains(&0) {
        return Err(Error::invalid("a kernel or a stride is 0"));
    }
    let pad = sizes(setup, "temporal_pad", "pad")?.to_vec();
    Ok(Window { axis: 1, kernel, stride, pad, dilation: vec![1; 3] })
}

fn convolved(setup: &Setup<'_>) -> Result<Shapes> {
    let (window, p, bottom) = (window(setup)?, setup.parameters, &setup.bottoms[0]);
    let (outputs, parts) = (size(p.int("num_output").into())?, p.int("filter_group"));
    if outputs < 1 || parts < 1 || outputs % parts != 0 {
        let text = format_args!("{outputs} outputs cannot be divided into {parts} groups");
        return Err(Error::invalid(text));
    }
    let weights = [&[outputs, bottom[1]], &*window.kernel].concat();
    count(&weights)?;
    let mut blobs = vec![weights];
    if p.bool("bias_term") {
        blobs.push(vec![1, 1, 1, 1, outputs]);
    }
    let top = [&[bottom[0], outputs], &*window.all_positions(bottom)?].concat();
    Ok(Shapes::top(top).with_blobs(blobs))
}

/// Adds the convolution. As in C3D, ignores `group`: every filter reads every channel.
fn convolve(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["weight_filler", "bias_filler", "group"]);
    fixed(e, 1..5)?;
    let window = window(&e.setup())?;
    let after = window.pad_after(&e.bottom_shapes[0], &e.top_shapes[0])?;
    let mut weights = vec![e.blob(0)?];
    if e.blob_shapes.len() > 1 {
        weights.push(e.blob_as(1, vec![e.top_shapes[0][1]])?);
    }
    let node = window.node(e, "Conv", 0, &after).inputs(weights);
    window.finish(e, node, 0);
    Ok(())
}

/// Returns the windows. Refuses a last window that begins after the image's end: C3D keeps such a
/// window if the axis is padded, but Caffe removes the window.
fn windows(setup: &Setup<'_>) -> Result<Pool> {
    let (p, volume) = (setup.parameters, volume(setup)?);
    let method = p.enumeration("pool");
    let kernels = sizes(setup, "kernel_depth", "kernel_size")?;
    let strides = sizes(setup, "temporal_stride", "stride")?;
    let pad = size(p.int("pad").into())?;
    if pad > 0 && method != "AVE" {
        return Err(Error::invalid("only the pool AVE supports a pad"));
    }
    let along = |axis: usize| {
        let pad = if axis == 0 { 0 } else { pad };
        let windows = Windows::new(volume[axis], kernels[axis], strides[axis], pad, true)?;
        match windows.is_cut() {
            false => Ok(windows),
            true => Err(Error::unsupported("the layer's last window begins after the image's end")),
        }
    };
    Ok(Pool::of(method, (0..3).map(along).collect::<Result<_>>()?))
}

fn pooled(setup: &Setup<'_>) -> Result<Shapes> {
    Ok(Shapes::top(windows(setup)?.shape(&setup.bottoms[0])))
}

fn pool(e: &mut Emit<'_>) -> Result<()> {
    fixed(e, 2..5)?;
    let (pool, x) = (windows(&e.setup())?, e.bottom(0));
    match pool.method {
        "MAX" => pool.maximum(x).top(e, 0),
        "AVE" => pool.mean(e, x)?.top(e, 0),
        other => return Err(Error::unsupported(format_args!("pool {other} is not supported"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;
    use crate::{Net, NetOptions, OnnxOptions};

    #[test]
    fn windows_have_a_depth() {
        let bottom: &[&[i64]] = &[&[2, 3, 8, 9, 10]];
        check(
            "Convolution3D",
            &[
                (
                    "num_output: 4 kernel_size: 3 kernel_depth: 2 stride: 2 pad: 1",
                    bottom,
                    Some((&[&[2, 4, 7, 5, 5]], &[&[4, 3, 2, 3, 3], &[1, 1, 1, 1, 4]])),
                ),
                (
                    "num_output: 4 kernel_size: 1 kernel_depth: 3 temporal_pad: 1 \
                     temporal_stride: 3 bias_term: false filter_group: 2",
                    bottom,
                    Some((&[&[2, 4, 3, 9, 10]], &[&[4, 3, 3, 1, 1]])),
                ),
                ("num_output: 4 kernel_size: 3", bottom, None),
                ("num_output: 4 kernel_size: 3 kernel_depth: 9", bottom, None),
                ("num_output: 4 kernel_size: 1 kernel_depth: 1 filter_group: 3", bottom, None),
                ("num_output: 4 kernel_size: 1 kernel_depth: 1", &[&[2, 3, 8, 9]], None),
            ],
        );
    }

    #[test]
    fn a_kernel_may_be_much_larger_than_its_bottom() {
        let text = "input: 'x' input_shape { dim: 1 dim: 1 dim: 4 dim: 1 dim: 1 }
            layer { name: 'p' type: 'Pooling3D' bottom: 'x' top: 'p' pooling_param { pool: AVE
            kernel_depth: 4 kernel_size: 2147483647 pad: 2147483645 stride: 2147483645 } }";
        let net = Net::from_prototxt(text.as_bytes(), &NetOptions::default()).unwrap();
        assert!(net.to_onnx(&OnnxOptions::default()).is_ok());
    }

    #[test]
    fn pooling_is_rounded_up_along_time_too() {
        let bottom: &[&[i64]] = &[&[2, 3, 8, 9, 10]];
        check(
            "Pooling3D",
            &[
                (
                    "kernel_size: 2 kernel_depth: 3 stride: 2 temporal_stride: 2",
                    bottom,
                    Some((&[&[2, 3, 4, 5, 5]], &[])),
                ),
                (
                    "pool: AVE kernel_size: 3 kernel_depth: 1 stride: 2 pad: 1",
                    bottom,
                    Some((&[&[2, 3, 8, 5, 6]], &[])),
                ),
                ("kernel_size: 3 kernel_depth: 1 pad: 1", bottom, None),
                ("kernel_size: 3", bottom, None),
                ("kernel_size: 1 kernel_depth: 1", &[&[2, 3, 8, 9]], None),
            ],
        );
    }
}
