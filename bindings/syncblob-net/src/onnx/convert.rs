//! Converts a net into an ONNX graph. A blob that layers overwrite becomes several values.

use std::collections::HashMap;

use syncblob::BlobAt;

use super::custom;
use super::emit::{short, Emit};
use super::graph::{Data, Graph, Node, Value};
use super::proto::DataType;
use super::OnnxOptions;
use crate::layers::{rule, Rule};
use crate::net::{Layer, Shape};
use crate::shapes::{Inferred, LayerShapes};
use crate::{Error, Net, Problem, Result};

/// Fields of a layer that have no effect in phase TEST, or took effect when the net was read.
const APPLIED: &[&str] = &[
    "name",
    "type",
    "bottom",
    "top",
    "include",
    "exclude",
    "phase",
    "param",
    "loss_weight",
    "propagate_down",
    "blobs",
    "transform_param",
    "loss_param",
];

/// A layer whose bottoms and tops are indices in the plan's `values`.
struct Step<'n> {
    layer: &'n Layer,
    index: usize,
    bottoms: Vec<usize>,
    tops: Vec<usize>,
}

/// The content of a blob until a later layer overwrites the blob.
#[derive(Clone, Copy)]
struct BlobValue<'n> {
    blob: &'n str,
    /// Whether no later layer writes the blob.
    last: bool,
    /// The index of the layer and the index of the top. For an input: `None`, and the input's
    /// index.
    made_by: (Option<usize>, usize),
}

/// The layers of a net, and the values that pass between them.
pub(super) struct Plan<'n> {
    net: &'n Net,
    shapes: &'n [Inferred],
    steps: Vec<Step<'n>>,
    values: Vec<BlobValue<'n>>,
    /// The indices of the inputs in `values`.
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

impl<'n> Plan<'n> {
    pub fn new(net: &'n Net, shapes: &'n [Inferred]) -> Result<Self> {
        let mut plan = Self {
            net,
            shapes,
            steps: Vec::new(),
            values: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        let mut last = HashMap::new();
        for (number, (name, _)) in net.inputs.iter().enumerate() {
            let value = plan.write(&mut last, name, (None, number));
            plan.inputs.push(value);
        }
        for (index, layer) in net.layers.iter().enumerate() {
            let bottoms = layer.bottoms.iter().map(|name| last.get(name.as_str()).copied());
            let bottoms = bottoms.collect::<Option<Vec<usize>>>();
            let bottoms = bottoms
                .ok_or_else(|| Error::invalid("a bottom of the layer is missing").within(layer))?;
            let tops = layer.tops.iter().enumerate();
            let tops = tops.map(|(top, name)| plan.write(&mut last, name, (Some(index), top)));
            let tops = tops.collect();
            plan.steps.push(Step { layer, index, bottoms, tops });
        }
        for name in &net.outputs {
            let value = last.get(name.as_str()).ok_or_else(|| {
                Error::invalid(format_args!("the net has no blob '{}'", name.escape_default()))
            })?;
            plan.outputs.push(*value);
        }
        Ok(plan)
    }

    /// Adds a new value of a blob, and returns its index.
    fn write(
        &mut self,
        last: &mut HashMap<&'n str, usize>,
        blob: &'n str,
        made_by: (Option<usize>, usize),
    ) -> usize {
        if let Some(before) = last.insert(blob, self.values.len()) {
            self.values[before].last = false;
        }
        self.values.push(BlobValue { blob, last: true, made_by });
        self.values.len() - 1
    }
}

/// Builds a graph from a plan.
struct Build<'p, 'n> {
    plan: &'p Plan<'n>,
    /// The shapes for a larger batch, which differ from the plan's shapes in the axes that depend
    /// on the batch.
    other: Option<&'p [Inferred]>,
    graph: &'p mut Graph,
    /// Maps indices in the plan's `values` to the values in the graph.
    values: HashMap<usize, Value>,
    half: bool,
}

/// For each input and output of the net: the index in the plan's `values`, and the value in the
/// graph.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub inputs: Vec<(usize, Value)>,
    pub outputs: Vec<(usize, Value)>,
    /// Maps indices in the plan's `values` to the values in the graph.
    pub values: HashMap<usize, Value>,
}

