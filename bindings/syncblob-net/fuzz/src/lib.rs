//! Reads arbitrary bytes as a net, and checks the crate's promises.

mod memory;
mod mutate;
mod onnx;

use std::sync::{Arc, Once};

use syncblob::{Blob, Format, Model, Payload};
use syncblob_net::{
    BlobShapes, Error, Limits, Message, Net, NetOptions, OnnxOptions, Place, Upgraded, Value,
};

pub use memory::Counting;
pub use mutate::{mutate, Random};

/// The maximum memory: a number of bytes for each byte of input, plus a constant.
const READING: (usize, usize) = (512, 64 << 10);
const CONVERTING: (usize, usize) = (8 << 10, 256 << 20);
const MOST_WEIGHTS: i64 = 1 << 14;

pub fn prototxt(text: &[u8]) {
    read_schema();
    let options = options(text);
    let read = within(READING, text, "reading", || Upgraded::from_prototxt(text, &options.limits));
    let upgraded = match read {
        Ok(upgraded) => upgraded,
        Err(error) => return check_error(&error, |place| lies_in_text(place, text)),
    };
    check_places(&upgraded.net, &|place| lies_in_text(place, text));
    reads_back(&upgraded.net);
    match Net::from_prototxt(text, &options) {
        Ok(net) => convert(net, text),
        Err(error) => check_error(&error, |place| lies_in_text(place, text)),
    }
}

pub fn net_of_model(bytes: &[u8]) {
    read_schema();
    let Ok(model) = Model::from_bytes(bytes.to_vec()) else { return };
    let (model, options) = (Arc::new(model), options(bytes));
    let lies_in = |place| match place {
        Place::Made => true,
        Place::Byte(offset) => offset as usize <= bytes.len(),
        _ => false,
    };
    let read = within(READING, bytes, "reading", || Upgraded::from_model(&model, &options.limits));
    let upgraded = match read {
        Ok(upgraded) => upgraded,
        Err(error) => return check_error(&error, lies_in),
    };
    check_places(&upgraded.net, &lies_in);
    reads_back(&upgraded.net);
    match Net::from_model(model, &options) {
        Ok(net) => convert(net, bytes),
        Err(error) => check_error(&error, lies_in),
    }
}

/// Reads the crate's schema before the measurement of memory.
fn read_schema() {
    static READ: Once = Once::new();
    READ.call_once(|| drop(Upgraded::from_prototxt(b"", &Limits::default())));
}

fn choice(input: &[u8]) -> u32 {
    input.iter().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()))
}

fn options(input: &[u8]) -> NetOptions {
    let mut options = NetOptions::default();
    if choice(input) % 4 == 0 {
        options.inputs = vec![("data".into(), vec![1, 3, 8, 8])];
    }
    options
}

fn within<T>(bound: (usize, usize), input: &[u8], what: &str, call: impl FnOnce() -> T) -> T {
    let (result, took) = memory::peak_of(call);
    let most = bound.0 * input.len() + bound.1;
    assert!(took <= most, "broken promise: {what} took {took} bytes, more than {most}");
    result
}

fn check_error(error: &Error, lies_in: impl Fn(Place) -> bool) {
    let text = error.to_string();
    assert!(!text.is_empty());
    assert!(place_of(&text).is_none_or(lies_in), "broken promise: no such position: {text}");
}

fn place_of(text: &str) -> Option<Place> {
    let number = |text: &str| text.parse::<u32>().ok();
    let (place, _) = text.split_once(": ")?;
    if let Some(offset) = place.strip_prefix("byte ") {
        return Some(Place::Byte(number(offset)?));
    }
    let (line, column) = place.strip_prefix("line ")?.split_once(", column ")?;
    Some(Place::Text { line: number(line)?, column: number(column)? })
}

fn lies_in_text(place: Place, text: &[u8]) -> bool {
    let Place::Text { line, column } = place else { return place == Place::Made };
    let line = text.split(|&byte| byte == b'\n').nth((line as usize).wrapping_sub(1));
    line.is_some_and(|line| (1..=line.len() + 1).contains(&(column as usize)))
}

fn check_places(message: &Message, lies_in: &impl Fn(Place) -> bool) {
    for field in message.fields() {
        assert!(lies_in(field.place()), "broken promise: {} is {}", field.name(), field.place());
        if let Value::Message(inner) = field.value() {
            check_places(inner, lies_in);
        }
    }
}

fn reads_back(net: &Message) {
    let text = net.to_string();
    let again = match Upgraded::from_prototxt(text.as_bytes(), &Limits::default()) {
        Ok(again) => again,
        Err(error) => panic!("broken promise: the printed net is refused: {error}\n{text}"),
    };
    assert!(again.notes.is_empty(), "broken promise: {:?}\n{text}", again.notes);
    // A field without a name is printed as a comment, because a prototxt cannot contain the field.
    let is_field = |line: &&str| !line.trim_start().starts_with("# field ");
    let (again, fields) = (again.net.to_string(), text.lines().filter(is_field));
    assert!(
        again.lines().filter(is_field).eq(fields),
        "broken promise:\n{text}\nreads as\n{again}"
    );
}

fn convert(net: Net, input: &[u8]) {
    let shapes = within(CONVERTING, input, "inferring shapes", || net.shapes());
    check_shapes(&shapes);
    let choice = choice(input) / 4;
    let net = match choice % 4 {
        0 => net,
        _ => match made_up_weights(&net, &shapes, MOST_WEIGHTS) {
            Some(model) => net.with_weights(model).expect("a model in memory"),
            None => net,
        },
    };
    let mut options = OnnxOptions::default();
    options.half = choice / 4 % 4 == 0;
    options.batch = (choice / 16 % 4 == 0).then(|| "N".into());
    options.custom = choice / 64 % 4 == 0;
    let file = within(CONVERTING, input, "converting", || {
        net.to_onnx(&options).and_then(|onnx| onnx.to_bytes())
    });
    match file {
        Ok(file) => onnx::check(&file, &shapes.known),
        Err(error) => check_error(&error, |_| true),
    }
}

fn check_shapes(shapes: &BlobShapes) {
    for (name, shape) in &shapes.known {
        let count = shape.iter().try_fold(1_i64, |count, &dim| {
            assert!(dim >= 0, "broken promise: {name} is {shape:?}");
            count.checked_mul(dim)
        });
        let fits = shape.contains(&0) || count.is_some_and(|count| i32::try_from(count).is_ok());
        assert!(fits && shape.len() <= 32, "broken promise: {name} is {shape:?}");
    }
    assert!(shapes.problems.iter().all(|problem| !problem.reason.is_empty()));
}

/// Returns `None` if the layers' blobs have more than `most` elements.
pub fn made_up_weights(net: &Net, shapes: &BlobShapes, most: i64) -> Option<Arc<Model>> {
    let mut left = most;
    let mut model = Model::create(Format::Caffemodel).expect("a model");
    for (layer, blobs) in net.layers().iter().zip(&shapes.weights) {
        let Ok(index) = model.add_layer(layer.name(), layer.layer_type()) else { return None };
        for blob in blobs {
            left -= blob.iter().product::<i64>();
            if left < 0 {
                return None;
            }
            let dims: Vec<usize> = blob.iter().map(|&dim| dim.unsigned_abs() as usize).collect();
            let blob = Blob::<f32>::full(dims, 0.5).ok()?;
            model.add_blob(index, &blob, Payload::Data).ok()?;
        }
    }
    Some(Arc::new(model))
}
