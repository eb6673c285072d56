//! Upgrades V1's data layers: moves transformations of data out of messages such as `data_param`.

use super::{is, messages_mut, moved, Children};
use crate::message::{Field, Message, Value};

/// The type numbers of V1's data layers, and the fields of their parameters.
const LAYERS: [(i64, &str); 3] =
    [(5, "data_param"), (12, "image_data_param"), (24, "window_data_param")];

const MOVED: [&str; 4] = ["scale", "mean_file", "crop_size", "mirror"];

/// Moves the parameters in `MOVED` into `transform_param`. As in Caffe, if any layer has such a
/// parameter, every data layer gets a `transform_param` and the message of its type, even if these
/// messages are empty.
pub(super) fn upgrade(net: &mut Message) {
    let old = |layer: &Message| {
        let parameters = parameters_of(layer).and_then(|name| layer.message(name));
        parameters.is_some_and(|message| MOVED.iter().any(|name| message.has(name)))
    };
    if net.messages("layers").any(old) {
        for layer in messages_mut(net, "layers") {
            if let Some(name) = parameters_of(layer) {
                upgrade_layer(layer, name);
            }
        }
    }
}

fn parameters_of(layer: &Message) -> Option<&'static str> {
    let number = layer.int("type");
    LAYERS.iter().find(|row| row.0 == number).map(|row| row.1)
}

fn upgrade_layer(layer: &mut Message, name: &'static str) {
    let (moving, staying): (Vec<_>, Vec<_>) =
        take(layer, name).into_iter().partition(|field| MOVED.contains(&field.name()));
    let given = take(layer, "transform_param");
    let replaced = |field: &Field| moving.iter().any(|moving| moving.name() == field.name());
    let mut transform: Vec<_> = given.into_iter().filter(|field| !replaced(field)).collect();
    let mut children = Children::default();
    children.of(name, layer).fields = staying;
    let target = children.of("transform_param", layer);
    for field in moving {
        let name = field.name().to_owned();
        transform.extend(moved(field, &name, target, ""));
    }
    target.fields = transform;
    children.finish(layer);
}

/// Removes a message from a layer and returns the message's fields.
fn take(layer: &mut Message, name: &str) -> Vec<Field> {
    let mut taken = Vec::new();
    for field in std::mem::take(&mut layer.fields) {
        match field.value {
            Value::Message(message) if is(&field, name) => taken.extend(message.fields),
            _ => layer.fields.push(field),
        }
    }
    taken
}