impl<'n> Plan<'n> {
    /// Returns the name of a value's blob.
    pub fn blob(&self, value: usize) -> &'n str {
        self.values[value].blob
    }

    /// Returns the shape of a value, if `inputs` or `layers` contains the shape.
    pub fn shape<'a>(
        &self,
        value: usize,
        inputs: &'a [Shape],
        layers: &'a [Inferred],
    ) -> Option<&'a Shape> {
        match self.values[value].made_by {
            (Some(layer), top) => layers[layer].top(top),
            (None, input) => inputs.get(input),
        }
    }

    /// Adds the nodes of all layers with known shapes. If layers cannot be converted or `problems`
    /// is not empty, the error contains all problems.
    pub fn build(
        &self,
        graph: &mut Graph,
        other: Option<&[Inferred]>,
        options: &OnnxOptions,
        mut problems: Vec<Problem>,
    ) -> Result<Ends> {
        let half = options.half;
        graph.reserve(self.values.iter().filter(|value| value.last).map(|value| value.blob));
        let mut build = Build { plan: self, other, graph, values: HashMap::new(), half };
        let ends = build.ends();
        build.enter(&ends, options)?;
        for step in &self.steps {
            build.name_tops(step);
            if let Err(error) = build.step(step) {
                problems.push(Problem::new(step.index, step.layer, &error));
            }
            build.graph.check_size()?;
        }
        build.leave(&ends);
        match problems.is_empty() {
            true => Ok(Ends { values: build.values, ..ends }),
            false => Err(Error::of_problems(problems)),
        }
    }
}

impl Build<'_, '_> {
    /// Makes the values of inputs and outputs, with the names of their blobs. If an output
    /// overwrites an input in place, the output has another name.
    fn ends(&mut self) -> Ends {
        let reserve = |graph: &mut Graph, at: usize| (at, graph.blob(self.plan.blob(at)));
        let graph = &mut *self.graph;
        let inputs = self.plan.inputs.iter().map(|&at| reserve(graph, at)).collect();
        let outputs = self.plan.outputs.iter().map(|&at| reserve(graph, at)).collect();
        Ends { inputs, outputs, values: HashMap::new() }
    }

    /// Makes the values that layers use for inputs and outputs. Inputs are preprocessed. If layers
    /// compute with 16-bit floats, casts the inputs, and makes separate values for the outputs.
    fn enter(&mut self, ends: &Ends, options: &OnnxOptions) -> Result<()> {
        options.preprocessing.check(&self.plan.net.inputs)?;
        for (at, value) in &ends.inputs {
            let shape = &self.plan.net.inputs[self.plan.values[*at].made_by.1].1;
            let mut value = options.preprocessing.apply(self.graph, *value, shape)?;
            if self.half {
                value = self.cast(value, DataType::Float16);
            }
            self.values.insert(*at, value);
        }
        for (at, value) in &ends.outputs {
            let inner = match self.half {
                true => self.graph.value(format!("{}/float16", self.plan.blob(*at))),
                false => *value,
            };
            self.values.insert(*at, inner);
        }
        Ok(())
    }

    /// Casts the outputs to `f32` if the layers compute with 16-bit floats.
    fn leave(&mut self, ends: &Ends) {
        if !self.half {
            return;
        }
        for (at, value) in &ends.outputs {
            self.cast_into(self.values[at], DataType::Float, *value);
        }
    }

    fn cast(&mut self, value: Value, to: DataType) -> Value {
        let name = format!("{}/cast", self.graph.name(value));
        let cast = self.graph.value(name);
        self.cast_into(value, to, cast);
        cast
    }

