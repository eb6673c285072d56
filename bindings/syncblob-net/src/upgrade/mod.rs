//! Upgrades nets of Caffe's older generations to the current form, as Caffe's own upgrade does.

mod data;
mod inputs;
mod source;
mod splits;
mod types;
mod v0;
mod v1;

use crate::message::{Field, Label, Message, Place, Value};
use crate::Result;

/// A `NetParameter` in Caffe's current form. The net has no V0 or V1 layers and no list of inputs.
/// Transformations of data layers are in `transform_param`. BatchNorm layers have no old `param`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Upgraded {
    /// The net. All layers are in the field `layer`, and fields are sorted by number.
    pub net: Message,
    /// Notes for the user: one sentence about each part that was omitted from the net.
    pub notes: Vec<String>,
}

/// Upgrades a `NetParameter` of any of Caffe's generations to the current form. Upgrading a second
/// time changes nothing.
fn upgrade(mut net: Message) -> Result<Upgraded> {
    let mut notes = Vec::new();
    v0::upgrade(&mut net, &mut notes)?;
    data::upgrade(&mut net);
    v1::upgrade(&mut net, &mut notes)?;
    inputs::upgrade(&mut net)?;
    for layer in messages_mut(&mut net, "layer") {
        forget_batch_norm_parameters(layer, &mut notes);
    }
    sort(&mut net);
    Ok(Upgraded { net, notes })
}

/// Removes the three `param` of a BatchNorm layer, which older versions of Caffe required.
fn forget_batch_norm_parameters(layer: &mut Message, notes: &mut Vec<String>) {
    if layer.text("type") == b"BatchNorm" && layer.all("param").count() == 3 {
        if layer.messages("param").any(|one| !one.text("name").is_empty()) {
            let name = layer.text("name").escape_ascii();
            notes.push(format!(
                "layer '{name}' (BatchNorm): Caffe ignores its 'param', so it shares no blobs"
            ));
        }
        layer.fields.retain(|field| field.name() != "param");
    }
}

/// Sorts the fields of the net and of its layers by number, which is the order in which Caffe
/// prints them. Fields that are not in the schema are last.
fn sort(message: &mut Message) {
    message.fields.sort_by_key(|field| match &field.label {
        Label::Known(info) => info.number,
        Label::Unknown(_) => u32::MAX,
    });
    for field in &mut message.fields {
        if let Value::Message(message) = &mut field.value {
            sort(message);
        }
    }
}

/// Returns mutable references to the values of a repeated field of messages.
fn messages_mut<'a>(
    message: &'a mut Message,
    name: &'a str,
) -> impl Iterator<Item = &'a mut Message> {
    let fields = message.fields.iter_mut().filter(move |field| is(field, name));
    fields.filter_map(|field| match &mut field.value {
        Value::Message(message) => Some(&mut **message),
        _ => None,
    })
}

/// Returns whether a field has this name and is in the schema.
fn is(field: &Field, name: &str) -> bool {
    matches!(field.label, Label::Known(info) if info.name == name)
}

/// Returns the field, renamed to `name`, for the message `to`. Returns `None` if the schema of `to`
/// has no field of this name.
fn moved(field: Field, name: &str, to: &Message, layer_type: &str) -> Option<Field> {
    let info = to.info.by_name(name, layer_type)?;
    Some(Field::new(Label::Known(info), field.place, field.value))
}

fn text(value: &str) -> Value {
    Value::Text(value.as_bytes().into())
}

/// Messages that are added to a layer, such as `data_param`, each with the name of its field.
#[derive(Default)]
struct Children(Vec<(&'static str, Message)>);

impl Children {
    /// Returns the message for the layer's field `name`. Makes the message at the first call.
    fn of(&mut self, name: &'static str, layer: &Message) -> &mut Message {
        let found = self.0.iter().position(|child| child.0 == name);
        let at = found.unwrap_or_else(|| {
            self.0.push((name, Message::new(layer.type_of(name, ""), Place::Made)));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    fn finish(self, layer: &mut Message) {
        for (name, message) in self.0 {
            layer.push(name, Value::Message(Box::new(message)));
        }
    }
}

#[cfg(test)]
mod tests;
