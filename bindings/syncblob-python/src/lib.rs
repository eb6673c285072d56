//! The Python module `syncblob`: the crates `syncblob` and `syncblob-cli` for CPython 3.9
//! and later.
//!
//! No lock of a blob or a model is waited for, nor work of the library's done, with the
//! interpreter's lock held: other threads of Python's run meanwhile, and a deleter of
//! somebody's array, which takes that lock, cannot wait for one that waits for it. Nor is such a
//! deleter called with a lock of a blob or a model held: owner.rs.

mod arguments;
mod blob;
mod calls;
mod error;
mod fill;
mod model;
mod owner;
mod state_dict;
mod tensor;

use pyo3::prelude::*;

#[pymodule]
mod _syncblob {
    use std::ffi::OsString;

    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::blob::Blob;
    #[pymodule_export]
    use crate::blob::{from_dlpack, load_blob};
    #[pymodule_export]
    use crate::model::{load, Layer, Model, StoredBlob};

    /// Runs the command ``syncblob`` and gives its exit status.
    #[pyfunction]
    fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
        py.detach(|| syncblob_cli::run(arguments).code())
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", syncblob::version())
    }
}
