//! SSD's last layer. Decodes boxes, and removes a box that overlaps a better box of its class. Then
//! keeps the best boxes of each image. Each row of the top contains image, label, score, left, top,
//! right, bottom. As in Caffe, rows are sorted by image, then by label, then by decreasing score.

use super::{constants, legacy_dim, Rule, Setup, Shapes, PLAIN};
use crate::message::Message;
use crate::onnx::{DataType, Emit, Value};
use crate::{Error, Result};

pub(super) static DETECTION_OUTPUT: Rule = Rule {
    layer_type: "DetectionOutput",
    parameters: Some("detection_output_param"),
    bottoms: (3, 3),
    shapes,
    emit,
    full_precision: true,
    ..PLAIN
};

/// Returns the shape of a top with one row. Caffe, too, sets this shape before it counts the boxes.
fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let d = Detection::new(setup)?;
    let (locations, scores) = (setup.bottoms[0].as_slice(), setup.bottoms[1].as_slice());
    for (what, shape, each) in
        [("box", locations, 4 * d.location_classes()), ("score", scores, d.classes)]
    {
        if d.priors.checked_mul(each) != Some(legacy_dim(shape, 1)?) {
            let text =
                format_args!("{} priors of {each} {what} values do not make {shape:?}", d.priors);
            return Err(Error::invalid(text));
        }
    }
    constants(&[legacy_dim(locations, 0)?])?; // limits the size of the constant in `images`
    Ok(Shapes::top(vec![1, 1, 1, 7]))
}

struct Detection {
    priors: i64,
    classes: i64,
    shared: bool,
    /// The background class, if the net has such a class. Boxes of this class are not detected.
    background: Option<i64>,
    /// The maximum overlap of two boxes that are both kept. With 1, no box is suppressed.
    overlap: f32,
    threshold: f32,
    /// `top_k`: non-maximum suppression considers only this many boxes of each class, with the
    /// highest scores. `None`: all boxes.
    most_scores: Option<i64>,
    /// `keep_top_k`: keeps this many rows of each image, with the highest scores. `None`: all rows.
    most_rows: Option<i64>,
}

impl Detection {
    fn new(setup: &Setup<'_>) -> Result<Self> {
        let p = setup.parameters;
        let suppression = Suppression::new(p)?;
        let classes = p.int("num_classes");
        if !(1..1 << 20).contains(&classes) {
            return Err(Error::invalid(format_args!("num_classes is {classes}, out of range")));
        }
        let background = Some(p.int("background_label_id"));
        let threshold = p.has("confidence_threshold").then(|| p.float("confidence_threshold"));
        Ok(Self {
            priors: legacy_dim(&setup.bottoms[2], 2)? / 4,
            classes,
            shared: p.bool("share_location"),
            background: background.filter(|label| (0..classes).contains(label)),
            overlap: suppression.as_ref().map_or(1.0, |nms| nms.overlap),
            // Without parameters for suppression, Caffe keeps boxes of every score.
            threshold: suppression.as_ref().and(threshold).unwrap_or(-f32::MAX),
            most_scores: suppression.and_then(|nms| nms.most_scores),
            most_rows: most(p, "keep_top_k")?,
        })
    }

    fn location_classes(&self) -> i64 {
        if self.shared {
            1
        } else {
            self.classes
        }
    }

    /// Returns the numbers of all classes except the background.
    fn labels(&self) -> Vec<i64> {
        (0..self.classes).filter(|&label| Some(label) != self.background).collect()
    }

    fn num_labels(&self) -> i64 {
        self.classes - i64::from(self.background.is_some())
    }
}

/// The parameters of non-maximum suppression, which early nets set outside `nms_param`.
struct Suppression {
    overlap: f32,
    most_scores: Option<i64>,
}

impl Suppression {
    fn new(p: &Message) -> Result<Option<Self>> {
        let (nms, eta) = match p.message("nms_param") {
            Some(nms) => (nms, nms.float("eta")),
            None if p.has("nms_threshold") || p.has("top_k") => (p, 1.0),
            None => return Ok(None),
        };
        let overlap = nms.float("nms_threshold");
        if !(overlap >= 0.0 && eta > 0.0 && eta <= 1.0) {
            return Err(Error::invalid(format_args!("invalid nms_threshold {overlap}, eta {eta}")));
        }
        if eta < 1.0 && overlap > 0.5 {
            return Err(Error::unsupported("eta is below 1, so the threshold would vary by box"));
        }
        Ok(Some(Self { overlap: overlap.min(1.0), most_scores: most(nms, "top_k")? }))
    }
}

