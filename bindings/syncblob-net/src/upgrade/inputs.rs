//! Replaces a net's list of inputs by a layer.

use super::{is, text};
use crate::message::{Message, Place, Value};
use crate::{Error, Result};

/// Replaces listed inputs by a layer of type Input. Removes inputs without shapes.
pub(super) fn upgrade(net: &mut Message) -> Result<()> {
    if !net.has("input") {
        return Ok(());
    }
    let layer = input_layer(net)?;
    let names = ["input", "input_shape", "input_dim"];
    net.fields.retain(|field| !names.iter().any(|name| is(field, name)));
    if let Some(layer) = layer {
        let first = net.fields.iter().position(|field| is(field, "layer"));
        let first = first.unwrap_or(net.fields.len());
        net.push("layer", Value::Message(Box::new(layer)));
        net.fields[first..].rotate_right(1);
    }
    Ok(())
}

fn input_layer(net: &Message) -> Result<Option<Message>> {
    let (inputs, dims) = (net.texts("input"), net.ints("input_dim"));
    let mut shapes: Vec<Message> = net.messages("input_shape").cloned().collect();
    if shapes.is_empty() {
        shapes.extend(dims.chunks_exact(4).map(shape_of));
    }
    if shapes.is_empty() && dims.is_empty() {
        return Ok(None);
    }
    if shapes.len() < inputs.len() {
        let text = format_args!("{} inputs, but shapes for only {}", inputs.len(), shapes.len());
        return Err(Error::invalid(text));
    }
    let mut layer = Message::new("LayerParameter", Place::Made);
    layer.push("name", text("input"));
    layer.push("type", text("Input"));
    let mut parameters = Message::new("InputParameter", Place::Made);
    for (input, shape) in inputs.into_iter().zip(shapes) {
        layer.push("top", Value::Text(input.into()));
        parameters.push("shape", Value::Message(Box::new(shape)));
    }
    layer.push("input_param", Value::Message(Box::new(parameters)));
    Ok(Some(layer))
}

fn shape_of(dims: &[i64]) -> Message {
    let mut shape = Message::new("BlobShape", Place::Made);
    for dim in dims {
        shape.push("dim", Value::Int(*dim));
    }
    shape
}
