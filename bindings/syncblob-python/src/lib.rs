//! The Python module `syncblob`, which wraps the crates `syncblob`, `syncblob-net` and
//! `syncblob-cli` for CPython 3.9 and later.
//!
//! While the module holds the interpreter's lock, it neither waits for the lock of a blob or a
//! model nor runs the library's work. So other Python threads can run, and the deleter of an array
//! can take the interpreter's lock without a deadlock. Deleters (owner.rs) and signal handlers
//! never run while a lock of a blob or a model is held.

mod arguments;
mod backend;
mod blob;
mod bytes;
mod calls;
mod error;
mod fill;
mod model;
mod net;
mod owner;
mod plain;
mod state_dict;
mod tensor;

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// Refuses a second interpreter, because the module's classes and objects belong to the first
/// interpreter. Does nothing on Windows, where CPython 3.9's stable interface cannot identify an
/// interpreter.
fn check_interpreter() -> PyResult<()> {
    const NONE: i64 = -1;
    static FIRST: AtomicI64 = AtomicI64::new(NONE);
    #[cfg(windows)]
    let own = NONE;
    #[cfg(not(windows))]
    // SAFETY: an interpreter is importing the module on this thread, and the thread holds its lock.
    let own = unsafe { pyo3::ffi::PyInterpreterState_GetID(pyo3::ffi::PyInterpreterState_Get()) };
    match FIRST.compare_exchange(NONE, own, Ordering::Relaxed, Ordering::Relaxed) {
        Err(first) if first != own => Err(PyImportError::new_err(
            "syncblob works in one interpreter of a process, and another one has imported it: use \
             a separate process for each",
        )),
        _ => Ok(()),
    }
}

#[pymodule]
mod _syncblob {
    use std::ffi::OsString;

    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::backend::load_backend;
    #[pymodule_export]
    use crate::blob::Blob;
    #[pymodule_export]
    use crate::blob::{from_dlpack, load_blob};
    #[pymodule_export]
    use crate::model::{load, Layer, Model, StoredBlob};
    #[pymodule_export]
    use crate::net::{Net, NetLayer};

    /// Runs the command ``syncblob`` and returns its exit status.
    #[pyfunction]
    fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
        py.detach(|| syncblob_cli::run(arguments).code())
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::check_interpreter()?;
        crate::error::share_classes(module)?;
        module.add("__version__", syncblob::version())
    }
}
