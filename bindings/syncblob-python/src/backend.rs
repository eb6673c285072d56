//! Loads backends from shared libraries.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::arguments;
use crate::error::detached;

/// Opens a shared library that contains a backend for another accelerator. Returns the backend's
/// NAME: its devices are ``"NAME:0"``, ``"NAME:1"`` and so on. Loading the same library again
/// changes nothing. The library stays open until the process ends.
///
/// The library's code runs with all rights of this process: load only files that you trust. A path
/// without a folder names a file in the current folder; no other folder is searched.
#[pyfunction]
pub fn load_backend(
    py: Python<'_>,
    #[pyo3(from_py_with = arguments::path)] path: PathBuf,
) -> PyResult<&'static str> {
    // SAFETY: as with any extension module, the caller chooses the code that runs.
    detached(py, || Ok(unsafe { syncblob::load_backend(&path) }?))
}
