//! Convolution over any number of axes, with groups and dilation.

use super::{count, fixed, size, Rule, Setup, Shapes, ANY, IN_PLACE};
use crate::message::{Message, Place};
use crate::net::Shape;
use crate::onnx::{Emit, Node, Value};
use crate::{Error, Result};

pub(super) static CONVOLUTION: Rule = Rule {
    layer_type: "Convolution",
    parameters: Some("convolution_param"),
    bottoms: (1, ANY),
    tops: (1, ANY),
    shapes,
    emit,
    ..IN_PLACE
};

/// A window over the spatial axes, which are the axes after the channels.
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
        let axis = setup.own_axis()?;
        let axes = setup.bottoms[0].len() - axis - 1;
        let kernel = spatial(p, axes, "kernel_size", ("kernel_h", "kernel_w"), None)?;
        let stride = spatial(p, axes, "stride", ("stride_h", "stride_w"), Some(1))?;
        let pad = spatial(p, axes, "pad", ("pad_h", "pad_w"), Some(0))?;
        let dilation = spatial(p, axes, "dilation", ("", ""), Some(1))?;
        for (name, values) in [("kernel", &kernel), ("stride", &stride), ("dilation", &dilation)] {
            if values.contains(&0) {
                return Err(Error::invalid(format_args!("a {name} is 0")));
            }
        }
        Ok(Self { axis, kernel, stride, pad, dilation })
    }

    /// Returns whether each position of the top depends only on the same position of the bottom.
    fn is_point(&self) -> bool {
        self.kernel.iter().chain(&self.stride).all(|&n| n == 1) && self.pad.iter().all(|&n| n == 0)
    }

    /// Returns the length of the dilated kernel along a spatial axis.
    pub fn extent(&self, axis: usize) -> i128 {
        i128::from(self.dilation[axis]) * i128::from(self.kernel[axis] - 1) + 1
    }

    /// Returns how many positions the kernel has along a spatial axis. The division rounds toward
    /// 0, as in Caffe. A kernel that is slightly larger than the padded input therefore has one
    /// position.
    pub fn positions(&self, axis: usize, length: i64) -> Result<i64> {
        let padded = i128::from(length) + 2 * i128::from(self.pad[axis]);
        match (padded - self.extent(axis)) / i128::from(self.stride[axis]) + 1 {
            number if number < 1 => {
                Err(Error::invalid("the kernel is larger than the padded input"))
            }
            number => size(number),
        }
    }

    /// Returns the number of positions along each spatial axis of a bottom.
    pub fn all_positions(&self, bottom: &[i64]) -> Result<Shape> {
        let lengths = bottom[self.axis + 1..].iter().enumerate();
        lengths.map(|(axis, &length)| self.positions(axis, length)).collect()
    }

    /// Makes the node for a bottom. Reshapes the bottom if necessary, because ONNX needs one axis
    /// before the channels and at least one spatial axis.
    pub fn node(&self, e: &mut Emit<'_>, op: &'static str, bottom: usize, after: &[i64]) -> Node {
        let x = self.batched(e, bottom);
        let unit =
            |values: &[i64], one| if values.is_empty() { vec![one] } else { values.to_vec() };
        let mut pads = [unit(&self.pad, 0), unit(after, 0)].concat();
        let x = match op == "Conv" && self.kernel.iter().all(|&size| size == 1) {
            true => padded(e, x, &mut pads),
            false => x,
        };
        e.node(op)
            .input(x)
            .ints("kernel_shape", unit(&self.kernel, 1))
            .ints("strides", unit(&self.stride, 1))
            .ints("pads", pads)
            .ints("dilations", unit(&self.dilation, 1))
    }

    fn batched(&self, e: &mut Emit<'_>, bottom: usize) -> Value {
        if self.is_plain() {
            return e.bottom(bottom);
        }
        let mut dims = [&[-1], &e.bottom_shapes[bottom][self.axis..]].concat();
        dims.resize(dims.len().max(3), 1);
        e.reshape(e.bottom(bottom), &dims)
    }

    /// Returns whether ONNX supports the axes: a batch, channels, and one or more spatial axes.
    fn is_plain(&self) -> bool {
        self.axis == 1 && !self.kernel.is_empty()
    }

    /// Adds the node. The node's output, reshaped if necessary, becomes a top.
    pub fn finish(&self, e: &mut Emit<'_>, node: Node, top: usize) {
        if self.is_plain() {
            node.top(e, top);
        } else {
            let value = node.value(e);
            e.reshape_to_top(value, top);
        }
    }

    /// Returns the padding that each spatial axis needs at its end to cover all kernel positions.
    pub fn pad_after(&self, bottom: &[i64], top: &[i64]) -> Result<Vec<i64>> {
        let pads = (0..self.kernel.len()).map(|axis| {
            let [length, positions] =
                [bottom, top].map(|shape| i128::from(shape[self.axis + 1 + axis]));
            let end = (positions - 1) * i128::from(self.stride[axis]) + self.extent(axis);
            size((end - length - i128::from(self.pad[axis])).max(self.pad[axis].into()))
        });
        pads.collect()
    }
}

