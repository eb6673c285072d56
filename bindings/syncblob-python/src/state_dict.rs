//! All blobs of a model as a dict of arrays with PyTorch's names.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use syncblob::{BlobAny, BlobAt, Model, Side};
use syncblob_cli::naming::{inverse, state_dict};

use crate::blob::Blob;
use crate::error::{refused, Failure};
use crate::model::load_any;
use crate::{calls, tensor};

/// Whose arrays the dict has.
#[derive(Clone, Copy)]
pub enum Framework {
    NumPy,
    Torch,
}

pub fn framework(py: Python<'_>, name: &str) -> PyResult<Framework> {
    match name {
        "numpy" => Ok(Framework::NumPy),
        "torch" => Ok(Framework::Torch),
        _ => {
            let text = format!("framework is numpy or torch, not {name:?}");
            Err(refused(py, "ArgumentError", &text))
        }
    }
}

/// Loads the blobs one after the other.
pub fn load(model: &Model, apply_scale: bool) -> Result<Vec<(String, BlobAny)>, Failure> {
    let entries = state_dict(model, apply_scale)?;
    let mut factors = Factors { model, last: None };
    let mut loaded = Vec::with_capacity(entries.len());
    for entry in entries {
        let mut blob = load_any(&model.blob(entry.at)?)?;
        if let Some(scale) = entry.scale {
            multiply(&mut blob, factors.of(scale)?)?;
        }
        loaded.push((entry.name, blob));
    }
    Ok(loaded)
}

/// Mean and variance have one factor.
struct Factors<'m> {
    model: &'m Model,
    last: Option<(BlobAt, f64)>,
}

impl Factors<'_> {
    fn of(&mut self, at: BlobAt) -> Result<f64, Failure> {
        if let Some((_, factor)) = self.last.filter(|(last, _)| *last == at) {
            return Ok(factor);
        }
        let factor = inverse(&load_any(&self.model.blob(at)?)?)?;
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

pub fn to_dict(
    py: Python<'_>,
    loaded: Vec<(String, BlobAny)>,
    framework: Framework,
) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    let from_dlpack = match framework {
        Framework::NumPy => None,
        Framework::Torch => Some(py.import("torch.utils.dlpack")?.getattr("from_dlpack")?),
    };
    for (name, mut blob) in loaded {
        let array = match &from_dlpack {
            Some(from_dlpack) => from_dlpack.call1((Blob::new(blob),))?,
            None => {
                let tensor = calls::to_dlpack(&mut blob, syncblob::Part::Data, Side::Host);
                let tensor = tensor.map_err(|error| crate::error::raised(py, &error))?;
                tensor::array(py, tensor, blob.dtype())?
            }
        };
        out.set_item(name, array)?;
    }
    Ok(out)
}
