//! Finds the tensors to convert: the input's tensors, or a state dict with PyTorch's names.

use syncblob::{BlobAt, Element, Model};
use syncblob_net::{ErrorKind, Limits, StateTensor, StateValues};

use super::plan::{Origin, Wishes};
use super::Scheme;
use crate::source::{
    unique_names, Failure, FileFormat, Notes, Place, Result, Source, Stored, Tensor,
};
use crate::values::{each, Part, Values};

pub struct Found {
    pub tensor: Tensor,
    pub origin: Origin,
}

/// Returns the tensors to convert, and the metadata of the output.
pub fn found(source: &Source, wishes: &Wishes) -> Result<(Notes, Vec<Found>)> {
    let to_caffe = matches!(wishes.format, FileFormat::Caffe(_));
    check_scheme(source, wishes.scheme, to_caffe)?;
    let named = matches!(wishes.format, FileFormat::Safetensors | FileFormat::Npz);
    let default = if named { Scheme::Torch } else { Scheme::Caffe };
    match source.net() {
        Some(model) if wishes.scheme.unwrap_or(default) == Scheme::Torch => of_net(source, model),
        _ if to_caffe => of_caffe(source, wishes),
        _ => Ok((source.notes.clone(), all(source).collect())),
    }
}

fn check_scheme(source: &Source, scheme: Option<Scheme>, to_caffe: bool) -> Result<()> {
    let text = match scheme {
        Some(_) if !matches!(source.format, FileFormat::Caffe(_)) => {
            "its tensors have names already; --names is for Caffe's files"
        }
        Some(Scheme::Torch) if to_caffe => {
            "--names torch is for .safetensors, .npz and .npy: Caffe's files have blobs"
        }
        _ => return Ok(()),
    };
    Err(Failure::Unsupported(text.into()))
}

fn all(source: &Source) -> impl Iterator<Item = Found> + '_ {
    let tensors = source.tensors.iter().cloned().enumerate();
    tensors.map(|(index, tensor)| Found { tensor, origin: Origin::Tensor(index) })
}

/// Returns the net's weights as parameters and buffers of PyTorch's modules.
fn of_net(source: &Source, model: &Model) -> Result<(Notes, Vec<Found>)> {
    let mut notes = source.notes.clone();
    let names = unique_names(&notes.layers);
    let tensors = StateTensor::from_model(model, &Limits::default()).map_err(|error| {
        Failure::Unsupported(match error.kind() {
            ErrorKind::Weights => error.to_string(),
            _ => format!("{error}; --names caffe converts the blobs as they are"),
        })
    })?;
    let found = tensors.into_iter().map(|state| {
        let name = format!("{}.{}", names[state.layer], state.role);
        let place = note(&state, &name, &mut notes);
        let (shape, dtype) = (state.shape.clone(), Stored::As(state.dtype));
        Found { tensor: Tensor { name, place, shape, dtype }, origin: Origin::State(state) }
    });
    let found = found.collect();
    Ok((notes, found))
}

/// Records in `notes` how to convert the tensor back to a blob. Returns the blob's place, or None
/// for a constant that is not a blob.
fn note(state: &StateTensor, name: &str, notes: &mut Notes) -> Option<Place> {
    let place = |at: BlobAt| Some(Place { layer: at.layer, blob: at.index });
    match state.values {
        StateValues::Transposed(at) => {
            notes.for_torch.transposed.insert(name.to_owned());
            place(at)
        }
        StateValues::Divided { blob, .. } => {
            if let Some(layer) = blob.layer {
                notes.layers[layer].scale_applied = true;
            }
            place(blob)
        }
        StateValues::Constant(value) => {
            notes.for_torch.constants.insert(name.to_owned(), value);
            None
        }
        StateValues::Blob(at) => place(at),
        _ => None,
    }
}

/// Returns the tensors that become blobs in Caffe's file. Omits constants that only PyTorch's
/// modules need, such as the weight 1 of a BatchNorm without a Scale.
fn of_caffe(source: &Source, wishes: &Wishes) -> Result<(Notes, Vec<Found>)> {
    let mut found = Vec::new();
    let for_torch = &source.notes.for_torch;
    for one in all(source) {
        let name = &one.tensor.name;
        if !wishes.include(name) {
            found.push(one);
            continue;
        }
        if for_torch.transposed.contains(name) {
            return Err(Failure::Unsupported(format!(
                "\"{name}\" is transposed for PyTorch: the file that --names caffe makes of the \
                 .caffemodel can be converted back"
            )));
        }
        match (for_torch.constants.get(name), &one.origin) {
            (Some(value), Origin::Tensor(index)) => check_constant(source, *index, *value)?,
            _ => found.push(one),
        }
    }
    Ok((source.notes.clone(), found))
}

/// Refuses a constant whose values another program has changed.
fn check_constant(source: &Source, index: usize, value: f32) -> Result<()> {
    let blob = source.load(index)?;
    let is_same = each!(Values::of(&blob, Part::Data)?, values => {
        values.iter().all(|one| one.to_f64() == f64::from(value))
    });
    if is_same {
        return Ok(());
    }
    Err(Failure::Unsupported(format!(
        "\"{}\" is not a blob of the net, so its values must still be {value}: \
         --only can leave it out",
        source.tensors[index].name
    )))
}
