//! Creates bytes objects and fills them in place.

use std::mem::MaybeUninit;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{detached, Failure};

/// Makes a bytes object that `write` fills without the interpreter's lock. Returns None if `write`
/// returns false.
pub fn written<'py>(
    py: Python<'py>,
    size: usize,
    write: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<bool, Failure> + Send,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let size = ffi::Py_ssize_t::try_from(size)?;
    // SAFETY: without a source the object has uninitialised room for the bytes. `write` writes the
    // bytes before other code gets the object.
    let made = unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyBytes_FromStringAndSize(std::ptr::null(), size))?
            .cast_into_unchecked::<PyBytes>()
    };
    // SAFETY: as above, and the object lives until it is returned. If the size is 0, the object is
    // shared, but no byte is written.
    let room = unsafe {
        let start = ffi::PyBytes_AsString(made.as_ptr()).cast::<MaybeUninit<u8>>();
        std::slice::from_raw_parts_mut(start, size.unsigned_abs())
    };
    Ok(detached(py, || write(room))?.then_some(made))
}
