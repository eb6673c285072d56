//! Computes the maximum or the mean of windows. Caffe rounds the number of windows up. If the image
//! is padded, Caffe removes a last window that begins after the image's end.

use super::{constants, fixed, size, Rule, Setup, Shapes, PLAIN};
use crate::message::{Message, Place};
use crate::onnx::{Emit, Node, Value};
use crate::{Error, Result};

pub(super) static POOLING: Rule = Rule {
    layer_type: "Pooling",
    parameters: Some("pooling_param"),
    tops: (1, 2),
    shapes,
    emit,
    ..PLAIN
};

/// The windows along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    pub size: i64,
    pub kernel: i64,
    pub stride: i64,
    pub pad: i64,
    /// The number of windows.
    pub number: i64,
    /// The size of the padding after the image's end.
    pad_after: i64,
}

impl Windows {
    /// Places the windows as Caffe does. Rounds the number of windows up if `up`, otherwise down.
    pub fn new(size: i64, kernel: i64, stride: i64, pad: i64, up: bool) -> Result<Self> {
        if kernel < 1 || stride < 1 || pad >= kernel || size < 1 {
            let text = format_args!("kernel {kernel}, stride {stride}, pad {pad}, side {size}");
            return Err(Error::invalid(text));
        }
        let number = number(size, kernel, stride, pad, up)?;
        let pad_after = ((number - 1) * stride + kernel - size - pad).max(0); // for the last window
        Ok(Self { size, kernel, stride, pad, number, pad_after })
    }

    /// If possible, sets the padding so that the number of windows is rounded up for images of any
    /// size. Runtimes such as OpenCV accept images whose size differs from the net's input.
    fn of_any_size(self) -> Self {
        match self.pad == 0 && self.stride <= self.kernel {
            true => Self { pad_after: self.stride - 1, ..self },
            false => self,
        }
    }

    /// Returns the distance from the beginning of the padding to the last window.
    fn last(&self) -> i64 {
        (self.number - 1) * self.stride
    }

    /// Returns for each window the length of its part inside the padded image. Caffe divides sums
    /// by this length.
    fn lengths(&self) -> impl Iterator<Item = i64> + '_ {
        let end = self.size + 2 * self.pad;
        (0..self.number).map(move |at| self.kernel.min(end - at * self.stride))
    }

    /// Returns whether a last window was removed, so that no window covers the end of the padded
    /// image.
    pub fn is_cut(&self) -> bool {
        self.last() + self.kernel < self.size + 2 * self.pad
    }

    /// Returns whether all windows are inside the image and its padding.
    fn whole(&self) -> bool {
        self.last() + self.kernel <= self.size + 2 * self.pad
    }
}

/// Computes the number of windows in 32-bit floats, as Caffe does.
#[allow(clippy::cast_precision_loss)]
fn number(size: i64, kernel: i64, stride: i64, pad: i64, up: bool) -> Result<i64> {
    let steps = (size + 2 * pad - kernel) as f32 / stride as f32;
    #[allow(clippy::cast_possible_truncation)] // less than 2^34
    let mut number = if up { steps.ceil() } else { steps.floor() } as i64 + 1;
    if pad > 0 && (number - 1) * stride >= size + pad {
        number -= 1;
    }
    if number < 1 {
        let text = format_args!("the kernel {kernel} exceeds the padded side {size} + 2 * {pad}");
        return Err(Error::invalid(text));
    }
    if (number - 1) * stride >= size + pad {
        return Err(Error::unsupported("a window is outside the image"));
    }
    super::size(number.into())
}

/// A pooling method and its windows. `windows` has an element for each axis: height and width, or
/// time, height and width.
pub(super) struct Pool {
    pub method: &'static str,
    pub windows: Vec<Windows>,
    global: bool,
}

impl Pool {
    fn new(setup: &Setup<'_>) -> Result<Self> {
        let p = setup.parameters;
        let sizes = plane(&setup.bottoms[0])?;
        let global = p.bool("global_pooling");
        let strides = pair(p, "stride", ("stride_h", "stride_w"), Some(1))?;
        let pads = pair(p, "pad", ("pad_h", "pad_w"), Some(0))?;
        let kernels = if global {
            let others = ["kernel_size", "kernel_h", "kernel_w"].map(|name| p.has(name));
            if others != [false; 3] || strides != [1, 1] || pads != [0, 0] {
                return Err(Error::invalid("global_pooling excludes a kernel, a pad and a stride"));
            }
            sizes
        } else {
            pair(p, "kernel_size", ("kernel_h", "kernel_w"), None)?
        };
        let lay = |up| -> Result<Vec<Windows>> {
            let axis = |at: usize| Windows::new(sizes[at], kernels[at], strides[at], pads[at], up);
            (0..2).map(axis).collect()
        };
        let windows = match rounding(p) {
            Rounding::Up => lay(true)?.into_iter().map(Windows::of_any_size).collect(),
            Rounding::Down => lay(false)?,
            Rounding::Unclear => either(lay(true), lay(false))?,
        };
        Ok(Self { method: p.enumeration("pool"), windows, global })
    }

