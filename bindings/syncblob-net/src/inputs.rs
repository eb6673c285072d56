//! A net's inputs: the tops of layers that supply data.

use std::collections::{HashMap, HashSet};

use crate::layers::rule;
use crate::message::Message;
use crate::net::{Layer, NetOptions, Shape};
use crate::shapes::check_shape;
use crate::{Error, Result};

/// The inputs of a net under construction.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    pub known: Vec<(String, Shape)>,
    /// Tops of data layers whose type is not Input. These tops are inputs only if a layer reads
    /// them.
    of_data: HashSet<String>,
    /// Maps a data layer's top whose shape is unknown to a description of the layer.
    unknown: HashMap<String, String>,
}

impl Inputs {
    /// Removes the data layers from `layers` and returns their tops as inputs. Shapes in `options`
    /// replace the layers' shapes.
    pub fn take(
        layers: &mut Vec<Layer>,
        options: &NetOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Self> {
        let mut inputs = Self::default();
        let (data, rest) = std::mem::take(layers).into_iter().partition(brings_data);
        *layers = rest;
        let data: Vec<Layer> = data;
        let mut seen = HashSet::new();
        for layer in &data {
            inputs.add(layer, &mut seen).map_err(|error| error.within(layer))?;
            if layer.layer_type != "Input" {
                warnings.push(format!("{layer}: left out; its tops become inputs"));
            }
        }
        inputs.replace(layers, &options.inputs)?;
        if let Some(batch) = options.batch {
            if !is_given(batch) {
                return Err(Error::argument(format_args!("batch is {batch}, not 1 to 2147483647")));
            }
            resize_batch(inputs.known.iter_mut().map(|input| &mut input.1), |_| batch);
        }
        Ok(inputs)
    }

    fn add<'l>(&mut self, layer: &'l Layer, seen: &mut HashSet<&'l String>) -> Result<()> {
        let shapes = shapes_of(layer)?;
        for (index, top) in layer.tops.iter().enumerate() {
            if !seen.insert(top) {
                return Err(Error::invalid(twice(top)));
            }
            match shapes.get(index) {
                Some(shape) => self.known.push((top.clone(), shape.clone())),
                None => drop(self.unknown.insert(top.clone(), layer.to_string())),
            }
            if layer.layer_type != "Input" {
                self.of_data.insert(top.clone());
            }
        }
        Ok(())
    }

    /// Sets the shapes that the caller passes for inputs.
    fn replace(&mut self, layers: &[Layer], shapes: &[(String, Shape)]) -> Result<()> {
        let made: HashSet<&String> = layers.iter().flat_map(|layer| &layer.tops).collect();
        let read: HashSet<&String> = layers.iter().flat_map(|layer| &layer.bottoms).collect();
        for (name, shape) in shapes {
            let shown = name.escape_default();
            if !shape.iter().all(|&dim| is_given(dim)) {
                return Err(Error::argument(format_args!(
                    "the shape {shape:?} for '{shown}': dimensions must be from 1 to 2147483647"
                )));
            }
            if let Some(input) = self.known.iter_mut().find(|input| input.0 == *name) {
                input.1.clone_from(shape);
            } else if made.contains(name) {
                let text = format_args!("'{shown}' is not an input: a layer makes it");
                return Err(Error::argument(text));
            } else if self.unknown.contains_key(name) || read.contains(name) {
                self.known.push((name.clone(), shape.clone()));
            } else {
                let others = self.others(layers, &made);
                return Err(Error::argument(format_args!(
                    "the net has no input '{shown}'{others}"
                )));
            }
        }
        Ok(())
    }

    /// Lists at most eight inputs, for the error about an unknown input.
    fn others(&self, layers: &[Layer], made: &HashSet<&String>) -> String {
        let known = self.known.iter().map(|input| &input.0);
        let lacking = layers.iter().flat_map(|layer| &layer.bottoms);
        let names = known.chain(lacking.filter(|bottom| !made.contains(bottom)));
        let mut shown: Vec<String> = Vec::new();
        for name in names.map(|name| format!("'{}'", name.escape_default())) {
            if shown.len() < 8 && !shown.contains(&name) {
                shown.push(name);
            }
        }
        match shown.is_empty() {
            true => String::new(),
            false => format!("; it has {}", shown.join(", ")),
        }
    }

