//! Converts the weights of a net to the names, shapes and values of PyTorch's modules.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use syncblob::{Blob, BlobAny, BlobAt, Dtype, Model};

use crate::message::Value;
use crate::net::Layer;
use crate::{Limits, Net, Result, Upgraded};

/// How a blob becomes a tensor in PyTorch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The blob is unchanged.
    Same,
    /// The tensor has one axis. In an old file, the blob has three axes of size 1 before this axis.
    Vector,
    /// The tensor's axes are outputs and inputs. In an old file, the blob has two axes of size 1
    /// before these axes.
    Matrix,
    /// A mean or a variance: the blob is a sum that must be divided by the layer's third blob.
    Mean,
    /// Not a tensor: the divisor of the sums for the mean and the variance.
    Factor,
}

use Form::{Factor, Matrix, Mean, Same, Vector};

/// A layer type, with the PyTorch name and the form of each of its blobs.
type Row = (&'static str, &'static [(&'static str, Form)]);

const CONVOLUTION: &[(&str, Form)] = &[("weight", Same), ("bias", Vector)];

/// Known layer types. A blob that has no entry here is named by its index.
static ROWS: &[Row] = &[
    (
        "BN",
        &[("weight", Vector), ("bias", Vector), ("running_mean", Vector), ("running_var", Vector)],
    ),
    (BATCH_NORM, BATCH_NORM_BLOBS),
    ("Bias", &[("bias", Same)]),
    ("Convolution", CONVOLUTION),
    ("Convolution3D", CONVOLUTION),
    ("ConvolutionDepthwise", CONVOLUTION),
    ("Deconvolution", CONVOLUTION),
    ("DepthwiseConvolution", CONVOLUTION),
    ("Embed", &[("weight", Matrix), ("bias", Vector)]),
    ("InnerProduct", &[("weight", Matrix), ("bias", Vector)]),
    ("Normalize", &[("weight", Vector)]),
    ("NormalizeBBox", &[("weight", Vector)]),
    ("PReLU", &[("weight", Vector)]),
    ("Scale", &[("weight", Same), ("bias", Same)]),
];

const BATCH_NORM: &str = "BatchNorm";

/// The blobs of a BatchNorm: in Caffe the first three, in NVCaffe possibly all five. With five
/// blobs, the divisor is 1.
const BATCH_NORM_BLOBS: &[(&str, Form)] = &[
    ("running_mean", Mean),
    ("running_var", Mean),
    ("", Factor),
    ("weight", Vector),
    ("bias", Vector),
];

/// The number of blobs of a BatchNorm without a weight and a bias.
const WITHOUT_SCALE: usize = 3;

fn row(layer: &Layer) -> &'static [(&'static str, Form)] {
    let layer_type = match (layer.layer_type(), layer.bottoms().len()) {
        ("Scale", 2) => "Bias", // the only blob of a Scale with two bottoms is the bias
        (layer_type, _) => layer_type,
    };
    ROWS.iter().find(|row| row.0 == layer_type).map_or(&[], |row| row.1)
}

/// A tensor of a net's state dict. The values are loaded by [`load`](StateTensor::load).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StateTensor {
    /// The index of the layer that the tensor is named after. The index counts in [`Net::layers`],
    /// or in the model for [`from_model`](StateTensor::from_model).
    pub layer: usize,
    /// The role of the tensor in the layer: `weight`, `bias`, `running_mean`, `running_var`, or the
    /// index of the blob if PyTorch has no module for the layer.
    pub role: Cow<'static, str>,
    /// The dimensions.
    pub shape: Vec<usize>,
    /// The element type that the tensor has when it is loaded.
    pub dtype: Dtype,
    /// The source of the values.
    pub values: StateValues,
}

/// The source of the values of a [`StateTensor`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum StateValues {
    /// The values of a blob, in the same order.
    Blob(BlobAt),
    /// The values of a matrix, with its axes swapped.
    Transposed(BlobAt),
    /// The values of a blob, divided by the value of another blob. As in Caffe, the results are 0
    /// if the divisor is 0.
    Divided {
        /// The blob with the values.
        blob: BlobAt,
        /// The blob with the divisor, which is one value.
        by: BlobAt,
    },
    /// The same value for all elements.
    Constant(f32),
}

impl Net {
    /// Returns the weights as PyTorch's modules store them, but does not load the values.
    ///
    /// A BatchNorm and the Scale after it become one PyTorch module, with the BatchNorm's name. If
    /// there is no Scale, the module's weight is 1. Without a Scale that has a bias, the module's
    /// bias is 0. Blobs of Convolution, Deconvolution, Embed, InnerProduct, PReLU and other layers
    /// keep their values. These blobs are reshaped to the number of axes that PyTorch expects.
    ///
    /// # Errors
    /// [`Weights`](crate::ErrorKind::Weights) if the model's file cannot be read.
    pub fn state_dict(&self) -> Result<Vec<StateTensor>> {
        let Some(model) = self.model.as_deref() else { return Ok(Vec::new()) };
        let blobs = (0..self.layers.len()).map(|at| self.weights(at).map_or(&[][..], |w| w.blobs));
        let layers = self.layers.iter().zip(blobs).enumerate();
        let layers =
            layers.map(|(index, (layer, blobs))| Entry { index, layer, blobs: blobs.into() });
        tensors(model, &layers.collect::<Vec<_>>())
    }
}