/// Moves the pads into a separate node. OpenCV 5 ignores the pads of a convolution whose kernel has
/// one element.
fn padded(e: &mut Emit<'_>, x: Value, pads: &mut [i64]) -> Value {
    if pads.iter().all(|&pad| pad == 0) {
        return x;
    }
    let (before, after) = pads.split_at(pads.len() / 2);
    let all = e.ints(&[&[0, 0], before, &[0, 0], after].concat());
    pads.fill(0);
    e.node("Pad").inputs([x, all]).value(e)
}

/// Returns a parameter's value for each axis. The repeated field `name` contains a value for all
/// axes or a value for each axis. Alternatively, the fields `h` and `w` contain the values.
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
            return Err(Error::invalid(format_args!("{h} and {w} need 2 axes, not {axes}")));
        }
        if !values.is_empty() {
            return Err(Error::invalid(format_args!("both {name} and {h} or {w} are set")));
        }
        return Ok(vec![size(p.int(h).into())?, size(p.int(w).into())?]);
    }
    let values = match (values.as_slice(), default) {
        ([], Some(default)) => vec![default; axes],
        ([], None) if axes == 0 => Vec::new(),
        ([], None) => return Err(Error::invalid(format_args!("{name} is missing"))),
        ([one], _) => vec![*one; axes],
        (all, _) if all.len() == axes => values,
        (all, _) => {
            let text = format_args!("{name} has {} values for {axes} axes", all.len());
            return Err(Error::invalid(text));
        }
    };
    values.into_iter().map(|value| size(value.into())).collect()
}

/// Returns the numbers of input channels, output channels and groups.
pub(super) fn channels(setup: &Setup<'_>, axis: usize) -> Result<(i64, i64, i64)> {
    let p = setup.parameters;
    let (inputs, outputs) = (setup.bottoms[0][axis], size(p.int("num_output").into())?);
    let group = p.int("group");
    if outputs < 1 || group < 1 || inputs % group != 0 || outputs % group != 0 {
        let text = format_args!("{inputs} channels, {outputs} outputs, {group} groups");
        return Err(Error::invalid(text));
    }
    Ok((inputs, outputs, group))
}

/// Returns the shapes of the tops and of the weights. All bottoms share the weights. Refuses
/// bottoms of different shapes. There must be as many bottoms as tops.
pub(super) fn shapes_of(setup: &Setup<'_>, top: Shape, weights: Shape) -> Result<Shapes> {
    let (bottoms, tops) = (setup.bottoms, setup.layer.tops.len());
    if bottoms.len() != tops || bottoms.iter().any(|bottom| *bottom != bottoms[0]) {
        let text = format_args!("bottoms {bottoms:?} must be equal, one for each of {tops} tops");
        return Err(Error::invalid(text));
    }
    count(&weights)?;
    let mut blobs = vec![weights];
    if setup.parameters.bool("bias_term") {
        blobs.push(vec![setup.parameters.int("num_output")]);
    }
    Ok(Shapes { tops: vec![top; tops], blobs })
}

/// Returns the weights as values of the graph. Marks as read the parameters that have no effect.
pub(super) fn weights(e: &mut Emit<'_>, window: &Window) -> Result<Vec<Value>> {
    e.ignore(["engine", "force_nd_im2col", "weight_filler", "bias_filler"]);
    e.ignore(["cudnn_convolution_algo_seeker"]);
    refuse_unclear(e.parameters)?;
    if window.is_point() {
        e.layer.refuse_in_place()?; // with a larger window, Caffe reads a copy
    }
    fixed(e, window.axis..e.bottom_shapes[0].len())?;
    let mut dims = e.blob_shapes[0].clone();
    dims.resize(dims.len().max(3), 1);
    let mut values = vec![e.blob_as(0, dims)?];
    if e.blob_shapes.len() > 1 {
        values.push(e.blob(1)?);
    }
    Ok(values)
}

/// Refuses fields of a binary message whose numbers have different meanings in Caffe and its forks.
fn refuse_unclear(p: &Message) -> Result<()> {
    let from_bytes = |name| p.all(name).any(|field| matches!(field.place(), Place::Byte(_)));
    let other = match (p.int("axis"), p.bool("relu")) {
        (_, true) if from_bytes("relu") => {
            "field 19, which is relu in models of some forks, but \
            the choice of an algorithm in models of other forks"
        }
        (_, true) => "relu is set: only a separate ReLU layer is supported",
        (0 | 2.., _) if from_bytes("axis") => {
            "field 16, which is axis in models of Caffe and \
            dilation in models of some forks: use a prototxt, which has the name"
        }
        _ => return Ok(()),
    };
    Err(Error::unsupported(other))
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let window = Window::new(setup)?;
    let (inputs, outputs, group) = channels(setup, window.axis)?;
    let bottom = &setup.bottoms[0];
    let top = [&bottom[..window.axis], &[outputs], &*window.all_positions(bottom)?].concat();
    shapes_of(setup, top, [&[outputs, inputs / group], &*window.kernel].concat())
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    convolve(e, e.parameters.int("group"))
}