    /// Removes each input that is a data layer's top and that no layer reads, such as labels.
    pub fn forget_unread(&mut self, layers: &[Layer]) {
        let read: HashSet<&String> = layers.iter().flat_map(|layer| &layer.bottoms).collect();
        let of_data = &self.of_data;
        self.known.retain(|(name, _)| read.contains(name) || !of_data.contains(name));
    }

    /// Returns the bottoms that are neither inputs nor tops of earlier layers.
    pub fn open(&self, layers: &[Layer]) -> Vec<String> {
        let mut made: HashSet<&String> = self.known.iter().map(|input| &input.0).collect();
        let mut open = Vec::new();
        for layer in layers {
            open.extend(layer.bottoms.iter().filter(|bottom| made.insert(bottom)).cloned());
            made.extend(&layer.tops);
        }
        open
    }

    /// Returns the error for a bottom that is neither an input nor a top of an earlier layer.
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

/// Returns whether an option may contain this dimension.
fn is_given(dim: i64) -> bool {
    (1..=i64::from(i32::MAX)).contains(&dim)
}

pub(crate) fn twice(top: &str) -> String {
    format!("another layer also writes its top '{}'", top.escape_default())
}

/// Returns the error message for a layer that works in place on a blob that other layers read.
pub(crate) fn read_twice(top: &str) -> String {
    format!("it works in place on '{}', which other layers read", top.escape_default())
}

/// Resizes the batch. The batch is the first axis of the first shape, and every other first axis of
/// the same size.
pub(crate) fn resize_batch<'s>(
    shapes: impl Iterator<Item = &'s mut Shape>,
    size: impl Fn(i64) -> i64,
) {
    let mut shapes = shapes.peekable();
    let batch = shapes.peek().and_then(|shape| shape.first().copied());
    let firsts = shapes.filter_map(|shape| shape.first_mut());
    firsts.filter(|first| Some(**first) == batch).for_each(|first| *first = size(*first));
}

/// Returns whether a layer supplies data. Also returns true for a layer of unknown type without
/// bottoms.
fn brings_data(layer: &Layer) -> bool {
    let by_name = ["Input", "DummyData", "MemoryData"].contains(&layer.layer_type.as_str());
    by_name || (layer.bottoms.is_empty() && rule(&layer.layer_type).is_none())
}

/// Returns the shapes of a data layer's tops, or an empty list if the layer does not contain
/// shapes.
fn shapes_of(layer: &Layer) -> Result<Vec<Shape>> {
    let message = |name| layer.message.message(name);
    match layer.layer_type.as_str() {
        "Input" => match message("input_param") {
            Some(p) => each_top(layer, shapes_in(p)?),
            None => Ok(Vec::new()),
        },
        "DummyData" => match message("dummy_data_param") {
            Some(p) if p.has("shape") => each_top(layer, shapes_in(p)?),
            Some(p) => legacy_shapes(layer, p),
            None => Ok(Vec::new()),
        },
        "MemoryData" => Ok(message("memory_data_param").map(memory_shapes).unwrap_or_default()),
        _ => Ok(Vec::new()),
    }
}

/// Returns the shapes that the parameters list. Refuses invalid shapes.
fn shapes_in(parameters: &Message) -> Result<Vec<Shape>> {
    let dims = parameters.messages("shape").map(|shape| shape.ints("dim"));
    dims.map(|dims| check_shape(&dims).map(|()| dims)).collect()
}

/// Returns one value for each top. A single value applies to all tops.
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

/// Returns the shapes of a MemoryData layer's tops: images and labels.
fn memory_shapes(p: &Message) -> Vec<Shape> {
    let sizes = ["batch_size", "channels", "height", "width"].map(|name| p.int(name));
    vec![sizes.to_vec(), sizes[..1].to_vec()]
}