    fn cast_into(&mut self, value: Value, to: DataType, cast: Value) {
        let owner = self.graph.name(cast).to_owned();
        self.graph.add(&owner, Node::new("Cast").input(value).int("to", to as i64), &[cast]);
        if let Some(&axis) = self.graph.varying.get(&value) {
            self.graph.varying.insert(cast, axis);
        }
    }

    /// Makes the tops' values. A blob's last value is called `blob`. Each earlier value is called
    /// `blob/layer`.
    fn name_tops(&mut self, step: &Step<'_>) {
        for &top in &step.tops {
            let BlobValue { blob, last, .. } = self.plan.values[top];
            let layer = short(&step.layer.name);
            let graph = &mut *self.graph;
            self.values.entry(top).or_insert_with(|| match last {
                true => graph.blob(blob),
                false => graph.value(format!("{blob}/{layer}")),
            });
        }
    }

    fn step(&mut self, step: &Step<'_>) -> Result<()> {
        match &self.plan.shapes[step.index] {
            Inferred::Nothing | Inferred::Tops(_) => Ok(()),
            Inferred::Custom(_) => {
                self.precise(step, true, |build, bottoms, tops| build.custom(step, bottoms, tops))
            }
            Inferred::Rule(shapes) => {
                let rule = rule(&step.layer.layer_type)
                    .ok_or_else(|| Error::unsupported("the type is not known"))?;
                if self.half {
                    places_fit(step.layer, shapes)?;
                }
                let mut tops = shapes.tops.iter().zip(&shapes.bottoms);
                if !rule.in_place || tops.any(|(top, bottom)| top != bottom) {
                    step.layer.refuse_in_place()?;
                }
                let mut around = shapes.bottoms.iter().chain(&shapes.tops);
                if let Some(shape) = around.find(|shape| shape.contains(&0)) {
                    let text = format_args!("a blob without elements, {shape:?}");
                    return Err(Error::unsupported(text));
                }
                self.precise(step, rule.full_precision, |build, bottoms, tops| {
                    build.emit(step, rule, shapes, bottoms, tops)
                })?;
                all_read(step.layer, rule)
            }
        }
    }

    /// Calls `add` with the values of bottoms and tops. If the file has 16-bit floats but the layer
    /// needs `f32`, casts the bottoms to `f32` and the tops back to 16-bit floats.
    fn precise(
        &mut self,
        step: &Step<'_>,
        is_precise: bool,
        add: impl FnOnce(&mut Self, &[Value], &[Value]) -> Result<()>,
    ) -> Result<()> {
        let narrow = self.half && is_precise;
        let mut bottoms: Vec<Value> = step.bottoms.iter().map(|at| self.values[at]).collect();
        let mut tops: Vec<Value> = step.tops.iter().map(|at| self.values[at]).collect();
        let outer = tops.clone();
        if narrow {
            bottoms.iter_mut().for_each(|value| *value = self.cast(*value, DataType::Float));
            let name = format!("{}/float", short(&step.layer.name));
            tops.iter_mut().for_each(|value| *value = self.graph.value(name.clone()));
        }
        self.graph.full_precision = narrow;
        let added = add(self, &bottoms, &tops);
        self.graph.full_precision = false;
        added?;
        if narrow {
            for (inner, outer) in tops.iter().zip(&outer) {
                self.cast_into(*inner, DataType::Float16, *outer);
            }
        }
        Ok(())
    }

    fn emit(
        &mut self,
        step: &Step<'_>,
        rule: &Rule,
        shapes: &LayerShapes,
        bottoms: &[Value],
        tops: &[Value],
    ) -> Result<()> {
        let other = match self.other.map(|other| &other[step.index]) {
            Some(Inferred::Rule(other)) => other,
            _ => shapes,
        };
        let mut emit = Emit {
            layer: step.layer,
            parameters: &step.layer.parameters(rule),
            bottom_shapes: &shapes.bottoms,
            top_shapes: &shapes.tops,
            blob_shapes: &shapes.blobs,
            bottom_batch: &growing(&shapes.bottoms, &other.bottoms)?,
            top_batch: &growing(&shapes.tops, &other.tops)?,
            graph: self.graph,
            bottoms,
            tops,
            weights: self.plan.net.weights(step.index),
        };
        (rule.emit)(&mut emit)
    }

