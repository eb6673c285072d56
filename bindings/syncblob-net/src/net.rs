//! A net: layers that are connected by named blobs.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use syncblob::Model;

use crate::filter::State;
use crate::inputs::{read_twice, twice, Inputs};
use crate::message::{Message, Value};
use crate::upgrade::Upgraded;
use crate::weights::{check_format, Stored};
use crate::{training, Error, Limits, Result};

/// The shape of a blob.
pub type Shape = Vec<i64>;

/// A layer of a [`Net`](crate::Net).
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    pub(crate) name: String,
    pub(crate) layer_type: String,
    pub(crate) bottoms: Vec<String>,
    pub(crate) tops: Vec<String>,
    /// Caffe's `LayerParameter`, converted to Caffe's current form.
    pub(crate) message: Message,
}

impl Layer {
    /// Returns the layer's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the layer's type, such as `"Convolution"`.
    pub fn layer_type(&self) -> &str {
        &self.layer_type
    }

    /// Returns the blobs that the layer reads.
    pub fn bottoms(&self) -> &[String] {
        &self.bottoms
    }

    /// Returns the blobs that the layer writes. A layer that works in place writes a bottom.
    pub fn tops(&self) -> &[String] {
        &self.tops
    }

    /// Returns the layer's parameters: Caffe's `LayerParameter`.
    pub fn message(&self) -> &Message {
        &self.message
    }

    pub(crate) fn new(message: Message) -> Self {
        let all = |field| message.texts(field).into_iter().map(readable).collect();
        Self {
            name: readable(message.text("name")),
            layer_type: readable(message.text("type")),
            bottoms: all("bottom"),
            tops: all("top"),
            message,
        }
    }

    /// Returns whether this top is the same blob as the bottom with the same index, so that the
    /// layer works in place.
    pub(crate) fn is_in_place(&self, top: usize) -> bool {
        self.bottoms.get(top) == self.tops.get(top)
    }

    /// Refuses the layer if it works in place. Caffe would fail, or read overwritten values.
    pub(crate) fn refuse_in_place(&self) -> Result<()> {
        match (0..self.tops.len()).any(|top| self.is_in_place(top)) {
            true => Err(Error::unsupported(
                "the layer works in place: Caffe refuses this, or reads overwritten values",
            )),
            false => Ok(()),
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "layer '{}' ({})", self.name.escape_default(), self.layer_type.escape_default())
    }
}

/// Returns a name as text. A name that is not UTF-8 is escaped.
fn readable(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(name) => name.to_owned(),
        Err(_) => name.escape_ascii().to_string(),
    }
}

/// Options for reading a [`Net`]. The phase is TEST.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct NetOptions {
    /// The limits for reading.
    pub limits: Limits,
    /// The level with which the layers' `include` and `exclude` rules are compared.
    pub level: i32,
    /// The stages for the layers' rules, in addition to the stages that the net lists.
    pub stages: Vec<String>,
    /// Names and shapes of inputs. These shapes replace the shapes in the net, and are required for
    /// inputs whose shapes the net lacks.
    pub inputs: Vec<(String, Shape)>,
    /// A new size for the first axis of the first input, and of each other input whose first axis
    /// has the same size. `None` keeps the net's sizes.
    pub batch: Option<i64>,
    /// Whether inputs may lack shapes (see [`Net::open_inputs`]). If false, an input without a
    /// shape is an error.
    pub open_inputs: bool,
}

/// A net in phase TEST: layers in the order in which they run. Layers that only supply data, or
/// that only serve training or testing, are omitted.
#[derive(Clone, Debug)]
pub struct Net {
    pub(crate) name: String,
    pub(crate) inputs: Vec<(String, Shape)>,
    open_inputs: Vec<String>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) outputs: Vec<String>,
    pub(crate) model: Option<Arc<Model>>,
    /// For each layer: its blobs in the model.
    pub(crate) stored: Vec<Stored>,
    transforms: Vec<(String, Message)>,
    warnings: Vec<String>,
    /// The paths of the files that the net was read from, each with its role, such as "model".
    sources: Vec<(&'static str, PathBuf)>,
}

impl Net {
    /// Opens the net of a prototxt's text, in any of Caffe's generations, with the weights of a
    /// model. Without a prototxt, opens the net that is stored in the model.
    ///
    /// # Errors
    /// All errors of [`from_prototxt`](Net::from_prototxt) and [`from_model`](Net::from_model);
    /// [`Argument`](crate::ErrorKind::Argument) if both the prototxt and the model are missing.
    pub fn open(
        prototxt: Option<&[u8]>,
        model: Option<Arc<Model>>,
        options: &NetOptions,
    ) -> Result<Self> {
        match (prototxt, model) {
            (Some(text), Some(model)) => Self::from_prototxt(text, options)?.with_weights(model),
            (Some(text), None) => Self::from_prototxt(text, options),
            (None, Some(model)) => Self::from_model(model, options),
            (None, None) => Err(Error::argument("neither a prototxt nor a model")),
        }
    }