/// Reads a number of boxes. A missing or negative number means all boxes, and returns `None`.
fn most(p: &Message, name: &str) -> Result<Option<i64>> {
    match p.given_int(name).unwrap_or(-1) {
        0 => Err(Error::unsupported(format_args!("{name} is 0"))),
        number => Ok((number > 0).then_some(number)),
    }
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["save_output_param", "visualize", "visualize_threshold", "save_file"]);
    let d = Detection::new(&e.setup())?;
    let boxes = decode(e, &d)?;
    let scores = scores(e, &d);
    let selected = suppress(e, &d, boxes, scores);
    let flat = e.reshape(scores, &[-1]);
    let kept = match d.most_rows {
        Some(most) => best_of_image(e, &d, selected, flat, most),
        None => selected,
    };
    let rows = rows(e, &d, boxes, flat, kept);
    let fallback = fallback(e, kept);
    let all = e.node("Concat").inputs([rows, fallback]).int("axis", 0).value(e);
    let dims = e.ints(&[1, 1, -1, 7]);
    e.varies(0, 2);
    e.node("Reshape").inputs([all, dims]).top(e, 0);
    Ok(())
}

/// Applies an operator to the integers in `a` and to the constant `b`.
fn with_int(e: &mut Emit<'_>, op: &'static str, a: Value, b: i64) -> Value {
    let b = e.ints(&[b]);
    e.apply(op, [a, b])
}

/// Returns two of the last axis's four values: right and bottom if `second`, else left and top.
fn half(e: &mut Emit<'_>, value: Value, second: bool) -> Value {
    let first = if second { 2 } else { 0 };
    let (starts, ends, axes) = (e.ints(&[first]), e.ints(&[first + 2]), e.ints(&[-1]));
    e.apply("Slice", [value, starts, ends, axes])
}

/// Returns the boxes of all images. The shape is `[image, prior, 4]`, or `[image, label, prior, 4]`
/// if each class has separate boxes.
fn decode(e: &mut Emit<'_>, d: &Detection) -> Result<Value> {
    let middle = if d.shared { 1 } else { d.classes };
    let given = e.reshape(e.bottom(0), &[-1, d.priors, middle, 4]);
    let priors = e.reshape(e.bottom(2), &[2, d.priors, 1, 4]);
    let part = |e: &mut Emit<'_>, index| {
        let index = e.ints_of(&[], &[index]);
        e.node("Gather").inputs([priors, index]).int("axis", 0).value(e)
    };
    let (prior, variance) = (part(e, 0), part(e, 1));
    let scaled = match e.parameters.bool("variance_encoded_in_target") {
        true => given,
        false => e.apply("Mul", [variance, given]),
    };
    let boxes = match e.parameters.enumeration("code_type") {
        "CORNER" => e.apply("Add", [prior, scaled]),
        "CORNER_SIZE" => {
            let (low, high) = (half(e, prior, false), half(e, prior, true));
            let size = e.apply("Sub", [high, low]);
            let sizes = e.node("Concat").inputs([size, size]).int("axis", -1).value(e);
            let shift = e.apply("Mul", [scaled, sizes]);
            e.apply("Add", [prior, shift])
        }
        "CENTER_SIZE" => from_center(e, prior, scaled),
        other => return Err(Error::unsupported(format_args!("no support for code_type {other}"))),
    };
    Ok(match d.shared {
        true => e.reshape(boxes, &[-1, d.priors, 4]),
        false => {
            let boxes = e.node("Transpose").input(boxes).ints("perm", [0, 2, 1, 3]).value(e);
            of_labels(e, d, boxes)
        }
    })
}

fn from_center(e: &mut Emit<'_>, prior: Value, scaled: Value) -> Value {
    let (low, high) = (half(e, prior, false), half(e, prior, true));
    let (two_, size, sum) =
        (e.float(2.0), e.apply("Sub", [high, low]), e.apply("Add", [low, high]));
    let middle = e.apply("Div", [sum, two_]);
    let (shift, growth) = (half(e, scaled, false), half(e, scaled, true));
    let shift = e.apply("Mul", [shift, size]);
    let center = e.apply("Add", [shift, middle]);
    let growth = e.apply("Exp", [growth]);
    let extent = e.apply("Mul", [growth, size]);
    let reach = e.apply("Div", [extent, two_]);
    let (low, high) = (e.apply("Sub", [center, reach]), e.apply("Add", [center, reach]));
    e.node("Concat").inputs([low, high]).int("axis", -1).value(e)
}