    pub fn of(method: &'static str, windows: Vec<Windows>) -> Self {
        Self { method, windows, global: false }
    }

    /// Returns the shape of the top.
    pub fn shape(&self, bottom: &[i64]) -> Vec<i64> {
        [&bottom[..2], &self.numbers()].concat()
    }

    fn numbers(&self) -> Vec<i64> {
        self.windows.iter().map(|windows| windows.number).collect()
    }

    fn node(&self, op: &'static str, x: Value) -> Node {
        let w = self.windows.iter();
        let pads = w.clone().map(|axis| axis.pad).chain(w.clone().map(|axis| axis.pad_after));
        Node::new(op)
            .input(x)
            .ints("kernel_shape", w.clone().map(|axis| axis.kernel))
            .ints("strides", w.map(|axis| axis.stride))
            .ints("pads", pads)
    }

    /// Makes the node that computes the maxima of the windows.
    pub fn maximum(&self, x: Value) -> Node {
        match self.global {
            true => Node::new("GlobalMaxPool").input(x),
            false => self.node("MaxPool", x),
        }
    }

    /// Makes the node that computes the means of the windows. Without pads, ONNX and Caffe both
    /// divide by the number of values inside the image. With pads, a last window may extend beyond
    /// the padded image. The divisors of ONNX and Caffe differ for such a window, so each mean is
    /// multiplied by a correction.
    pub fn mean(&self, e: &mut Emit<'_>, x: Value) -> Result<Node> {
        if self.global {
            return Ok(Node::new("GlobalAveragePool").input(x));
        }
        let w = &self.windows;
        let mean = self.node("AveragePool", x);
        if w.iter().all(|axis| axis.pad == 0) {
            return Ok(mean.int("count_include_pad", 0));
        }
        let mean = mean.int("count_include_pad", 1);
        if w.iter().all(Windows::whole) {
            return Ok(mean);
        }
        let dims = self.numbers();
        constants(&dims)?;
        let (mean, factors) = (mean.value(e), e.floats(&dims, &factors(w)));
        Ok(e.node("Mul").input(mean).input(factors))
    }
}

/// Returns for each window its area divided by the area of its part inside the padded image.
#[allow(clippy::cast_precision_loss)]
fn factors(w: &[Windows]) -> Vec<f32> {
    let whole: i128 = w.iter().map(|axis| i128::from(axis.kernel)).product();
    let areas = w.iter().fold(vec![1], |areas: Vec<i128>, axis| {
        let with = |area| axis.lengths().map(move |length| area * i128::from(length));
        areas.into_iter().flat_map(with).collect()
    });
    areas.into_iter().map(|area| whole as f32 / area as f32).collect()
}

/// Returns the height and the width of a bottom with four axes.
pub(super) fn plane(bottom: &[i64]) -> Result<[i64; 2]> {
    match *bottom {
        [_, _, height, width] => Ok([height, width]),
        _ => Err(Error::invalid(format_args!("the bottom has {} axes, not 4", bottom.len()))),
    }
}

/// Reads the sizes for height and width, from the field `both` or from the fields `h` and `w`.
pub(super) fn pair(
    p: &Message,
    both: &str,
    (h, w): (&str, &str),
    default: Option<i64>,
) -> Result<[i64; 2]> {
    let values = match (p.given_int(both), p.given_int(h), p.given_int(w), default) {
        (Some(one), None, None, _) | (None, None, None, Some(one)) => [one, one],
        (None, Some(h), Some(w), _) => [h, w],
        _ => {
            let text = format_args!("the layer needs either {both}, or {h} and {w}");
            return Err(Error::invalid(text));
        }
    };
    let [h, w] = values.map(|value| size(value.into()));
    Ok([h?, w?])
}

enum Rounding {
    Up,
    Down,
    /// The number of the field in the bytes means `ceil_mode` in some forks and `round_mode` in
    /// others, with opposite values.
    Unclear,
}

fn rounding(p: &Message) -> Rounding {
    let (ceil, round) = (p.has("ceil_mode"), p.has("round_mode"));
    let mut given = p.all("ceil_mode").chain(p.all("round_mode"));
    if given.any(|field| matches!(field.place(), Place::Byte(_))) {
        return Rounding::Unclear;
    }
    let down = (ceil && !p.bool("ceil_mode")) || (round && p.enumeration("round_mode") == "FLOOR");
    if down {
        Rounding::Down
    } else {
        Rounding::Up
    }
}

