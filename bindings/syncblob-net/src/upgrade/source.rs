//! Reads the message of a net from a text or from a model.

use syncblob::{Generation, Model};

use super::{splits, upgrade, Upgraded};
use crate::limits::Used;
use crate::message::{Message, Value};
use crate::text::read_text;
use crate::wire::read_bytes;
use crate::{Limits, Result};

impl Upgraded {
    /// Reads the net of a prototxt and upgrades it.
    ///
    /// # Errors
    /// - [`Malformed`](crate::ErrorKind::Malformed) and [`Limit`](crate::ErrorKind::Limit) for the
    ///   text.
    /// - [`Invalid`](crate::ErrorKind::Invalid) for a net with layers of two generations, or if
    ///   Caffe refuses to upgrade it.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported) for a layer type that the old generation
    ///   did not have.
    pub fn from_prototxt(text: &[u8], limits: &Limits) -> Result<Self> {
        upgrade(read_text(text, "NetParameter", limits)?)
    }

    /// Reads the net that is stored in a model and upgrades it. Removes the Split layers that Caffe
    /// inserted for blobs with several readers, and the `phase` (TRAIN or TEST) of each layer.
    ///
    /// # Errors
    /// All errors of [`from_prototxt`](Upgraded::from_prototxt);
    /// [`Weights`](crate::ErrorKind::Weights) if the model's file cannot be read.
    pub fn from_model(model: &Model, limits: &Limits) -> Result<Self> {
        let mut upgraded = upgrade(message_of(model, limits)?)?;
        for field in &mut upgraded.net.fields {
            if let Value::Message(layer) = &mut field.value {
                layer.fields.retain(|field| !super::is(field, "phase"));
            }
        }
        splits::join(&mut upgraded.net);
        Ok(upgraded)
    }
}

fn message_of(model: &Model, limits: &Limits) -> Result<Message> {
    let mut used = Used::new(limits);
    let mut net = read_bytes(&model.message()?, "NetParameter", &mut used)?;
    for layer in model {
        let (field, kind) = kind_of(&layer);
        let layer = read_bytes(&layer.message()?, kind, &mut used)?;
        net.push(field, Value::Message(Box::new(layer)));
    }
    Ok(net)
}

/// Returns the net's field that contains a layer, and the type of the layer's message.
fn kind_of(layer: &syncblob::Layer<'_>) -> (&'static str, &'static str) {
    match layer.generation() {
        Generation::Current => ("layer", "LayerParameter"),
        _ => ("layers", "V1LayerParameter"),
    }
}

impl Message {
    /// Reads the message of a layer in a model, without its blobs, and does not upgrade it.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) and [`Limit`](crate::ErrorKind::Limit) for the
    /// bytes; [`Weights`](crate::ErrorKind::Weights) if the model's file cannot be read.
    pub fn from_layer(layer: &syncblob::Layer<'_>, limits: &Limits) -> Result<Self> {
        read_bytes(&layer.message()?, kind_of(layer).1, &mut Used::new(limits))
    }
}
