//! Errors of the library as exceptions of Python's.

use std::path::Path;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::IntoPyDict;
use syncblob::{Dtype, Error, ErrorKind};

use crate::owner::outlived_by_owners;

/// The class in `errors.py` for a kind of failure.
fn class_name(error: &Error) -> &'static str {
    const ENOENT: i32 = 2;
    const EACCES: i32 = 13;
    match error.kind() {
        ErrorKind::DtypeMismatch => "DtypeError",
        ErrorKind::IndexOutOfRange => "RangeError",
        ErrorKind::Unsupported => "UnsupportedError",
        ErrorKind::DataLimit => "LimitError",
        ErrorKind::OutOfMemory | ErrorKind::CapReached => "OutOfMemoryError",
        ErrorKind::NoDevice
        | ErrorKind::DeviceFailure
        | ErrorKind::DeviceLost
        | ErrorKind::Forked => "DeviceError",
        ErrorKind::Io => match error.device_code() {
            Some(ENOENT) => "MissingFileError",
            Some(EACCES) => "ForbiddenFileError",
            _ => "FileError",
        },
        _ => match error.code() {
            -99..=-1 => "ArgumentError",
            -199..=-100 => "DataError",
            _ => "Error",
        },
    }
}

/// The library's error as an exception.
pub fn raised(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, error).unwrap_or_else(|failure| failure)
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let details = [
        ("code", error.code_name().into_pyobject(py)?.into_any()),
        ("offset", error.offset().into_pyobject(py)?),
        ("device_code", error.device_code().into_pyobject(py)?),
        ("filename", error.path().map(Path::as_os_str).into_pyobject(py)?),
    ];
    let class = class(py, class_name(error))?;
    let value = class.call((message(error),), Some(&details.into_py_dict(py)?))?;
    Ok(PyErr::from_value(value))
}

/// The library's words, with Python's for what has another name here.
fn message(error: &Error) -> String {
    match error.kind() {
        ErrorKind::NoDevice if error.message().contains("the context is host-only") => {
            "the blob is on the host alone: device=\"cuda:0\" makes one on a device".to_owned()
        }
        ErrorKind::WrongDevice if error.message() == "the blobs belong to different contexts" => {
            "the blobs are on different devices".to_owned()
        }
        ErrorKind::Io => error.message().to_owned(), // which may hold a file's name
        ErrorKind::DataLimit => with_keyword(error.message()),
        _ => with_dtypes(error.message()),
    }
}

/// Where the library names a limit, the argument that allows more.
fn with_keyword(message: &str) -> String {
    const KEYWORDS: [(&str, &str); 4] = [
        ("memory limit", "max_memory"),
        ("layers than the limit", "max_layers"),
        ("blobs than the limit", "max_blobs"),
        ("for a text", "max_name_bytes"),
    ];
    match KEYWORDS.iter().find(|(words, _)| message.contains(words)) {
        Some((_, keyword)) => format!("{message}; {keyword} of syncblob.load allows more"),
        None => message.to_owned(),
    }
}

/// The names of element types that the library has, as NumPy's.
fn with_dtypes(message: &str) -> String {
    let pieces = message.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let renamed = pieces.map(|piece| {
        let word = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        match word.parse::<Dtype>() {
            Ok(dtype) => [dtype.numpy_name(), &piece[word.len()..]].concat(),
            Err(_) => piece.to_owned(),
        }
    });
    renamed.collect()
}

const CLASSES: &str = "syncblob.errors";

fn classes(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    Ok(MODULE.get_or_try_init(py, || py.import(CLASSES).map(Bound::unbind))?.bind(py))
}

/// The classes are there once in a process: a package that is imported anew has those that others
/// catch already.
pub fn share_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let classes = classes(module.py())?;
    module.py().import("sys")?.getattr("modules")?.set_item(CLASSES, classes)?;
    module.add("errors", classes)
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    classes(py)?.getattr(name)
}

/// What this module itself refuses, in the same classes and with the library's codes.
pub fn refused(py: Python<'_>, name: &str, message: &str) -> PyErr {
    let code = match name {
        "DtypeError" => "SB_ERR_DTYPE_MISMATCH",
        "RangeError" => "SB_ERR_INDEX_OUT_OF_RANGE",
        _ => "SB_ERR_INVALID_ARGUMENT",
    };
    let made = [("code", code)].into_py_dict(py).and_then(|details| {
        let value = class(py, name)?.call((message,), Some(&details))?;
        Ok(PyErr::from_value(value))
    });
    made.unwrap_or_else(|failure| failure)
}

/// A failure of work that is done without the interpreter's lock.
pub enum Failure {
    Library(Error),
    /// A class in `errors.py`, and why.
    Refused(&'static str, String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

/// Does work without the interpreter's lock. Locks of blobs and models are taken nowhere else.
pub fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    py.detach(|| outlived_by_owners(work)).map_err(|failure| match failure {
        Failure::Library(error) => raised(py, &error),
        Failure::Refused(class, message) => refused(py, class, &message),
    })
}