impl StateTensor {
    /// Returns the weights of all layers of a model, whatever their phase. Needs neither a net nor
    /// the shapes of inputs. If the model does not contain the names of the layers' inputs and
    /// outputs, a BatchNorm and the Scale after it stay separate.
    ///
    /// # Errors
    /// All errors of [`Upgraded::from_model`].
    pub fn from_model(model: &Model, limits: &Limits) -> Result<Vec<Self>> {
        if model.num_layers() == 0 {
            return Ok(Vec::new());
        }
        let net = Upgraded::from_model(model, limits)?.net;
        let mut indices: HashMap<&[u8], VecDeque<usize>> = HashMap::new();
        for layer in model {
            indices.entry(layer.name_bytes()).or_default().push_back(layer.index());
        }
        let mut layers = Vec::new();
        for field in net.fields {
            let Value::Message(message) = field.value else { continue };
            if message.type_name() != "LayerParameter" {
                continue;
            }
            let of_name = indices.get_mut(message.text("name"));
            // Skips a layer that the upgrade added for an input, because the model does not contain
            // the layer.
            if let Some(index) = of_name.and_then(VecDeque::pop_front) {
                layers.push((index, Layer::new(*message), model.layer(index)?.num_blobs()));
            }
        }
        let entries = layers.iter().map(|(index, layer, count)| {
            let blobs = (0..*count).map(|blob| (*index, blob).into()).collect();
            Entry { index: *index, layer, blobs }
        });
        tensors(model, &entries.collect::<Vec<_>>())
    }

    /// Loads the tensor from its model, in the model's context.
    ///
    /// # Errors
    /// All errors of [`StoredBlob::load`](syncblob::StoredBlob::load).
    pub fn load(&self, model: &Model) -> syncblob::Result<BlobAny> {
        let load = |at| model.blob(at)?.load_as(model.context(), self.dtype);
        let mut blob = match self.values {
            StateValues::Constant(value) => Blob::full(self.shape.as_slice(), value)?.into(),
            StateValues::Blob(at) => load(at)?,
            StateValues::Transposed(at) => transposed(load(at)?)?,
            StateValues::Divided { blob, by } => divided(load(blob)?, &load(by)?)?,
        };
        if blob.count() == self.shape.iter().product::<usize>() {
            blob.reshape(self.shape.as_slice())?; // the counts differ only if the model has changed
        }
        Ok(blob)
    }
}

/// A layer and its blobs.
struct Entry<'a> {
    index: usize,
    layer: &'a Layer,
    blobs: Cow<'a, [BlobAt]>,
}

impl Entry<'_> {
    fn is(&self, layer_type: &str) -> bool {
        self.layer.layer_type() == layer_type
    }
}

/// Returns the tensors of layers, in the order of the layers.
fn tensors(model: &Model, layers: &[Entry<'_>]) -> Result<Vec<StateTensor>> {
    let scales = scales(model, layers)?;
    let joined: HashSet<usize> = scales.values().copied().collect();
    let mut tensors = Vec::new();
    for (at, entry) in layers.iter().enumerate().filter(|(at, _)| !joined.contains(at)) {
        if entry.is(BATCH_NORM) && (2..=WITHOUT_SCALE).contains(&entry.blobs.len()) {
            let scale = scales.get(&at).map(|scale| &*layers[*scale].blobs);
            tensors.extend(affine(model, entry, scale.unwrap_or_default())?);
        }
        for number in 0..entry.blobs.len() {
            tensors.extend(tensor(model, entry, number)?);
        }
    }
    Ok(tensors)
}

/// Maps a BatchNorm without a weight to the Scale layer that is the only reader of its top. Ignores
/// a Scale unless it has one factor for each channel.
fn scales(model: &Model, layers: &[Entry<'_>]) -> Result<HashMap<usize, usize>> {
    let mut last: HashMap<&str, usize> = HashMap::new();
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); layers.len()];
    for (at, entry) in layers.iter().enumerate() {
        for bottom in entry.layer.bottoms() {
            if let Some(writer) = last.get(bottom.as_str()) {
                readers[*writer].push(at);
            }
        }
        last.extend(entry.layer.tops().iter().map(|top| (top.as_str(), at)));
    }
    let mut scales = HashMap::new();
    for (at, readers) in readers.iter().enumerate() {
        if let [scale] = readers[..] {
            if is_joined(model, &layers[at], &layers[scale])? {
                scales.insert(at, scale);
            }
        }
    }
    Ok(scales)
}

fn is_joined(model: &Model, norm: &Entry<'_>, scale: &Entry<'_>) -> Result<bool> {
    let (BATCH_NORM, 2..=WITHOUT_SCALE) = (norm.layer.layer_type(), norm.blobs.len()) else {
        return Ok(false);
    };
    let Some(factors) = scale.blobs.first().filter(|_| is_of_channels(scale.layer)) else {
        return Ok(false);
    };
    Ok(model.blob(norm.blobs[0])?.info().count() == model.blob(*factors)?.info().count())
}

