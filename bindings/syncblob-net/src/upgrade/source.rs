//! Where a net's message comes from: a text, or a model.

use syncblob::{Generation, Model};

use super::{splits, upgrade, Upgraded};
use crate::limits::Used;
use crate::message::{Message, Value};
use crate::text::read_text;
use crate::wire::read_bytes;
use crate::{Limits, Result};

impl Upgraded {
    /// The net of a prototxt.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) and [`Limit`](crate::ErrorKind::Limit) for the
    /// text; [`Invalid`](crate::ErrorKind::Invalid) for a net of two generations, and for what
    /// Caffe refuses to upgrade; [`Unsupported`](crate::ErrorKind::Unsupported) for a type of
    /// layer that the old generation did not have.
    pub fn from_prototxt(text: &[u8], limits: &Limits) -> Result<Self> {
        upgrade(read_text(text, "NetParameter", limits)?)
    }

    /// The net that a model carries: without the layers that Caffe inserted where several read one
    /// blob, and without the phase in which the model was written.
    ///
    /// # Errors
    /// As [`from_prototxt`](Upgraded::from_prototxt); [`Weights`](crate::ErrorKind::Weights) if
    /// the model's file cannot be read.
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

/// The net's field for a layer, and the type of the layer's message.
fn kind_of(layer: &syncblob::Layer<'_>) -> (&'static str, &'static str) {
    match layer.generation() {
        Generation::Current => ("layer", "LayerParameter"),
        _ => ("layers", "V1LayerParameter"),
    }
}

impl Message {
    /// What a model says of a layer, in the layer's own generation, without the blobs.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) and [`Limit`](crate::ErrorKind::Limit) for the
    /// bytes; [`Weights`](crate::ErrorKind::Weights) if the model's file cannot be read.
    pub fn from_layer(layer: &syncblob::Layer<'_>, limits: &Limits) -> Result<Self> {
        read_bytes(&layer.message()?, kind_of(layer).1, &mut Used::new(limits))
    }
}
