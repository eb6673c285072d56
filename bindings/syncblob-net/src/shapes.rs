//! The shapes of a net's blobs, by Caffe's rules.

use std::collections::HashMap;

use crate::layers::{rule, Rule, Setup, Shapes};
use crate::net::{Layer, Net, Shape};
use crate::weights::{shown, Shared};
use crate::{Error, Problem, Result};

/// The shapes around a layer.
#[derive(Debug)]
pub(crate) struct LayerShapes {
    pub bottoms: Vec<Shape>,
    pub tops: Vec<Shape>,
    pub blobs: Vec<Shape>,
}

/// The shapes of a net's blobs, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BlobShapes {
    /// Each blob, inputs included, in the order in which they are made.
    pub known: Vec<(String, Shape)>,
    /// The layers whose tops are not known, without those that only follow them.
    pub problems: Vec<Problem>,
}

impl Net {
    /// The shapes of its blobs. Weights, if there are any, are not compared with them.
    pub fn shapes(&self) -> BlobShapes {
        let inputs: Vec<Shape> = self.inputs.iter().map(|input| input.1.clone()).collect();
        let mut pass = Pass::new(self, &inputs, false);
        let mut order: Vec<&String> = self.inputs.iter().map(|input| &input.0).collect();
        for (at, layer) in self.layers.iter().enumerate() {
            let fresh = layer.tops.iter().enumerate().filter(|(top, _)| !layer.is_in_place(*top));
            order.extend(fresh.map(|(_, name)| name));
            pass.run(at);
        }
        let known = order
            .into_iter()
            .filter_map(|name| Some((name.clone(), pass.shapes.get(name.as_str())?.clone())));
        BlobShapes { known: known.collect(), problems: pass.problems.clone() }
    }

    /// The shapes around every layer, for inputs of some shapes. The weights have those that the
    /// layers need.
    ///
    /// # Errors
    /// All the layers that cannot be.
    pub(crate) fn infer(&self, inputs: &[Shape]) -> Result<Vec<LayerShapes>> {
        let mut pass = Pass::new(self, inputs, true);
        let layers: Vec<Option<LayerShapes>> =
            (0..self.layers.len()).map(|at| pass.run(at)).collect();
        match pass.problems.is_empty() {
            true => Ok(layers.into_iter().flatten().collect()),
            false => Err(Error::problems(pass.problems)),
        }
    }
}

/// One pass over the layers.
struct Pass<'n> {
    net: &'n Net,
    /// What each blob is at this point; a blob that is not there is not known.
    shapes: HashMap<&'n str, Shape>,
    shared: Shared<'n>,
    weights: bool,
    problems: Vec<Problem>,
}

impl<'n> Pass<'n> {
    fn new(net: &'n Net, inputs: &[Shape], weights: bool) -> Self {
        let mut pass = Self {
            net,
            shapes: HashMap::new(),
            shared: Shared::default(),
            weights,
            problems: Vec::new(),
        };
        for ((name, _), shape) in net.inputs.iter().zip(inputs) {
            match check_shape(shape) {
                Ok(()) => drop(pass.shapes.insert(name, shape.clone())),
                Err(error) => pass.problems.push(Problem {
                    layer: name.clone(),
                    layer_type: "Input".into(),
                    reason: error.to_string(),
                }),
            }
        }
        pass
    }

    /// The shapes around a layer; `None`, and the problem kept, if they cannot be.
    fn run(&mut self, at: usize) -> Option<LayerShapes> {
        let layer = &self.net.layers[at];
        let bottoms = layer.bottoms.iter().map(|name| self.shapes.get(name.as_str()).cloned());
        let bottoms: Option<Vec<Shape>> = bottoms.collect();
        let made = match (bottoms, rule(&layer.layer_type)) {
            (Some(bottoms), Some(rule)) => self.layer(at, rule, bottoms).map(Some),
            (None, Some(_)) => Ok(None), // of a layer before it, which was reported
            (_, None) => Err(unknown_type(layer)),
        };
        match made {
            Ok(Some(shapes)) => {
                let tops = layer.tops.iter().map(String::as_str);
                self.shapes.extend(tops.zip(shapes.tops.iter().cloned()));
                return Some(shapes);
            }
            Ok(None) => {}
            Err(error) => self.problems.push(Problem::new(layer, &error)),
        }
        for top in &layer.tops {
            self.shapes.remove(top.as_str());
        }
        None
    }

    fn layer(&mut self, at: usize, rule: &Rule, bottoms: Vec<Shape>) -> Result<LayerShapes> {
        let layer = &self.net.layers[at];
        check_number("bottoms", layer.bottoms.len(), rule.bottoms)?;
        check_number("tops", layer.tops.len(), rule.tops)?;
        let parameters = layer.parameters(rule);
        let setup = Setup { layer, parameters: &parameters, bottoms: &bottoms };
        let Shapes { tops, blobs } = (rule.shapes)(&setup)?;
        if tops.len() != layer.tops.len() {
            let text = format_args!("it makes {} tops, not {}", tops.len(), layer.tops.len());
            return Err(Error::invalid(text));
        }
        tops.iter().chain(&blobs).try_for_each(|shape| check_shape(shape))?;
        self.shared.check(layer, &blobs)?;
        if self.weights {
            self.net.check_weights(at, &blobs)?;
        }
        Ok(LayerShapes { bottoms, tops, blobs })
    }
}

fn unknown_type(layer: &Layer) -> Error {
    match layer.layer_type.as_str() {
        "" => Error::invalid("the layer has no type"),
        _ => Error::unsupported("layers of this type are not known"),
    }
}

fn check_number(what: &str, given: usize, (least, most): (usize, usize)) -> Result<()> {
    if (least..=most).contains(&given) {
        return Ok(());
    }
    let text = match most {
        usize::MAX => format!("{given} {what}, where {least} or more are needed"),
        _ if least == most => format!("{given} {what}, where {least} are needed"),
        _ => format!("{given} {what}, where {least} to {most} are needed"),
    };
    Err(Error::invalid(text))
}

/// Caffe's limits of a blob: no negative dimension, 32 axes, fewer than 2^31 elements.
pub(crate) fn check_shape(shape: &[i64]) -> Result<()> {
    let most = i64::from(i32::MAX);
    let mut count = 1_i64;
    for &dim in shape {
        if dim < 0 || (count != 0 && dim > most / count) {
            let text = format_args!("a blob of shape {} cannot be", shown(shape));
            return Err(Error::invalid(text));
        }
        count *= dim;
    }
    match shape.len() {
        0..=32 => Ok(()),
        axes => Err(Error::invalid(format_args!("a blob of {axes} axes, more than 32"))),
    }
}