/// Returns whether a layer scales its only bottom by one factor for each channel.
fn is_of_channels(layer: &Layer) -> bool {
    let parameters = layer.message().message("scale_param");
    layer.layer_type() == "Scale"
        && layer.bottoms().len() == 1
        && parameters.is_none_or(|p| (p.int("axis"), p.int("num_axes")) == (1, 1))
}

/// Returns a BatchNorm's weight and bias: the blobs of its Scale, or constants for missing blobs.
fn affine(model: &Model, norm: &Entry<'_>, scale: &[BlobAt]) -> Result<[StateTensor; 2]> {
    let channels = model.blob(norm.blobs[0])?.info().count();
    let of = |number: usize, role: &'static str, value| -> Result<StateTensor> {
        let (dtype, values) = match scale.get(number) {
            Some(at) => (dtype(model, *at)?, StateValues::Blob(*at)),
            None => (Dtype::F32, StateValues::Constant(value)),
        };
        let (layer, role) = (norm.index, role.into());
        Ok(StateTensor { layer, role, shape: vec![channels], dtype, values })
    };
    Ok([of(0, "weight", 1.0)?, of(1, "bias", 0.0)?])
}

/// Returns a blob of a layer as a tensor, or `None` if PyTorch has no such tensor.
fn tensor(model: &Model, entry: &Entry<'_>, number: usize) -> Result<Option<StateTensor>> {
    let at = entry.blobs[number];
    let info = *model.blob(at)?.info();
    let (role, form) = match row(entry.layer).get(number) {
        Some(&(role, form)) => (role.into(), form),
        None => (number.to_string().into(), Same),
    };
    let factor = entry.blobs.get(WITHOUT_SCALE - 1);
    let mut shape = match form {
        Factor => return Ok(None),
        Vector | Mean => vec![info.count()],
        Matrix => without_ones(info.shape()).to_vec(),
        Same => info.shape().to_vec(),
    };
    let values = match (form, factor) {
        (Matrix, _) if is_transposed(entry.layer) && shape.len() == 2 => {
            shape.swap(0, 1);
            StateValues::Transposed(at)
        }
        (Mean, Some(&by)) if model.blob(by)?.info().count() == 1 => {
            StateValues::Divided { blob: at, by }
        }
        _ => StateValues::Blob(at),
    };
    let dtype = dtype(model, at)?;
    Ok(Some(StateTensor { layer: entry.index, role, shape, dtype, values }))
}

/// Returns the element type in which the blob's values are loaded without rounding.
fn dtype(model: &Model, at: BlobAt) -> Result<Dtype> {
    let stored = model.blob(at)?.info().dtype();
    Ok(stored.exact_float().unwrap_or(stored))
}

/// Returns the last two axes if all other axes have size 1, or else all axes.
fn without_ones(shape: &[usize]) -> &[usize] {
    match shape.len().checked_sub(2) {
        Some(more) if shape[..more].iter().all(|&dim| dim == 1) => &shape[more..],
        _ => shape,
    }
}

fn is_transposed(layer: &Layer) -> bool {
    layer.message().message("inner_product_param").is_some_and(|p| p.bool("transpose"))
}

/// Swaps the axes of a matrix.
fn transposed(mut blob: BlobAny) -> syncblob::Result<BlobAny> {
    let columns = blob.shape().last().copied().unwrap_or(1).max(1);
    match &mut blob {
        BlobAny::F32(blob) => swap_axes(blob.data_mut()?, columns),
        BlobAny::F64(blob) => swap_axes(blob.data_mut()?, columns),
        _ => {} // only floats are loaded
    }
    Ok(blob)
}

fn swap_axes<T: Copy>(values: &mut [T], columns: usize) {
    let from = values.to_vec();
    let column = |column| from.iter().skip(column).step_by(columns);
    let swapped = (0..columns).flat_map(column);
    values.iter_mut().zip(swapped).for_each(|(value, swapped)| *value = *swapped);
}

/// Divides a blob by another blob's value. Multiplies by the inverse, to round as Caffe does.
fn divided(mut blob: BlobAny, by: &BlobAny) -> syncblob::Result<BlobAny> {
    let inverse = match by {
        BlobAny::F32(by) if by.data()?[0] != 0.0 => f64::from(by.data()?[0].recip()),
        BlobAny::F64(by) if by.data()?[0] != 0.0 => by.data()?[0].recip(),
        _ => 0.0,
    };
    match &mut blob {
        #[allow(clippy::cast_possible_truncation)] // rounded once, like the product of two f32
        BlobAny::F32(blob) => {
            let values = blob.data_mut()?.iter_mut();
            values.for_each(|value| *value = (f64::from(*value) * inverse) as f32);
        }
        BlobAny::F64(blob) => blob.data_mut()?.iter_mut().for_each(|value| *value *= inverse),
        _ => {} // only floats are loaded
    }
    Ok(blob)
}

#[cfg(test)]
mod tests;
