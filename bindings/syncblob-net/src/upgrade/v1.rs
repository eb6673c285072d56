//! Upgrades V1 layers. In V1, a layer's type is a number, and the parameters of the layer's blobs
//! are in four lists.

use super::{is, moved, text, types};
use crate::message::{Field, Message, Place, Value};
use crate::{Error, Result};

/// Upgrades V1 layers to current layers, if the net has such layers.
pub(super) fn upgrade(net: &mut Message, notes: &mut Vec<String>) -> Result<()> {
    if net.all("layers").next().is_none() {
        return Ok(());
    }
    if let Some(layer) = net.all("layer").next() {
        let place = layer.place();
        return Err(Error::invalid(format_args!(
            "{place}: both 'layer' and 'layers': two of Caffe's generations in one net"
        )));
    }
    for mut field in std::mem::take(&mut net.fields) {
        if let (true, Value::Message(old)) = (is(&field, "layers"), &mut field.value) {
            let old = std::mem::replace(&mut **old, Message::new("LayerParameter", Place::Made));
            field.value = Value::Message(Box::new(upgrade_layer(old, notes)?));
            net.fields.extend(moved(field, "layer", net, ""));
        } else {
            net.fields.push(field);
        }
    }
    Ok(())
}

fn upgrade_layer(old: Message, notes: &mut Vec<String>) -> Result<Message> {
    let mut layer = Message::new("LayerParameter", old.place);
    let layer_type = type_of(&old)?;
    if let Some(layer_type) = layer_type {
        layer.push("type", text(layer_type));
    }
    let mut blobs = Blobs::default();
    for field in old.fields {
        if !blobs.take(&field) && !is(&field, "type") {
            add_field(&mut layer, field, layer_type.unwrap_or_default(), notes)?;
        }
    }
    for parameters in blobs.parameters {
        layer.push("param", Value::Message(Box::new(parameters)));
    }
    Ok(layer)
}

fn type_of(layer: &Message) -> Result<Option<&'static str>> {
    let Some(number) = layer.given_int("type") else { return Ok(None) };
    let known = types::v1_type(number, layer);
    known.map(Some).ok_or_else(|| {
        let name = layer.text("name").escape_ascii();
        Error::unsupported(format_args!("V1 layer '{name}' has the unknown type {number}"))
    })
}

/// Adds a field. Refuses a field that V1 lacks but a current layer has, because Caffe would read
/// the field after the upgrade.
fn add_field(
    layer: &mut Message,
    field: Field,
    layer_type: &str,
    notes: &mut Vec<String>,
) -> Result<()> {
    let (name, place) = (field.name().to_owned(), field.place());
    if !field.is_known() {
        if layer.declares(&name) {
            let text = format_args!("{place}: the field '{name}' is newer than the layer");
            return Err(Error::invalid(text));
        }
        layer.fields.push(field);
        return Ok(());
    }
    match moved(field, &name, layer, layer_type) {
        Some(field) => layer.fields.push(field),
        None => notes.push(format!("{place}: omitted '{name}', which current layers do not have")),
    }
    Ok(())
}

/// The `param` messages of a layer, one for each blob.
#[derive(Default)]
struct Blobs {
    parameters: Vec<Message>,
    counts: [usize; LISTS.len()],
}

/// V1's fields that list one value for each blob, each with its new field in the message `param`.
const LISTS: [(&str, &str); 4] = [
    ("param", "name"),
    ("blob_share_mode", "share_mode"),
    ("blobs_lr", "lr_mult"),
    ("weight_decay", "decay_mult"),
];

impl Blobs {
    /// Returns whether the field is one of LISTS. If so, moves the field's value to the blob's
    /// `param`.
    fn take(&mut self, field: &Field) -> bool {
        let Some(list) = LISTS.iter().position(|list| is(field, list.0)) else { return false };
        let blob = self.counts[list];
        self.counts[list] += 1;
        if self.parameters.len() <= blob {
            self.parameters.push(Message::new("ParamSpec", Place::Made));
        }
        let parameters = &mut self.parameters[blob];
        parameters.fields.extend(moved(field.clone(), LISTS[list].1, parameters, ""));
        true
    }
}