/// Returns the windows if rounding up and rounding down give the same windows.
fn either(up: Result<Vec<Windows>>, down: Result<Vec<Windows>>) -> Result<Vec<Windows>> {
    match (up, down) {
        (Ok(up), Ok(down)) if up == down => Ok(up),
        _ => Err(Error::unsupported(
            "field 13 is ceil_mode in models of some forks, but round_mode, with opposite values, \
             in models of other forks: use a prototxt, which has the field's name",
        )),
    }
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let pool = Pool::new(setup)?;
    let number = setup.layer.tops.len();
    if number > 1 && pool.method != "MAX" {
        return Err(Error::invalid("the layer has a second top, which only the pool MAX can have"));
    }
    let top = pool.shape(&setup.bottoms[0]);
    Ok(Shapes { tops: vec![top; number], blobs: Vec::new() })
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["engine"]);
    fixed(e, 2..4)?;
    let pool = Pool::new(&e.setup())?;
    let x = e.bottom(0);
    match (pool.method, e.top_shapes.len()) {
        ("MAX", 1) => pool.maximum(x).top(e, 0),
        ("MAX", _) => maximum_and_mask(e, &pool),
        ("AVE", _) => pool.mean(e, x)?.top(e, 0),
        (other, _) => {
            return Err(Error::unsupported(format_args!("pool {other} is not supported")))
        }
    }
    Ok(())
}

/// Makes both tops. ONNX counts the index of a maximum from the start of the blob, Caffe from the
/// start of the plane.
fn maximum_and_mask(e: &mut Emit<'_>, pool: &Pool) {
    let plane = e.ints(&[pool.windows[0].size * pool.windows[1].size]);
    let places = pool.node("MaxPool", e.bottom(0)).top_and_value(e, 0);
    let places = e.apply("Mod", [places, plane]);
    e.node("CastLike").input(places).input(e.bottom(0)).top(e, 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::testing::check;
    use crate::testing::of_bytes;

    #[test]
    fn windows_are_rounded_up_and_begin_inside() {
        let bottom: &[&[i64]] = &[&[1, 2, 7, 8]];
        check(
            "Pooling",
            &[
                ("kernel_size: 3 stride: 2", bottom, Some((&[&[1, 2, 3, 4]], &[]))),
                ("kernel_size: 2 stride: 2 pad: 1", bottom, Some((&[&[1, 2, 4, 5]], &[]))),
                ("kernel_size: 2 stride: 3 pad: 1", bottom, Some((&[&[1, 2, 3, 3]], &[]))),
                ("kernel_h: 3 kernel_w: 9 stride: 2", bottom, Some((&[&[1, 2, 3, 1]], &[]))),
                ("kernel_size: 3 stride_h: 1 stride_w: 5", bottom, Some((&[&[1, 2, 5, 2]], &[]))),
                ("global_pooling: true pool: AVE", bottom, Some((&[&[1, 2, 1, 1]], &[]))),
                (
                    "kernel_size: 3 ceil_mode: false stride: 2",
                    bottom,
                    Some((&[&[1, 2, 3, 3]], &[])),
                ),
                (
                    "kernel_size: 3 round_mode: FLOOR stride: 2",
                    bottom,
                    Some((&[&[1, 2, 3, 3]], &[])),
                ),
                ("kernel_size: 7 kernel_h: 1", bottom, None),
                ("kernel_h: 1", bottom, None),
                ("kernel_size: 3 pad: 3", bottom, None),
                ("kernel_size: 3 stride: 0", bottom, None),
                ("kernel_size: 9", bottom, None),
                ("kernel_size: 3 global_pooling: true", bottom, None),
                ("stride: 2 global_pooling: true", bottom, None),
                ("kernel_size: 3", &[&[2, 7, 8]], None),
                ("kernel_size: 4294967295", bottom, None),
            ],
        );
        let mask = "kernel_size: 7";
        check("Pooling", &[(mask, bottom, Some((&[&[1, 2, 1, 2], &[1, 2, 1, 2]], &[])))]);
    }

    #[test]
    fn a_cut_window_has_its_own_length() {
        let windows = Windows::new(6, 3, 2, 1, true).unwrap();
        assert_eq!((windows.number, windows.pad_after, windows.whole()), (4, 2, false));
        assert_eq!(windows.lengths().collect::<Vec<_>>(), [3, 3, 3, 2]);
        let windows = Windows::new(5, 3, 2, 1, true).unwrap();
        assert_eq!((windows.number, windows.pad_after, windows.whole()), (3, 1, true));
    }

    /// ONNX rounds the number of windows down, so the padding must make up for Caffe's rounding up.
    #[test]
    fn padding_rounds_up_for_any_size() {
        for (kernel, stride) in [(1, 1), (2, 2), (3, 2), (3, 3), (5, 3)] {
            let padding =
                Windows::new(12, kernel, stride, 0, true).unwrap().of_any_size().pad_after;
            for size in kernel..40 {
                let wanted = Windows::new(size, kernel, stride, 0, true).unwrap().number;
                assert_eq!((size + padding - kernel) / stride + 1, wanted);
            }
        }
    }

    #[test]
    fn field_13_of_bytes_is_unclear() {
        for (bytes, unclear) in
            [(&b"\x68\x00"[..], true), (b"\x68\x01", true), (b"\x10\x03", false)]
        {
            let message = of_bytes("PoolingParameter", bytes);
            assert_eq!(matches!(rounding(&message), Rounding::Unclear), unclear, "{message}");
        }
    }

    #[test]
    fn a_window_without_values_is_refused() {
        let error = Windows::new(5, 1, 3, 0, true).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
    }
}
