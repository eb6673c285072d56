//! Assigns the blobs of a model to the layers of a net, by the names of the layers and of shared
//! blobs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use syncblob::{BlobAt, Format, Model};

use crate::layers::{count, fill};
use crate::message::Message;
use crate::net::{Layer, Net, Shape};
use crate::onnx::Weights;
use crate::{Error, Result};

/// The weights that a model contains for one layer of a net.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored {
    /// The index of the model's layer with the same name, if the model has such a layer.
    layer: Option<usize>,
    /// The shapes of this layer's blobs.
    pub shapes: Vec<Shape>,
    forms: Vec<Form>,
    /// Where the model stores the layer's blobs, including blobs that are shared with other layers.
    blobs: Vec<BlobAt>,
    /// Whether an earlier layer of the net has the same name, and gets the weights instead.
    taken: bool,
}

#[derive(Clone, Copy, Debug)]
struct Form {
    /// Whether an old version of Caffe wrote the blob, which may have additional leading 1s in its
    /// shape.
    legacy: bool,
    /// Whether the model contains all values of the blob.
    whole: bool,
}

impl Net {
    /// Adds the weights of a model. The net's first layer of each name gets the weights of the
    /// model's layer of that name. [`to_onnx`](Net::to_onnx) checks the shapes of the weights.
    ///
    /// # Errors
    /// - [`Unsupported`](crate::ErrorKind::Unsupported) for a file that does not contain a net.
    /// - [`Invalid`](crate::ErrorKind::Invalid) if no layer of the net has weights in the model.
    ///   Also if the model lacks a layer's weights, but has unused weights of the same shapes: the
    ///   layer's name may be misspelled.
    /// - [`Weights`](crate::ErrorKind::Weights) if the model's file cannot be read.
    pub fn with_weights(mut self, model: Arc<Model>) -> Result<Self> {
        check_format(&model)?;
        let mut first: HashMap<&str, usize> = HashMap::new();
        for (at, layer) in self.layers.iter().enumerate() {
            first.entry(&layer.name).or_insert(at);
        }
        let mut stored = vec![Stored::default(); self.layers.len()];
        let mut unknown = Vec::new();
        for layer in &*model {
            match first.get(&*layer.name()) {
                Some(&at) => stored[at] = Stored::of(&layer)?,
                None if layer.num_blobs() > 0 => unknown.push((layer.name(), Stored::of(&layer)?)),
                None => {}
            }
        }
        self.check_any(&stored, unknown.first().map(|(name, _)| name))?;
        share(&self.layers, &mut stored);
        for (at, stored) in stored.iter_mut().enumerate() {
            stored.taken = first.get(&*self.layers[at].name).is_some_and(|&first| first != at);
        }
        for (name, _) in &unknown {
            let name = name.escape_default();
            self.warn(format!("the net has no layer '{name}': the model's layer was left out"));
        }
        self.stored = stored;
        self.warn_of_filled(&unknown)?;
        self.model = Some(model);
        Ok(self)
    }

    /// Refuses a model without weights for the net's layers, if the net needs weights.
    fn check_any(&self, stored: &[Stored], unknown: Option<&Cow<'_, str>>) -> Result<()> {
        let Some(unknown) = unknown else { return Ok(()) };
        let some = stored.iter().any(|stored| !stored.blobs.is_empty());
        if some || self.shapes().weights.iter().all(Vec::is_empty) {
            return Ok(());
        }
        Err(Error::invalid(format_args!(
            "the model is of another net: this net lacks the model's weighted layers, such as '{}'",
            unknown.escape_default()
        )))
    }

    /// Warns about each layer whose weights are computed by its fillers, because the model lacks
    /// them. Fails if unused weights of the model have the shapes that the layer needs: the layer's
    /// name may be misspelled.
    fn warn_of_filled(&mut self, left_out: &[(Cow<'_, str>, Stored)]) -> Result<()> {
        for (at, needed) in self.shapes().weights.iter().enumerate() {
            let (layer, stored) = (&self.layers[at], &self.stored[at]);
            if !stored.lacks(needed.len()) || stored.check_fillers(layer, needed.len()).is_err() {
                continue;
            }
            let why = stored.why();
            if let Some((name, _)) = left_out.iter().find(|(_, left)| left.check(needed).is_ok()) {
                let name = name.escape_default();
                let text = format_args!(
                    "{why}, but the model has weights of this shape for '{name}', which the net \
                     lacks: give both layers the same name"
                );
                return Err(Error::invalid(text).within(layer));
            }
            self.warn(format!("{layer}: {why}: its fillers make the weights"));
        }
        Ok(())
    }

    /// Returns the weights of a layer, if the net has a model.
    pub(crate) fn weights(&self, layer: usize) -> Option<Weights<'_>> {
        let model = self.model.as_deref()?;
        Some(Weights { model, blobs: &self.stored.get(layer)?.blobs })
    }

    /// Checks the shapes of a layer's blobs in the model.
    pub(crate) fn check_weights(&self, at: usize, needed: &[Shape]) -> Result<()> {
        match self.stored.get(at) {
            Some(stored) if stored.lacks(needed.len()) => {
                stored.check_fillers(&self.layers[at], needed.len())
            }
            Some(stored) => stored.check(needed),
            None => Ok(()),
        }
    }
}

impl Stored {
    fn of(layer: &syncblob::Layer<'_>) -> Result<Self> {
        let mut stored = Self { layer: Some(layer.index()), ..Self::default() };
        for blob in layer.blobs() {
            let blob = blob?;
            let info = blob.info();
            stored.shapes.push(info.shape().iter().map(|&dim| dim as i64).collect());
            let (legacy, whole) = (info.is_legacy(), info.data_count() == info.count());
            stored.forms.push(Form { legacy, whole });
            stored.blobs.push(blob.at());
        }
        Ok(stored)
    }