    /// Reads the net of a prototxt, in any of Caffe's generations.
    ///
    /// # Errors
    /// - [`Malformed`](crate::ErrorKind::Malformed) and [`Limit`](crate::ErrorKind::Limit) for the
    ///   text.
    /// - [`Invalid`](crate::ErrorKind::Invalid) for a net that Caffe refuses, such as a net with an
    ///   unknown bottom.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported) for a layer of an old generation whose type
    ///   is unknown.
    /// - [`Argument`](crate::ErrorKind::Argument) if `options` have a shape for a blob that is not
    ///   an input.
    pub fn from_prototxt(text: &[u8], options: &NetOptions) -> Result<Self> {
        Self::from_message(Upgraded::from_prototxt(text, &options.limits)?, options)
    }

    /// Reads the net that is stored in a model, with its weights. A stored net rarely contains the
    /// shapes of its inputs, so `options` must usually contain them.
    ///
    /// # Errors
    /// All errors of [`from_prototxt`](Net::from_prototxt); [`Weights`](crate::ErrorKind::Weights)
    /// if the model's file cannot be read.
    pub fn from_model(model: Arc<Model>, options: &NetOptions) -> Result<Self> {
        check_format(&model)?;
        let upgraded = Upgraded::from_model(&model, &options.limits)?;
        Self::from_message(upgraded, options)?.with_weights(model)
    }

    fn from_message(upgraded: Upgraded, options: &NetOptions) -> Result<Self> {
        let Upgraded { mut net, notes: mut warnings, .. } = upgraded;
        let (mut layers, transforms) = included_layers(&mut net, options)?;
        training::predict(&mut layers, &mut warnings);
        let mut inputs = Inputs::take(&mut layers, options, &mut warnings)?;
        training::leave_out(&mut layers, &inputs, &mut warnings);
        training::report_statistics(&layers, &mut warnings);
        inputs.forget_unread(&layers);
        let open_inputs = if options.open_inputs { inputs.open(&layers) } else { Vec::new() };
        let outputs = link(&layers, &inputs, &open_inputs)?;
        Ok(Self {
            name: readable(net.text("name")),
            inputs: inputs.known,
            open_inputs,
            stored: Vec::new(),
            layers,
            outputs,
            model: None,
            transforms,
            warnings,
            sources: Vec::new(),
        })
    }

    /// Sets the paths of the files that the net was read from. The metadata of the ONNX file lists
    /// the names of these files. The metadata also has a BLAKE3 digest of each regular file that
    /// the conversion can open. A thread computes the digests while the weights are written.
    #[must_use]
    pub fn with_sources(mut self, prototxt: Option<&Path>, model: Option<&Path>) -> Self {
        let sources = [("prototxt", prototxt), ("model", model)];
        let given = sources.into_iter().filter_map(|(what, path)| Some((what, path?.to_owned())));
        self.sources = given.collect();
        self
    }

