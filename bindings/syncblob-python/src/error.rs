//! Converts the library's errors to Python exceptions.

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::IntoPyDict;
use syncblob::{Dtype, Error, ErrorKind};

use crate::owner::outlived_by_owners;

/// Returns the name of a class in `errors.py`. `code` is the system's error number.
fn file_class(code: Option<i32>) -> &'static str {
    const ENOENT: i32 = 2;
    const EACCES: i32 = 13;
    match code {
        Some(ENOENT) => "MissingFileError",
        Some(EACCES) => "ForbiddenFileError",
        _ => "FileError",
    }
}

/// Returns the name of a class in `errors.py`.
fn class_name(error: &Error) -> &'static str {
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
        ErrorKind::Io => file_class(error.device_code()),
        _ => match error.code() {
            -99..=-1 => "ArgumentError",
            -199..=-100 => "DataError",
            _ => "Error",
        },
    }
}

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

/// Makes the exception for an error of a net. `path` is the path that was passed to the call, if
/// any.
fn about_net(py: Python<'_>, error: &syncblob_net::Error, path: Option<&Path>) -> PyResult<PyErr> {
    if let Some(error) = error.source().and_then(|source| source.downcast_ref::<Error>()) {
        return exception(py, error);
    }
    let system = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let device_code = system.and_then(io::Error::raw_os_error);
    let (name, code) = match error.kind() {
        syncblob_net::ErrorKind::Limit => ("LimitError", "SB_ERR_DATA_LIMIT"),
        syncblob_net::ErrorKind::Argument => ("ArgumentError", "SB_ERR_INVALID_ARGUMENT"),
        syncblob_net::ErrorKind::Unsupported => ("UnsupportedError", "SB_ERR_UNSUPPORTED"),
        syncblob_net::ErrorKind::Io => (file_class(device_code), "SB_ERR_IO"),
        _ => ("DataError", "SB_ERR_MALFORMED"),
    };
    let details = [
        ("code", code.into_pyobject(py)?.into_any()),
        ("device_code", device_code.into_pyobject(py)?),
        ("filename", path.map(Path::as_os_str).into_pyobject(py)?),
    ];
    let message = with_python(&error.to_string());
    Ok(PyErr::from_value(class(py, name)?.call((message,), Some(&details.into_py_dict(py)?))?))
}

/// Replaces the command's options in a message with the equivalent Python arguments.
fn with_python(message: &str) -> String {
    const ARGUMENTS: [(&str, &str); 2] = [("--input ", "inputs"), ("--shape ", "shapes")];
    let line = |line: &str| {
        let found = ARGUMENTS.iter().find_map(|(option, argument)| {
            let (before, name) = line.split_once(option)?;
            let name = name.strip_suffix("=SHAPE")?;
            Some(format!("{before}{argument}={{'{name}': SHAPE}}"))
        });
        found.unwrap_or_else(|| line.to_owned())
    };
    message.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the library's message, with Python's terms for functions, arguments and types.
fn message(error: &Error) -> String {
    match error.kind() {
        ErrorKind::NoDevice if error.message().contains("the context is host-only") => {
            "the blob has no device: pass device=\"cuda:0\" to make a blob that has one".to_owned()
        }
        ErrorKind::WrongDevice if error.message() == "the blobs belong to different contexts" => {
            "the blobs are on different devices".to_owned()
        }
        ErrorKind::Io => error.message().to_owned(), // the message may contain a file's name
        ErrorKind::DataLimit => with_keyword(error.message()),
        _ => with_dtypes(&error.message().replace("sb_backend_load", "syncblob.load_backend")),
    }
}

/// Adds to a message about a limit the argument that raises the limit.
fn with_keyword(message: &str) -> String {
    const KEYWORDS: [(&str, &str); 4] = [
        ("memory limit", "max_memory"),
        ("layers is exceeded", "max_layers"),
        ("blobs is exceeded", "max_blobs"),
        ("for a text", "max_name_bytes"),
    ];
    match KEYWORDS.iter().find(|(words, _)| message.contains(words)) {
        Some((_, keyword)) => format!("{message}; {keyword} of syncblob.load allows more"),
        None => message.to_owned(),
    }
}

/// Replaces the library's names of element types with NumPy's.
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

/// Shares the classes of exceptions with a second import of the package, so that existing `except`
/// clauses still catch the errors.
pub fn share_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let classes = classes(module.py())?;
    module.py().import("sys")?.getattr("modules")?.set_item(CLASSES, classes)?;
    module.add("errors", classes)
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    classes(py)?.getattr(name)
}

/// Makes an exception of class `name` for an argument that this module itself refuses.
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
    /// A net's error, and the file that the net is read from or written to.
    Net(syncblob_net::Error, Option<PathBuf>),
    /// The name of a class in `errors.py`, and the message.
    Refused(&'static str, String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<syncblob_net::Error> for Failure {
    fn from(error: syncblob_net::Error) -> Self {
        Self::Net(error, None)
    }
}

/// Runs `work` without the interpreter's lock. Only `work` may take locks of blobs and models.
pub fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    py.detach(|| outlived_by_owners(work)).map_err(|failure| match failure {
        Failure::Library(error) => raised(py, &error),
        Failure::Net(error, path) => {
            about_net(py, &error, path.as_deref()).unwrap_or_else(|failure| failure)
        }
        Failure::Refused(class, message) => refused(py, class, &message),
    })
}
