//! Infers the shapes of a net's blobs by Caffe's rules.

use std::collections::{HashMap, HashSet};

use crate::layers::{rule, Rule, Setup, Shapes};
use crate::net::{Layer, Net, Shape};
use crate::onnx::Custom;
use crate::weights::Shared;
use crate::{memory, Error, Problem, Result};

/// The shapes of a layer's bottoms (inputs), tops (outputs) and blobs (weights).
#[derive(Debug)]
pub(crate) struct LayerShapes {
    pub bottoms: Vec<Shape>,
    pub tops: Vec<Shape>,
    pub blobs: Vec<Shape>,
}

#[derive(Debug)]
pub(crate) enum Inferred {
    /// All shapes of the layer, computed by the rule of its type.
    Rule(LayerShapes),
    /// Only the shapes of the tops, because the layer's weights do not fit.
    Tops(Vec<Shape>),
    /// For each top of a custom layer: its shape, or `None` if the shape is unknown.
    Custom(Vec<Option<Shape>>),
    /// No shapes, because this layer or an earlier layer is unknown or invalid.
    Nothing,
}

impl Inferred {
    /// Returns the shape of a top, if it is known.
    pub fn top(&self, top: usize) -> Option<&Shape> {
        match self {
            Self::Rule(shapes) => shapes.tops.get(top),
            Self::Tops(tops) => tops.get(top),
            Self::Custom(tops) => tops.get(top)?.as_ref(),
            Self::Nothing => None,
        }
    }
}

/// The known shapes of a net's blobs.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BlobShapes {
    /// Names and shapes: first of the inputs, then of the layers' tops in the order of the layers.
    pub known: Vec<(String, Shape)>,
    /// For each layer: the shapes of its weights, or an empty list if the shapes are unknown.
    pub weights: Vec<Vec<Shape>>,
    /// One problem for each layer whose tops' shapes cannot be inferred. Omits a layer that fails
    /// only because of an earlier layer's problem.
    pub problems: Vec<Problem>,
}

impl Net {
    /// Infers the shapes of the blobs. Ignores the shapes of stored weights.
    pub fn shapes(&self) -> BlobShapes {
        let inputs: Vec<Shape> = self.inputs.iter().map(|input| input.1.clone()).collect();
        let mut custom = Custom::default();
        let mut pass = Pass::new(self, &inputs, false, &mut custom);
        let mut order: Vec<&String> = self.inputs.iter().map(|input| &input.0).collect();
        let mut weights = Vec::with_capacity(self.layers.len());
        for (at, layer) in self.layers.iter().enumerate() {
            let fresh = layer.tops.iter().enumerate().filter(|(top, _)| !layer.is_in_place(*top));
            order.extend(fresh.map(|(_, name)| name));
            weights.push(match pass.run(at) {
                Inferred::Rule(shapes) => shapes.blobs,
                _ => Vec::new(),
            });
        }
        let known = order
            .into_iter()
            .filter_map(|name| Some((name.clone(), pass.shapes.get(name.as_str())?.clone())));
        BlobShapes { known: known.collect(), weights, problems: pass.problems.clone() }
    }

    /// Returns the known shapes of every layer for the given input shapes, and the layers that
    /// cannot be converted. Adds unsupported layers to `custom`, if `custom` allows additions.
    /// Checks the shapes of stored weights.
    pub(crate) fn infer(
        &self,
        inputs: &[Shape],
        custom: &mut Custom<'_>,
    ) -> (Vec<Inferred>, Vec<Problem>) {
        let mut pass = Pass::new(self, inputs, true, custom);
        let layers = (0..self.layers.len()).map(|at| pass.run(at)).collect();
        let mut problems = pass.problems;
        problems.extend(memory::problems(&self.layers, &self.outputs));
        (layers, problems)
    }
}

struct Pass<'n, 'c, 'o> {
    net: &'n Net,
    /// The shape of each blob before the next layer runs. A blob of unknown shape has no entry.
    shapes: HashMap<&'n str, Shape>,
    /// Blobs that custom layers make and whose shape is not known.
    open: HashSet<&'n str>,
    custom: &'c mut Custom<'o>,
    shared: Shared<'n>,
    weights: bool,
    problems: Vec<Problem>,
}

