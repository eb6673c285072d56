//! Computes SSD's prior boxes: the network predicts boxes relative to prior boxes. Prior boxes
//! depend only on shapes and parameters, so the graph stores them as a constant. In TextBoxes, a
//! position may have several centres, whose offsets are in the fields that OpenCV calls `offset_h`
//! and `offset_w`.

use super::{constants, legacy_dim, Rule, Setup, Shapes, PLAIN};
use crate::message::{Message, Place};
use crate::onnx::Emit;
use crate::{Error, ErrorKind, Result};

pub(super) static PRIOR_BOX: Rule = Rule {
    layer_type: "PriorBox",
    parameters: Some("prior_box_param"),
    bottoms: (2, 2),
    shapes,
    emit,
    full_precision: true,
    ..PLAIN
};

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let (height, width) = extent(&setup.bottoms[0])?;
    let priors = priors_of(setup.parameters)?.len() * offsets(setup.parameters)?.len();
    let count = constants(&[height, width, priors as i64, 2, 4])?;
    Ok(Shapes::top(vec![1, 2, count / 2]))
}

/// Returns the height and the width of a blob.
fn extent(shape: &[i64]) -> Result<(i64, i64)> {
    Ok((legacy_dim(shape, 2)?, legacy_dim(shape, 3)?))
}

/// Returns the width and the height of each box at a position, in pixels of the image. Caffe
/// truncates the sizes in the parameters to integers.
fn priors_of(p: &Message) -> Result<Vec<(f32, f32)>> {
    let (least, most) = (p.floats("min_size"), p.floats("max_size"));
    if least.is_empty() || !least.iter().all(|size| *size > 0.0) {
        return Err(Error::invalid("the layer needs a min_size above 0"));
    }
    if !most.is_empty()
        && (most.len() != least.len() || most.iter().zip(&least).any(|(m, l)| m <= l))
    {
        return Err(Error::invalid("the layer needs for each min_size a max_size that is larger"));
    }
    let ratios = ratios(p)?;
    constants(&[least.len() as i64, ratios.len() as i64 + 2])?;
    let mut priors = Vec::new();
    for (index, least) in least.iter().map(|size| size.trunc()).enumerate() {
        priors.push((least, least));
        if let Some(most) = most.get(index) {
            let side = (least * most.trunc()).sqrt();
            priors.push((side, side));
        }
        let sides = ratios.iter().map(|ratio| (least * ratio.sqrt(), least / ratio.sqrt()));
        priors.extend(sides);
    }
    Ok(priors)
}

/// The maximum number of ratios. Finding repeated ratios takes quadratic time.
const MOST_RATIOS: usize = 1024;

/// Returns the distinct ratios of width to height, except 1.
fn ratios(p: &Message) -> Result<Vec<f32>> {
    let flip = p.bool("flip");
    let mut ratios = vec![1_f32];
    let given = p.floats("aspect_ratio");
    if given.len() > MOST_RATIOS {
        let text = format_args!("it has {} aspect_ratio, more than {MOST_RATIOS}", given.len());
        return Err(Error::new(ErrorKind::Limit, text));
    }
    for ratio in given {
        if ratio.is_nan() || ratio <= 0.0 {
            return Err(Error::invalid(format_args!("aspect_ratio is {ratio}")));
        }
        if ratios.iter().any(|known| (ratio - known).abs() < 1e-6) {
            continue;
        }
        ratios.push(ratio);
        if flip {
            ratios.push(1.0 / ratio);
        }
    }
    ratios.retain(|ratio| (ratio - 1.0).abs() >= 1e-6);
    Ok(ratios)
}

/// Returns the vertical and horizontal offsets of the centres at a position.
fn offsets(p: &Message) -> Result<Vec<(f32, f32)>> {
    let (down, across) = (p.floats("offset_h"), p.floats("offset_w"));
    let mut fields = p.all("offset_h").chain(p.all("offset_w"));
    if fields.any(|field| matches!(field.place(), Place::Byte(_))) {
        return Err(Error::unsupported(
            "fields 14 and 15 are offset_h and offset_w in models of some forks, but other sizes \
             in models of other forks: use a prototxt, which has the fields' names",
        ));
    }
    match (down.len(), across.len()) {
        (0, 0) => Ok(vec![(p.float("offset"), p.float("offset"))]),
        (h, w) if h == w && h > 2 => Err(Error::unsupported(
            "the layer has three or more offset_h and offset_w, whose meaning is unknown",
        )),
        (h, w) if h == w => Ok(down.into_iter().zip(across).collect()),
        _ => Err(Error::invalid("offset_h and offset_w must have equal numbers of values")),
    }
}