    /// Returns the role and the path of each file that the net was read from.
    pub(crate) fn sources(&self) -> &[(&'static str, PathBuf)] {
        &self.sources
    }

    /// Returns the net's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names of image blobs, each with the `transform_param` of the layer that makes
    /// it. If only excluded layers have this field, returns their fields.
    pub fn transforms(&self) -> &[(String, Message)] {
        &self.transforms
    }

    /// Returns the names and shapes of the inputs.
    pub fn inputs(&self) -> &[(String, Shape)] {
        &self.inputs
    }

    /// Returns the inputs without shapes: blobs that a layer reads and no layer makes. A net has
    /// such inputs only if the options allow them. Such a net can be listed, but not converted.
    pub fn open_inputs(&self) -> &[String] {
        &self.open_inputs
    }

    /// Returns the layers, in the order in which they run.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns the blobs that no layer reads, sorted by name as in Caffe.
    pub fn outputs(&self) -> &[String] {
        &self.outputs
    }

    /// Returns the model that contains the weights, or `None` for a net without weights.
    pub fn model(&self) -> Option<&Model> {
        self.model.as_deref()
    }

    /// Returns sentences about the parts of the net that were omitted or changed.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(crate) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Returns the part of the net that computes the blobs `outputs`. These blobs become the part's
    /// outputs, with the values that they have after all layers of the net have run.
    ///
    /// # Errors
    /// [`Argument`](crate::ErrorKind::Argument) for a name that is not a top of a layer.
    pub fn up_to(&self, outputs: &[String]) -> Result<Self> {
        let made: HashSet<&String> = self.layers.iter().flat_map(|layer| &layer.tops).collect();
        if let Some(name) = outputs.iter().find(|name| !made.contains(name)) {
            let is_input = self.inputs.iter().any(|input| input.0 == *name);
            let name = name.escape_default();
            return Err(match is_input {
                true => Error::argument(format_args!(
                    "'{name}' is an input of the net: no layer computes it"
                )),
                false => Error::argument(format_args!("the net has no blob '{name}'")),
            });
        }
        let mut met = HashSet::new();
        let distinct = outputs.iter().filter(|name| met.insert(*name));
        let mut needed: HashSet<&String> = outputs.iter().collect();
        let mut stays = vec![false; self.layers.len()];
        for (at, layer) in self.layers.iter().enumerate().rev() {
            stays[at] = layer.tops.iter().any(|top| needed.contains(top));
            if stays[at] {
                for top in &layer.tops {
                    needed.remove(top);
                }
                needed.extend(&layer.bottoms);
            }
        }
        let chosen = |at: &usize| stays[*at];
        Ok(Self {
            inputs: self.inputs.iter().filter(|input| needed.contains(&input.0)).cloned().collect(),
            open_inputs: self.open_inputs.clone(),
            layers: (0..self.layers.len())
                .filter(chosen)
                .map(|at| self.layers[at].clone())
                .collect(),
            stored: (0..self.stored.len())
                .filter(chosen)
                .map(|at| self.stored[at].clone())
                .collect(),
            outputs: distinct.cloned().collect(),
            name: self.name.clone(),
            model: self.model.clone(),
            transforms: self.transforms.clone(),
            warnings: self.warnings.clone(),
            sources: self.sources.clone(),
        })
    }
}

/// The name of each image blob, with the `transform_param` of its layer.
type Transforms = Vec<(String, Message)>;

/// Returns the layers that the rules include, and the preprocessing of images.
fn included_layers(net: &mut Message, options: &NetOptions) -> Result<(Vec<Layer>, Transforms)> {
    let (layers, rest) = std::mem::take(&mut net.fields)
        .into_iter()
        .partition(|field| field.is_known() && field.name() == "layer");
    net.fields = rest;
    let layers: Vec<crate::Field> = layers;
    let state = State::new(net, options);
    let (mut included, mut transforms, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for field in layers {
        let Value::Message(layer) = field.value else { continue };
        let is_included = state.includes(&layer)?;
        let transform = layer.message("transform_param").filter(|one| !one.fields().is_empty());
        if let (Some(transform), Some(top)) = (transform, layer.texts("top").first()) {
            let list = if is_included { &mut transforms } else { &mut others };
            list.push((readable(top), transform.clone()));
        }
        if is_included {
            included.push(Layer::new(*layer));
        }
    }
    Ok((included, if transforms.is_empty() { others } else { transforms }))
}

/// Checks that every bottom is an input or a top of an earlier layer, and that no two layers make
/// the same blob. Returns the outputs: blobs that no layer reads after they were last written.
fn link(layers: &[Layer], inputs: &Inputs, open: &[String]) -> Result<Vec<String>> {
    let mut read: HashMap<&str, bool> = HashMap::new();
    read.extend(inputs.known.iter().map(|input| (input.0.as_str(), true)));
    read.extend(open.iter().map(|name| (name.as_str(), true)));
    let mut readers: HashMap<&str, usize> = HashMap::new();
    for layer in layers {
        for bottom in &layer.bottoms {
            match read.get_mut(bottom.as_str()) {
                Some(read) => *read = true,
                None => return Err(inputs.missing(bottom).within(layer)),
            }
            *readers.entry(bottom).or_default() += 1;
        }
        for (index, top) in layer.tops.iter().enumerate() {
            if read.insert(top, false).is_some() && !layer.is_in_place(index) {
                return Err(Error::invalid(twice(top)).within(layer));
            }
            if readers.remove(top.as_str()).is_some_and(|readers| readers > 1) {
                return Err(Error::invalid(read_twice(top)).within(layer));
            }
        }
    }
    let unread = read.into_iter().filter(|(_, read)| !read).map(|(name, _)| name.to_owned());
    let mut outputs: Vec<String> = unread.collect();
    outputs.sort_unstable();
    Ok(outputs)
}

#[cfg(test)]
mod tests;