impl<'n, 'c, 'o> Pass<'n, 'c, 'o> {
    fn new(net: &'n Net, inputs: &[Shape], weights: bool, custom: &'c mut Custom<'o>) -> Self {
        let mut pass = Self {
            net,
            shapes: HashMap::new(),
            open: HashSet::new(),
            custom,
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
                    kind: error.kind(),
                    reason: error.to_string(),
                    at: None,
                }),
            }
        }
        pass
    }

    /// Returns the known shapes of a layer. If the layer has a problem, records the problem.
    fn run(&mut self, at: usize) -> Inferred {
        let layer = &self.net.layers[at];
        let inferred = self.infer(at).unwrap_or_else(|error| {
            self.problems.push(Problem::new(at, layer, &error));
            Inferred::Nothing
        });
        for (index, top) in layer.tops.iter().enumerate() {
            self.open.remove(top.as_str());
            match inferred.top(index) {
                Some(shape) => drop(self.shapes.insert(top, shape.clone())),
                None => drop(self.shapes.remove(top.as_str())),
            }
            if matches!(&inferred, Inferred::Custom(tops) if tops[index].is_none()) {
                self.open.insert(top);
            }
        }
        inferred
    }

    fn infer(&mut self, at: usize) -> Result<Inferred> {
        if !self.custom.has(at) {
            match self.by_rule(at) {
                Err(error) if self.custom.add(at, error.kind()) => {}
                result => return result,
            }
        }
        self.custom_tops(&self.net.layers[at]).map(Inferred::Custom)
    }

    fn by_rule(&mut self, at: usize) -> Result<Inferred> {
        let layer = &self.net.layers[at];
        let rule = rule(&layer.layer_type).ok_or_else(|| unknown_type(layer))?;
        let bottoms = layer.bottoms.iter().map(|name| self.shapes.get(name.as_str()).cloned());
        match bottoms.collect() {
            Some(bottoms) => self.layer(at, rule, bottoms),
            None => self.lacking(layer).map_or(Ok(Inferred::Nothing), Err),
        }
    }

    /// Returns the known shapes of a custom layer's tops. If the options lack a top's shape, a top
    /// that is also a bottom keeps the bottom's shape.
    fn custom_tops(&self, layer: &Layer) -> Result<Vec<Option<Shape>>> {
        let top = |(index, name): (usize, &String)| match self.custom.shape(name) {
            Some(shape) => check_shape(shape).map(|()| Some(shape.clone())),
            None if layer.is_in_place(index) => Ok(self.shapes.get(name.as_str()).cloned()),
            None => Ok(None),
        };
        layer.tops.iter().enumerate().map(top).collect()
    }

    /// Returns an error if the layer reads a blob that a custom layer makes and whose shape is
    /// unknown. Shapes that are unknown for another reason were already reported as a problem.
    fn lacking(&self, layer: &Layer) -> Option<Error> {
        let name = layer.bottoms.iter().find(|name| self.open.contains(name.as_str()))?;
        let name = name.escape_default();
        Some(Error::invalid(format_args!(
            "the shape of its bottom '{name}' is not known, because a custom layer makes the \
             bottom; set the shape by --shape {name}=SHAPE"
        )))
    }

    fn layer(&mut self, at: usize, rule: &Rule, bottoms: Vec<Shape>) -> Result<Inferred> {
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
        if let Err(error) = self.check_values(at, &blobs) {
            // Returns the shapes of the tops, so that the next layers are checked, too.
            self.problems.push(Problem::new(at, layer, &error));
            return Ok(Inferred::Tops(tops));
        }
        Ok(Inferred::Rule(LayerShapes { bottoms, tops, blobs }))
    }

    /// Checks the stored shapes of the layer's weights, unless stored weights are ignored.
    fn check_values(&self, at: usize, blobs: &[Shape]) -> Result<()> {
        match self.weights {
            true => self.net.check_weights(at, blobs),
            false => Ok(()),
        }
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

/// Checks Caffe's limits for a blob: 32 axes, and 2^31 - 1 for each dimension and for the element
/// count.
pub(crate) fn check_shape(shape: &[i64]) -> Result<()> {
    let most = i64::from(i32::MAX);
    let mut count = 1_i64;
    for &dim in shape {
        if dim < 0 || dim > most / count.max(1) {
            return Err(Error::invalid(format_args!("no blob can have the shape {shape:?}")));
        }
        count *= dim;
    }
    match shape.len() {
        0..=32 => Ok(()),
        axes => Err(Error::invalid(format_args!("a blob of {axes} axes, more than 32"))),
    }
}