/// Removes the background from axis 1, which is the axis of the classes.
fn of_labels(e: &mut Emit<'_>, d: &Detection, value: Value) -> Value {
    if d.num_labels() == d.classes {
        return value;
    }
    let labels = e.ints(&d.labels());
    e.node("Gather").inputs([value, labels]).int("axis", 1).value(e)
}

/// Returns the scores, with the shape `[image, label, prior]`.
fn scores(e: &mut Emit<'_>, d: &Detection) -> Value {
    let scores = e.reshape(e.bottom(1), &[-1, d.priors, d.classes]);
    let scores = e.node("Transpose").input(scores).ints("perm", [0, 2, 1]).value(e);
    of_labels(e, d, scores)
}

/// Returns the boxes that remain after non-maximum suppression, as indices into the scores of all
/// images, classes and priors.
fn suppress(e: &mut Emit<'_>, d: &Detection, boxes: Value, scores: Value) -> Value {
    let boxes = without_area_if_inverted(e, boxes);
    let scores = best_of_class(e, d, scores);
    // If each class has separate boxes, the operator receives each class as an image.
    let (boxes, scores, weights) = match d.shared {
        true => (boxes, scores, [d.num_labels() * d.priors, d.priors, 1]),
        false => (
            e.reshape(boxes, &[-1, d.priors, 4]),
            e.reshape(scores, &[-1, 1, d.priors]),
            [d.priors, 0, 1],
        ),
    };
    let most = e.ints(&[d.priors]);
    let (overlap, threshold) = (e.floats(&[1], &[d.overlap]), e.floats(&[1], &[d.threshold]));
    let selected = e.node("NonMaxSuppression").inputs([boxes, scores, most, overlap, threshold]);
    let selected = selected.value(e);
    let weights = e.ints(&weights);
    let parts = e.apply("Mul", [selected, weights]);
    let axes = e.ints(&[1]);
    e.node("ReduceSum").inputs([parts, axes]).int("keepdims", 0).value(e)
}

/// Replaces inverted boxes (right < left or bottom < top) by empty boxes. In Caffe an inverted box
/// overlaps no other box, but ONNX would swap the corners.
fn without_area_if_inverted(e: &mut Emit<'_>, boxes: Value) -> Value {
    if e.parameters.enumeration("code_type") == "CENTER_SIZE" {
        return boxes; // these boxes are never inverted
    }
    let (low, high) = (half(e, boxes, false), half(e, boxes, true));
    let size = e.apply("Sub", [high, low]);
    let least = e.node("ReduceMin").input(size).ints("axes", [-1]).value(e);
    let zero = e.float(0.0);
    let inverted = e.apply("Less", [least, zero]);
    e.apply("Where", [inverted, zero, boxes])
}

/// Keeps the `most_scores` highest scores of each class, and replaces all other scores by -inf.
fn best_of_class(e: &mut Emit<'_>, d: &Detection, scores: Value) -> Value {
    let Some(most) = d.most_scores.filter(|&most| most < d.priors) else { return scores };
    let most = e.ints(&[most]);
    let best = e.node("TopK").inputs([scores, most]).int("axis", 2).values(e, 2);
    let nothing = all_lowest(e, scores);
    let scattered = e.node("ScatterElements").inputs([nothing, best[1], best[0]]);
    scattered.int("axis", 2).value(e)
}

/// Makes a value with the shape of `like`. All elements are -inf.
fn all_lowest(e: &mut Emit<'_>, like: Value) -> Value {
    let shape = e.apply("Shape", [like]);
    let lowest = e.float(f32::NEG_INFINITY);
    e.apply("Expand", [lowest, shape])
}