/// Reads the sizes for height and width from `both`, or from `h` and `w`. Unset sizes are 0.
fn pair(p: &Message, both: &str, h: &str, w: &str) -> Result<(f32, f32)> {
    let number = |name| match p.get(name) {
        Some(crate::Value::Int(number)) => Some(*number as f32),
        Some(crate::Value::Float(number)) => Some(*number as f32),
        _ => None,
    };
    let pair = match (number(both), number(h), number(w)) {
        (None, None, None) => return Ok((0.0, 0.0)),
        (Some(one), None, None) => (one, one),
        (None, Some(h), Some(w)) => (h, w),
        _ => return Err(Error::invalid(format_args!("set {both}, or {h} and {w}"))),
    };
    match pair.0 > 0.0 && pair.1 > 0.0 {
        true => Ok(pair),
        false => Err(Error::invalid(format_args!("{both} must be above 0"))),
    }
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    let p = e.parameters;
    let priors = priors_of(p)?;
    let (rows, columns) = extent(&e.bottom_shapes[0])?;
    let mut image = pair(p, "img_size", "img_h", "img_w")?;
    if image.0 == 0.0 {
        let (height, width) = extent(&e.bottom_shapes[1])?;
        image = (height as f32, width as f32);
    }
    let mut step = pair(p, "step", "step_h", "step_w")?;
    if step.0 == 0.0 {
        step = (image.0 / rows as f32, image.1 / columns as f32);
    }
    let (offsets, clip) = (offsets(p)?, p.bool("clip"));
    let mut values = Vec::new();
    for row in 0..rows {
        for column in 0..columns {
            let centres = offsets.iter();
            let centres = centres.map(|(down, across)| {
                ((column as f32 + across) * step.1, (row as f32 + down) * step.0)
            });
            for ((width, height), (x, y)) in
                priors.iter().flat_map(|prior| centres.clone().map(move |centre| (prior, centre)))
            {
                let ends = |center: f32, size: f32, image: f32| {
                    let (center, half) = (f64::from(center), f64::from(size) / 2.0);
                    [-half, half].map(|side| ((center + side) / f64::from(image)) as f32)
                };
                let ([left, right], [top, bottom]) =
                    (ends(x, *width, image.1), ends(y, *height, image.0));
                values.extend([left, top, right, bottom]);
            }
        }
    }
    if clip {
        values.iter_mut().for_each(|value| *value = value.clamp(0.0, 1.0));
    }
    let variance = variance(p)?;
    values.extend(std::iter::repeat_n(variance, values.len() / 4).flatten());
    let boxes = e.floats(&e.top_shapes[0].clone(), &values);
    e.node("Identity").input(boxes).top(e, 0);
    Ok(())
}

fn variance(p: &Message) -> Result<[f32; 4]> {
    let variance = match *p.floats("variance").as_slice() {
        [] => [0.1; 4],
        [one] => [one; 4],
        [x, y, width, height] => [x, y, width, height],
        _ => return Err(Error::invalid("variance must be given once or four times")),
    };
    match variance.iter().all(|value| *value > 0.0) {
        true => Ok(variance),
        false => Err(Error::invalid("variance must be above 0")),
    }
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::Case;
    use crate::ErrorKind;

    /// A few bytes of text may request gigabytes of boxes.
    #[test]
    fn many_boxes_are_refused() {
        let many = |name: &str, number| format!("{name}: 3 ").repeat(number);
        let rows: [(String, &[i64], _); 4] = [
            ("min_size: 4".into(), &[1, 3, 1000, 1000], None),
            ("min_size: 4".into(), &[1, 3, 2000, 2000], Some(ErrorKind::Limit)),
            (many("min_size", 3000), &[1, 3, 30, 30], Some(ErrorKind::Limit)),
            (many("aspect_ratio", 2000) + "min_size: 1", &[1, 3, 3, 3], Some(ErrorKind::Limit)),
        ];
        for (text, bottom, refused) in rows {
            let case =
                Case { layer_type: "PriorBox", text: &text, bottoms: &[bottom, bottom], tops: 1 };
            assert_eq!(case.shapes().err().map(|error| error.kind()), refused, "{bottom:?}");
        }
    }
}
