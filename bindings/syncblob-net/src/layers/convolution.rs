//! Convolution of any number of axes, with groups and dilation.

use super::{Rule, Setup, Shapes};
use crate::message::Message;
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static CONVOLUTION: Rule = Rule {
    layer_type: "Convolution",
    parameters: Some("convolution_param"),
    bottoms: (1, super::ANY),
    tops: (1, super::ANY),
    shapes,
    emit,
};

/// The window over the spatial axes: those behind the axis of channels.
pub(super) struct Window {
    pub axis: usize,
    pub kernel: Vec<i64>,
    pub stride: Vec<i64>,
    pub pad: Vec<i64>,
    pub dilation: Vec<i64>,
}

impl Window {
    pub fn new(setup: &Setup<'_>) -> Result<Self> {
        let p = setup.parameters;
        let axis = setup.axis(p.int("axis"), 0)?;
        let axes = setup.bottoms[0].len() - axis - 1;
        let kernel = spatial(p, axes, "kernel_size", ("kernel_h", "kernel_w"), None)?;
        let stride = spatial(p, axes, "stride", ("stride_h", "stride_w"), Some(1))?;
        let pad = spatial(p, axes, "pad", ("pad_h", "pad_w"), Some(0))?;
        let dilation = spatial(p, axes, "dilation", ("", ""), Some(1))?;
        for (name, values, least) in
            [("kernel", &kernel, 1), ("stride", &stride, 1), ("dilation", &dilation, 1)]
        {
            if values.iter().any(|&value| value < least) {
                return Err(Error::invalid(format_args!("a {name} of 0")));
            }
        }
        Ok(Self { axis, kernel, stride, pad, dilation })
    }

    pub fn extent(&self, axis: usize) -> i64 {
        self.dilation[axis] * (self.kernel[axis] - 1) + 1
    }
}

/// One value an axis: the repeated field, given once for all or once an axis, or the pair of
/// fields for height and width.
fn spatial(
    p: &Message,
    axes: usize,
    name: &str,
    (h, w): (&str, &str),
    default: Option<i64>,
) -> Result<Vec<i64>> {
    let values = p.ints(name);
    if !h.is_empty() && (p.has(h) || p.has(w)) {
        if axes != 2 {
            return Err(Error::invalid(format_args!("{h} and {w} are for 2 axes, not {axes}")));
        }
        if !values.is_empty() {
            return Err(Error::invalid(format_args!("{name} beside {h} or {w}")));
        }
        return Ok(vec![p.int(h), p.int(w)]);
    }
    match (values.as_slice(), default) {
        ([], Some(default)) => Ok(vec![default; axes]),
        ([], None) => Err(Error::invalid(format_args!("{name} is missing"))),
        ([one], _) => Ok(vec![*one; axes]),
        (all, _) if all.len() == axes => Ok(values),
        (all, _) => Err(Error::invalid(format_args!("{name} {} times for {axes} axes", all.len()))),
    }
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let p = setup.parameters;
    let window = Window::new(setup)?;
    let (outputs, group) = (p.int("num_output"), p.int("group"));
    let channels = setup.bottoms[0][window.axis];
    if outputs < 1 || group < 1 || channels % group != 0 || outputs % group != 0 {
        let text = format_args!("{channels} channels, {outputs} outputs, {group} groups");
        return Err(Error::invalid(text));
    }
    let mut tops = Vec::new();
    for bottom in setup.bottoms {
        let mut top = bottom[..window.axis].to_vec();
        top.push(outputs);
        for axis in 0..window.kernel.len() {
            let size = bottom[window.axis + 1 + axis] + 2 * window.pad[axis];
            if size < window.extent(axis) {
                return Err(Error::invalid("the kernel is larger than the padded input"));
            }
            top.push((size - window.extent(axis)) / window.stride[axis] + 1);
        }
        tops.push(top);
    }
    let mut blobs = vec![[&[outputs, channels / group], &*window.kernel].concat()];
    if p.bool("bias_term") {
        blobs.push(vec![outputs]);
    }
    Ok(Shapes { tops, blobs })
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    for name in ["engine", "force_nd_im2col", "weight_filler", "bias_filler"] {
        e.parameters.ignore(name);
    }
    let window = Window::new(&e.setup())?;
    if window.axis != 1 {
        return Err(Error::unsupported(format_args!("channels on axis {}", window.axis)));
    }
    let group = e.parameters.int("group");
    let blobs = (0..e.blob_shapes.len()).map(|index| e.blob(index)).collect::<Result<Vec<_>>>()?;
    for index in 0..e.top_shapes.len() {
        e.node("Conv")
            .input(e.bottom(index))
            .inputs(blobs.iter().copied())
            .ints("kernel_shape", window.kernel.iter().copied())
            .ints("strides", window.stride.iter().copied())
            .ints("pads", [&*window.pad, &*window.pad].concat())
            .ints("dilations", window.dilation.iter().copied())
            .int("group", group)
            .top(e, index);
    }
    Ok(())
}
