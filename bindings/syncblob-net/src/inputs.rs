//! A net's inputs: the tops of layers that read nothing.

use std::collections::{HashMap, HashSet};

use crate::layers::rule;
use crate::message::Message;
use crate::net::{Layer, NetOptions, Shape};
use crate::{Error, Result};

/// The inputs of a net under construction.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    pub known: Vec<(String, Shape)>,
    /// Blobs that a layer would read from elsewhere, in shapes that only the data tells.
    unknown: HashMap<String, String>,
}

impl Inputs {
    /// Takes the layers that only bring data; options may give or replace their shapes.
    pub fn take(
        layers: &mut Vec<Layer>,
        options: &NetOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Self> {
        let mut inputs = Self::default();
        let (data, rest) = std::mem::take(layers).into_iter().partition(brings_data);
        *layers = rest;
        let data: Vec<Layer> = data;
        let read: HashSet<&String> = layers.iter().flat_map(|layer| &layer.bottoms).collect();
        for layer in &data {
            inputs.add(layer, &read, warnings).map_err(|error| error.within(layer))?;
        }
        inputs.replace(layers, &options.inputs)?;
        if let Some(batch) = options.batch {
            let shapes = inputs.known.iter_mut().map(|input| &mut input.1);
            shapes.filter_map(|shape| shape.first_mut()).for_each(|first| *first = batch);
        }
        Ok(inputs)
    }

    fn add(
        &mut self,
        layer: &Layer,
        read: &HashSet<&String>,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let shapes = shapes_of(layer)?;
        let is_input = layer.layer_type == "Input";
        for (index, top) in layer.tops.iter().enumerate() {
            if self.known.iter().any(|known| known.0 == *top) || self.unknown.contains_key(top) {
                return Err(Error::invalid(twice(top)));
            }
            match shapes.get(index) {
                Some(shape) if is_input || read.contains(top) => {
                    self.known.push((top.clone(), shape.clone()));
                }
                _ => drop(self.unknown.insert(top.clone(), layer.to_string())),
            }
        }
        if !is_input {
            warnings.push(format!("{layer}: left out, its tops are inputs"));
        }
        Ok(())
    }

    /// Gives inputs the shapes that the caller wants.
    fn replace(&mut self, layers: &[Layer], shapes: &[(String, Shape)]) -> Result<()> {
        let made: HashSet<&String> = layers.iter().flat_map(|layer| &layer.tops).collect();
        let read: HashSet<&String> = layers.iter().flat_map(|layer| &layer.bottoms).collect();
        for (name, shape) in shapes {
            if let Some(input) = self.known.iter_mut().find(|input| input.0 == *name) {
                input.1.clone_from(shape);
            } else if made.contains(name) {
                let text =
                    format_args!("'{}' is not an input: a layer makes it", name.escape_default());
                return Err(Error::invalid(text));
            } else if self.unknown.remove(name).is_some() || read.contains(name) {
                self.known.push((name.clone(), shape.clone()));
            } else {
                let text = format_args!("the net has no input '{}'", name.escape_default());
                return Err(Error::invalid(text));
            }
        }
        Ok(())
    }

    /// Why nobody makes a blob that a layer reads.
    pub fn missing(&self, name: &str) -> Error {
        let name_shown = name.escape_default();
        match self.unknown.get(name) {
            Some(layer) => Error::invalid(format_args!(
                "its bottom '{name_shown}' comes from {layer}, whose shape is not known: \
                 give it by --input {name_shown}=SHAPE"
            )),
            None => Error::invalid(format_args!(
                "no layer makes its bottom '{name_shown}': if it is an input, give its shape by \
                 --input {name_shown}=SHAPE"
            )),
        }
    }
}

pub(crate) fn twice(top: &str) -> String {
    format!("its top '{}' is made by another layer, too", top.escape_default())
}

/// Whether the layer computes nothing: it reads no blob, and no rule says what it makes.
fn brings_data(layer: &Layer) -> bool {
    let by_name = ["Input", "DummyData", "MemoryData"].contains(&layer.layer_type.as_str());
    by_name || (layer.bottoms.is_empty() && rule(&layer.layer_type).is_none())
}

/// The shapes of its tops, where it gives them.
fn shapes_of(layer: &Layer) -> Result<Vec<Shape>> {
    let message = |name| layer.message.message(name);
    match layer.layer_type.as_str() {
        "Input" => match message("input_param") {
            Some(p) => each_top(layer, p.messages("shape").map(dims).collect()),
            None => Ok(Vec::new()),
        },
        "DummyData" => match message("dummy_data_param") {
            Some(p) if p.has("shape") => each_top(layer, p.messages("shape").map(dims).collect()),
            Some(p) => legacy_shapes(layer, p),
            None => Ok(Vec::new()),
        },
        "MemoryData" => Ok(message("memory_data_param").map(memory_shapes).unwrap_or_default()),
        _ => Ok(Vec::new()),
    }
}

fn dims(shape: &Message) -> Shape {
    shape.ints("dim")
}

/// One shape for all, or one a top.
fn each_top<T: Clone>(layer: &Layer, values: Vec<T>) -> Result<Vec<T>> {
    match values.len() {
        1 => Ok(vec![values[0].clone(); layer.tops.len()]),
        0 => Ok(values),
        given if given == layer.tops.len() => Ok(values),
        given => {
            let text = format_args!("{given} shapes for {} tops", layer.tops.len());
            Err(Error::invalid(text))
        }
    }
}

fn legacy_shapes(layer: &Layer, p: &Message) -> Result<Vec<Shape>> {
    let mut shapes = vec![Shape::new(); layer.tops.len()];
    for name in ["num", "channels", "height", "width"] {
        let values = each_top(layer, p.ints(name))?;
        if values.is_empty() {
            return Ok(Vec::new());
        }
        shapes.iter_mut().zip(values).for_each(|(shape, dim)| shape.push(dim));
    }
    Ok(shapes)
}

/// An image, and its label.
fn memory_shapes(p: &Message) -> Vec<Shape> {
    let sizes = ["batch_size", "channels", "height", "width"].map(|name| p.int(name));
    vec![sizes.to_vec(), sizes[..1].to_vec()]
}