/// Adds the nodes of a convolution with groups of channels.
pub(super) fn convolve(e: &mut Emit<'_>, group: i64) -> Result<()> {
    let window = Window::new(&e.setup())?;
    let weights = weights(e, &window)?;
    let after = window.pad_after(&e.bottom_shapes[0], &e.top_shapes[0])?;
    for index in 0..e.top_shapes.len() {
        let node = window.node(e, "Conv", index, &after).int("group", group);
        window.finish(e, node.inputs(weights.iter().copied()), index);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::refuse_unclear;
    use crate::layers::testing::check;
    use crate::testing::of_bytes;

    #[test]
    fn windows_have_any_number_of_axes() {
        check(
            "Convolution",
            &[
                (
                    "num_output: 4 kernel_size: 3",
                    &[&[2, 3, 7, 8]],
                    Some((&[&[2, 4, 5, 6]], &[&[4, 3, 3, 3], &[4]])),
                ),
                (
                    "num_output: 6 group: 3 kernel_h: 3 kernel_w: 1 pad_h: 1 pad_w: 0 bias_term: false",
                    &[&[2, 3, 7, 8]],
                    Some((&[&[2, 6, 7, 8]], &[&[6, 1, 3, 1]])),
                ),
                (
                    "num_output: 4 kernel_size: 3 stride: 2 dilation: 2",
                    &[&[2, 3, 7]],
                    Some((&[&[2, 4, 2]], &[&[4, 3, 3], &[4]])),
                ),
                (
                    "num_output: 4 kernel_size: 1 kernel_size: 2 kernel_size: 3",
                    &[&[2, 3, 7, 7, 7]],
                    Some((&[&[2, 4, 7, 6, 5]], &[&[4, 3, 1, 2, 3], &[4]])),
                ),
                (
                    "num_output: 4 kernel_size: 1 axis: -1",
                    &[&[2, 3]],
                    Some((&[&[2, 4]], &[&[4, 3], &[4]])),
                ),
                (
                    "num_output: 4 kernel_size: 1 axis: 2",
                    &[&[2, 3, 5, 7]],
                    Some((&[&[2, 3, 4, 7]], &[&[4, 5, 1], &[4]])),
                ),
                (
                    "num_output: 1 kernel_size: 4 stride: 2 bias_term: false",
                    &[&[1, 1, 3, 3], &[1, 1, 3, 3]],
                    Some((&[&[1, 1, 1, 1], &[1, 1, 1, 1]], &[&[1, 1, 4, 4]])),
                ),
            ],
        );
    }

    #[test]
    fn fields_that_differ_between_forks_are_refused() {
        let rows: &[(&[u8], bool)] = &[
            (b"\x80\x01\x01", true),
            (b"\x80\x01\x02", false),
            (b"\x98\x01\x00", true),
            (b"\x98\x01\x01", false),
        ];
        for (bytes, fine) in rows {
            let message = of_bytes("ConvolutionParameter", bytes);
            assert_eq!(refuse_unclear(&message).is_ok(), *fine, "{message}");
        }
    }

    #[test]
    fn wrong_windows_are_refused() {
        let bottom: &[&[i64]] = &[&[2, 3, 7, 8]];
        let rows = [
            "num_output: 4",
            "kernel_size: 3",
            "num_output: 4 kernel_size: 0",
            "num_output: 4 kernel_size: 3 stride: 0",
            "num_output: 4 kernel_size: 3 stride_h: 2",
            "num_output: 4 kernel_size: 3 kernel_h: 3",
            "num_output: 4 kernel_h: 3",
            "num_output: 4 kernel_size: 3 pad: 1 pad: 1 pad: 1",
            "num_output: 4 kernel_size: 8",
            "num_output: 4 kernel_size: 3 group: 3",
            "num_output: 4 kernel_size: 3 group: 0",
            "num_output: 4 kernel_size: 3 axis: 4",
            "num_output: 4 kernel_size: 4294967295",
            "num_output: 4 kernel_size: 2147483647 dilation: 2147483647 pad: 2147483647",
        ];
        check("Convolution", &rows.map(|text| (text, bottom, None)));
        check("Convolution", &[("num_output: 1 kernel_size: 1", &[&[1, 1, 3], &[1, 1, 4]], None)]);
    }
}