/// Returns, for each image, the `most` boxes with the highest scores, sorted by label, then by
/// decreasing score.
fn best_of_image(e: &mut Emit<'_>, d: &Detection, kept: Value, scores: Value, most: i64) -> Value {
    let each = d.num_labels() * d.priors;
    let values = e.node("Gather").inputs([scores, kept]).int("axis", 0).value(e);
    let nothing = all_lowest(e, scores);
    let dense = e.node("ScatterElements").inputs([nothing, kept, values]).int("axis", 0).value(e);
    let dense = e.reshape(dense, &[-1, each]);
    let most = e.ints(&[most.min(each)]);
    let best = e.node("TopK").inputs([dense, most]).int("axis", 1).values(e, 2);
    let labels = with_int(e, "Div", best[1], d.priors);
    let order =
        e.node("TopK").inputs([labels, most]).int("axis", 1).int("largest", 0).values(e, 2)[1];
    let sorted = |e: &mut Emit<'_>, value| {
        e.node("GatherElements").inputs([value, order]).int("axis", 1).value(e)
    };
    let (values, indices) = (sorted(e, best[0]), sorted(e, best[1]));
    let image = images(e);
    let axes = e.ints(&[1]);
    let image = e.apply("Unsqueeze", [image, axes]);
    let first = with_int(e, "Mul", image, each);
    let indices = e.apply("Add", [indices, first]);
    let lowest = e.float(f32::NEG_INFINITY);
    let there = e.apply("Greater", [values, lowest]);
    let (there, indices) = (e.reshape(there, &[-1]), e.reshape(indices, &[-1]));
    let places = e.apply("NonZero", [there]); // OpenCV has no Compress
    let places = e.reshape(places, &[-1]);
    e.node("Gather").inputs([indices, places]).int("axis", 0).value(e)
}

/// Returns the numbers of the images in the batch: 0, 1, …
fn images(e: &mut Emit<'_>) -> Value {
    let locations = &e.bottom_shapes[0];
    if e.bottom_batch[0].is_none() {
        return e.ints(&(0..locations[0]).collect::<Vec<_>>());
    }
    let number = batch(e);
    let (zero, one) = (e.ints_of(&[], &[0]), e.ints_of(&[], &[1]));
    let axes = e.ints(&[0]);
    let number = e.apply("Squeeze", [number, axes]);
    e.apply("Range", [zero, number, one])
}

/// Returns the size of the batch, as a value with one axis of one element.
fn batch(e: &mut Emit<'_>) -> Value {
    e.node("Shape").input(e.bottom(0)).int("start", 0).int("end", 1).value(e)
}

fn rows(e: &mut Emit<'_>, d: &Detection, boxes: Value, scores: Value, kept: Value) -> Value {
    let image = with_int(e, "Div", kept, d.num_labels() * d.priors);
    let class = with_int(e, "Div", kept, d.priors);
    let class = with_int(e, "Mod", class, d.num_labels());
    let labels = e.ints(&d.labels());
    let label = e.node("Gather").inputs([labels, class]).int("axis", 0).value(e);
    let score = e.node("Gather").inputs([scores, kept]).int("axis", 0).value(e);
    let boxes = e.reshape(boxes, &[-1, 4]);
    let place = match d.shared {
        true => {
            let prior = with_int(e, "Mod", kept, d.priors);
            let first = with_int(e, "Mul", image, d.priors);
            e.apply("Add", [first, prior])
        }
        false => kept,
    };
    let corners = e.node("Gather").inputs([boxes, place]).int("axis", 0).value(e);
    let axes = e.ints(&[1]);
    let mut columns = Vec::new();
    for number in [image, label] {
        let number = e.cast(number, DataType::Float);
        columns.push(e.apply("Unsqueeze", [number, axes]));
    }
    columns.extend([e.apply("Unsqueeze", [score, axes]), corners]);
    e.node("Concat").inputs(columns).int("axis", 1).value(e)
}

/// If no box is kept, returns one row for each image: the image's number, then six times -1.
fn fallback(e: &mut Emit<'_>, kept: Value) -> Value {
    let number = images(e);
    let number = e.cast(number, DataType::Float);
    let axes = e.ints(&[1]);
    let column = e.apply("Unsqueeze", [number, axes]);
    let count = batch(e);
    let six = e.ints(&[6]);
    let dims = e.node("Concat").inputs([count, six]).int("axis", 0).value(e);
    let minus = e.float(-1.0);
    let others = e.apply("Expand", [minus, dims]);
    let rows = e.node("Concat").inputs([column, others]).int("axis", 1).value(e);
    let found = e.apply("Shape", [kept]);
    let zero = e.ints(&[0]);
    let none = e.apply("Equal", [found, zero]);
    let end = e.apply("Where", [none, count, zero]);
    e.apply("Slice", [rows, zero, end, zero])
}