    /// Returns whether blobs of this layer are missing: the model has no layer of this name, and
    /// other layers share fewer than `needed` blobs with this layer.
    fn lacks(&self, needed: usize) -> bool {
        self.layer.is_none() && self.blobs.len() < needed
    }

    fn why(&self) -> &'static str {
        match self.taken {
            true => "the model's weights belong to the first layer of this name",
            false => "the model has no weights for it",
        }
    }

    /// Checks that the layer's fillers can compute the missing blobs. A random filler cannot.
    fn check_fillers(&self, layer: &Layer, needed: usize) -> Result<()> {
        let (why, lacking) = (self.why(), self.blobs.len()..needed);
        if shared_names(layer).any(|(index, _)| lacking.contains(&index)) {
            return Err(Error::invalid(format_args!("{why}, and no copy of the blobs it shares")));
        }
        for index in lacking {
            if let Err(reason) = fill::filler(layer, index, needed) {
                return Err(Error::invalid(format_args!("{why}, and {reason}")));
            }
        }
        Ok(())
    }

    fn check(&self, needed: &[Shape]) -> Result<()> {
        if self.layer.is_some() && self.shapes.len() != needed.len() {
            let (has, needs) = (self.shapes.len(), needed.len());
            return Err(Error::invalid(format_args!(
                "the model has {has} blobs for it, but it needs {needs}"
            )));
        }
        for (index, (shape, form)) in self.shapes.iter().zip(&self.forms).enumerate() {
            if !same_shape(shape, form.legacy, &needed[index]) {
                return Err(Error::invalid(format_args!(
                    "its blob {index} is {shape:?} in the model, but must be {:?}",
                    needed[index]
                )));
            }
            if !form.whole {
                let text = format_args!("its blob {index} has no values in the model");
                return Err(Error::invalid(text));
            }
        }
        Ok(())
    }
}

/// Refuses a file that does not contain a net.
pub(crate) fn check_format(model: &Model) -> Result<()> {
    let what = match model.format() {
        Format::Caffemodel => return Ok(()),
        Format::Blob => "one blob, such as a mean",
        Format::BlobVector => "a list of blobs",
        Format::Solverstate => "the state of a solver",
        _ => "of another format",
    };
    Err(Error::unsupported(format_args!("the model is not a net: it is {what}")))
}

/// Compares shapes by Caffe's rule: an old file's shape may have additional leading 1s.
fn same_shape(stored: &[i64], legacy: bool, needed: &[i64]) -> bool {
    match stored.len().checked_sub(needed.len()) {
        Some(more) if legacy => {
            stored[more..] == *needed && stored[..more].iter().all(|&dim| dim == 1)
        }
        _ => stored == needed,
    }
}

/// Returns the index and the `param` of each blob that has a name. Layers share blobs by these
/// names.
fn shared_names(layer: &Layer) -> impl Iterator<Item = (usize, &Message)> {
    let parameters = layer.message.messages("param").enumerate();
    parameters.filter(|(_, parameters)| !parameters.text("name").is_empty())
}

/// Assigns to layers that share a blob the last copy that the model stores for one of them. Caffe
/// reads every copy into the shared memory, so the last copy remains.
fn share(layers: &[Layer], stored: &mut [Stored]) {
    let mut last: HashMap<&[u8], BlobAt> = HashMap::new();
    for (layer, stored) in layers.iter().zip(&*stored) {
        for (blob, parameters) in shared_names(layer) {
            if let Some(at) = stored.blobs.get(blob) {
                let known = last.entry(parameters.text("name")).or_insert(*at);
                if (known.layer, known.index) < (at.layer, at.index) {
                    *known = *at;
                }
            }
        }
    }
    for (layer, stored) in layers.iter().zip(stored) {
        for (blob, parameters) in shared_names(layer) {
            let Some(shared) = last.get(parameters.text("name")) else { continue };
            if blob == stored.blobs.len() {
                stored.blobs.push(*shared);
            } else if let Some(own) = stored.blobs.get_mut(blob) {
                *own = *shared;
            }
        }
    }
}

/// Maps the name of each shared blob to the shape of the blob in the first layer that has it.
#[derive(Default)]
pub(crate) struct Shared<'n>(HashMap<&'n [u8], Shape>);

impl<'n> Shared<'n> {
    /// Checks that a layer's named blobs have the shapes of earlier blobs with the same names.
    pub fn check(&mut self, layer: &'n Layer, blobs: &[Shape]) -> Result<()> {
        for (blob, parameters) in shared_names(layer) {
            let Some(shape) = blobs.get(blob) else { break };
            let name = parameters.text("name");
            let owner = self.0.entry(name).or_insert_with(|| shape.clone());
            let same = match parameters.enumeration("share_mode") {
                "PERMISSIVE" => count(owner)? == count(shape)?,
                _ => owner == shape,
            };
            if !same {
                let name = name.escape_ascii();
                return Err(Error::invalid(format_args!(
                    "its blob {blob} is {shape:?}, but the shared blob '{name}' is {owner:?}"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
