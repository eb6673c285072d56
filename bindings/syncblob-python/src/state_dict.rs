//! Loads a model's blobs as arrays, one after the other.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use syncblob::{BlobAny, BlobAt, Model, Part, Side};
use syncblob_cli::naming::{self, Names};
use syncblob_net::StateTensor;

use crate::arguments::text;
use crate::blob::Blob;
use crate::error::{raised, refused, Failure};
use crate::model::load_any;
use crate::{calls, tensor};

/// The library whose arrays a state dict contains.
pub enum Framework<'py> {
    NumPy,
    /// PyTorch's function from_dlpack.
    Torch(Bound<'py, PyAny>),
}

impl<'py> Framework<'py> {
    pub fn named(py: Python<'py>, name: &str) -> PyResult<Self> {
        match name {
            "numpy" => Ok(Self::NumPy),
            "torch" => Ok(Self::Torch(py.import("torch.utils.dlpack")?.getattr("from_dlpack")?)),
            _ => {
                let text = format!("framework must be numpy or torch, not {name:?}");
                Err(refused(py, "ArgumentError", &text))
            }
        }
    }

    pub fn array(&self, py: Python<'py>, mut blob: BlobAny) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::NumPy => {
                let tensor = calls::to_dlpack(&mut blob, Part::Data, Side::Host);
                tensor::array(py, tensor.map_err(|error| raised(py, &error))?, blob.dtype())
            }
            Self::Torch(from_dlpack) => from_dlpack.call1((Blob::new(blob),)),
        }
    }
}

pub enum Entry {
    /// A tensor of PyTorch's module.
    Tensor(StateTensor),
    /// A blob of the file, unchanged.
    Blob(BlobAt),
}

impl Entry {
    pub fn load(&self, model: &Model) -> Result<BlobAny, Failure> {
        match self {
            Self::Tensor(tensor) => Ok(tensor.load(model)?),
            Self::Blob(at) => Ok(load_any(&model.blob(*at)?)?),
        }
    }
}

/// An array's name and contents.
pub type Named = (Vec<u8>, Entry);

/// Makes names such as `conv1.weight` from the layer's name and the tensor's role.
pub fn tensors(tensors: Vec<StateTensor>, names: &Names) -> Vec<Named> {
    let name = |tensor: &StateTensor| part(names, tensor.layer, &tensor.role);
    tensors.into_iter().map(|tensor| (name(&tensor), Entry::Tensor(tensor))).collect()
}

/// Makes names such as `conv1.0` from the layer's name and the blob's number.
pub fn blobs(model: &Model, names: &Names) -> Vec<Named> {
    let of_layer = |layer: syncblob::Layer<'_>| {
        let index = layer.index();
        let named = move |blob: usize| {
            let name = part(names, index, &blob.to_string());
            (name, Entry::Blob((index, blob).into()))
        };
        (0..layer.num_blobs()).map(named)
    };
    model.layers().flat_map(of_layer).collect()
}

/// Returns the blobs that belong to no layer, with their names.
pub fn others(model: &Model) -> Vec<Named> {
    let blob =
        |blob: usize| (naming::blob_name(model, blob).into_bytes(), Entry::Blob(blob.into()));
    (0..model.blobs().len()).map(blob).collect()
}

fn part(names: &Names, layer: usize, role: &str) -> Vec<u8> {
    [names.all()[layer].as_slice(), b".", role.as_bytes()].concat()
}

/// Runs Python's signal handlers before each array, so that Ctrl-C ends the call.
pub fn load<'py>(
    py: Python<'py>,
    framework: &Framework<'py>,
    entries: &[Named],
    load: impl Fn(&Entry) -> PyResult<BlobAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for (name, entry) in entries {
        py.check_signals()?;
        let array = framework.array(py, load(entry)?)?;
        out.set_item(text(py, name)?, array)?;
    }
    Ok(out)
}
