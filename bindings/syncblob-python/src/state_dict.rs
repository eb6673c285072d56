//! A model's blobs as arrays, one after the other.

use pyo3::prelude::*;
use syncblob::{BlobAny, BlobAt, Model, Part, Side};
use syncblob_cli::naming::{inverse, Entry};

use crate::blob::Blob;
use crate::error::{raised, refused, Failure};
use crate::model::load_any;
use crate::{calls, tensor};

/// Whose arrays they are.
pub enum Framework<'py> {
    NumPy,
    /// By PyTorch's from_dlpack.
    Torch(Bound<'py, PyAny>),
}

impl<'py> Framework<'py> {
    pub fn named(py: Python<'py>, name: &str) -> PyResult<Self> {
        match name {
            "numpy" => Ok(Self::NumPy),
            "torch" => Ok(Self::Torch(py.import("torch.utils.dlpack")?.getattr("from_dlpack")?)),
            _ => {
                let text = format!("framework is numpy or torch, not {name:?}");
                Err(refused(py, "ArgumentError", &text))
            }
        }
    }

    /// A blob's data, in place.
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

/// Loads blobs. Mean and variance have one factor, which is read once for both.
#[derive(Default)]
pub struct Loader {
    last: Option<(BlobAt, f64)>,
}

impl Loader {
    pub fn load(&mut self, model: &Model, entry: &Entry) -> Result<BlobAny, Failure> {
        let mut blob = load_any(&model.blob(entry.at)?)?;
        if let Some(scale) = entry.scale {
            multiply(&mut blob, self.factor(model, scale)?)?;
        }
        Ok(blob)
    }

    fn factor(&mut self, model: &Model, at: BlobAt) -> Result<f64, Failure> {
        if let Some((_, factor)) = self.last.filter(|(last, _)| *last == at) {
            return Ok(factor);
        }
        let factor = inverse(&load_any(&model.blob(at)?)?)?;
        self.last = Some((at, factor));
        Ok(factor)
    }
}

/// As the converter does: in f64, rounded once.
fn multiply(blob: &mut BlobAny, factor: f64) -> Result<(), Failure> {
    match blob {
        BlobAny::F32(blob) => {
            blob.data_mut()?
                .iter_mut()
                .for_each(|value| *value = (f64::from(*value) * factor) as f32);
        }
        BlobAny::F64(blob) => blob.data_mut()?.iter_mut().for_each(|value| *value *= factor),
        _ => {} // load_any gives no other
    }
    Ok(())
}