    /// Adds the node of a custom layer, whose inputs are the bottoms, followed by the weights.
    fn custom(&mut self, step: &Step<'_>, bottoms: &[Value], tops: &[Value]) -> Result<()> {
        let mut node = custom::node(step.layer, APPLIED).inputs(bottoms.iter().copied());
        let weights = self.plan.net.weights(step.index);
        for (index, at) in weights.iter().flat_map(|weights| weights.blobs).enumerate() {
            node = node.input(self.stored(step, index, *at)?);
        }
        self.graph.add(&step.layer.name, node, tops);
        Ok(())
    }

    /// Returns a blob of a custom layer, with its stored shape and values.
    fn stored(&mut self, step: &Step<'_>, index: usize, at: BlobAt) -> Result<Value> {
        let model = self.plan.net.model.as_ref();
        let model = model.ok_or_else(|| Error::invalid("the layer needs weights"))?;
        let blob = model.blob(at)?;
        let info = blob.info();
        if info.data_count() != info.count() {
            let text = format_args!("its blob {index} has no values in the model");
            return Err(Error::invalid(text));
        }
        let dims = info.shape().iter().map(|&dim| dim as i64).collect();
        let wish = format!("{}.{index}", step.layer.name);
        Ok(self.graph.initializer(wish, DataType::Float, dims, Data::Stored(at)))
    }
}

/// Refuses a pooling with a mask if 16-bit floats cannot represent all positions in the mask
/// exactly.
fn places_fit(layer: &Layer, shapes: &LayerShapes) -> Result<()> {
    const MOST: i64 = 1 << 11;
    let places = match (layer.layer_type.as_str(), shapes.tops.len()) {
        ("Pooling", 2) => shapes.bottoms[0][2..].iter().product(),
        _ => 0,
    };
    match places {
        ..=MOST => Ok(()),
        _ => Err(Error::unsupported(format_args!(
            "the layer's mask has {places} positions, but halves are exact only up to {MOST}"
        ))),
    }
}

/// Returns for each shape the axis whose size depends on the batch, or `None`.
fn growing(shapes: &[Shape], others: &[Shape]) -> Result<Vec<Option<usize>>> {
    shapes.iter().zip(others).map(|(shape, other)| growing_axis(shape, other)).collect()
}

/// Returns the axis in which the shapes differ, or `None`. `other` is the shape for a larger batch.
pub(super) fn growing_axis(shape: &Shape, other: &Shape) -> Result<Option<usize>> {
    let axes: Vec<usize> = (0..shape.len()).filter(|&axis| shape[axis] != other[axis]).collect();
    match axes.as_slice() {
        [] => Ok(None),
        [axis] => Ok(Some(*axis)),
        _ => Err(Error::unsupported("the sizes of two axes depend on the batch")),
    }
}

/// Checks that the layer's rule has read every parameter that is set.
fn all_read(layer: &Layer, rule: &Rule) -> Result<()> {
    let (fields, parameters) = (layer.message.fields().iter(), layer.parameters_field(rule));
    for field in fields.filter(|field| !APPLIED.contains(&field.name())) {
        let unread = match field.value() {
            _ if !field.is_known() => Some(field),
            crate::Value::Message(message) if Some(field.name()) == parameters => message.unread(),
            crate::Value::Message(_) => None, // Caffe ignores parameters of another layer type
            _ => Some(field),
        };
        if let Some(unread) = unread {
            let (name, place) = (unread.name().escape_default(), unread.place());
            return Err(Error::unsupported(format_args!(
                "its parameter '{name}' ({place}) is not converted: it may change what the layer computes"
            )));
        }
    }
    Ok(())
}
