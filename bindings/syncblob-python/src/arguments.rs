//! Converts Python arguments: element types, shapes, devices, bytes, limits.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyMemoryView, PySet, PyString, PyTuple, PyType,
};
use syncblob::{Context, Dtype, Format, Limits, OpenOptions, Shape};

use crate::error::{detached, refused, Failure};

/// Accepts a name, a type such as `numpy.float32`, an object whose text is a name (`numpy.dtype`,
/// `torch.dtype`), and a value that `numpy.dtype` accepts (`"f4"`).
pub fn dtype(value: &Bound<'_, PyAny>) -> PyResult<Dtype> {
    let text = match value.cast::<PyType>() {
        Ok(class) => class.name()?,
        Err(_) => value.str()?,
    };
    let text = text.to_string_lossy();
    let name = text.strip_prefix("torch.").unwrap_or(&text);
    let found = named(name).or_else(|| named(&numpys_name(value)?));
    found.ok_or_else(|| no_dtype(value.py(), name))
}

pub fn named(name: &str) -> Option<Dtype> {
    Dtype::ALL.iter().copied().find(|dtype| dtype.numpy_name() == name)
}

pub fn no_dtype(py: Python<'_>, name: &str) -> PyErr {
    let known: Vec<_> = Dtype::ALL.iter().map(|dtype| dtype.numpy_name()).collect();
    let known = known.join(", ");
    refused(py, "DtypeError", &format!("blobs do not support {name}; the types are {known}"))
}

/// Returns NumPy's name of a type, or `None` if NumPy is missing or cannot convert the value.
fn numpys_name(value: &Bound<'_, PyAny>) -> Option<String> {
    let made = value.py().import("numpy").ok()?.call_method1("dtype", (value,)).ok()?;
    Some(made.str().ok()?.to_string_lossy().into_owned())
}

/// Accepts `(2, 3)`, `[2, 3]` and `6`. Refuses bytes, dicts, sets and booleans, which Python could
/// convert to dimensions.
pub fn shape(value: &Bound<'_, PyAny>) -> PyResult<Shape> {
    let is_mistake = value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.is_instance_of::<PyBool>()
        || value.is_instance_of::<PyDict>()
        || value.is_instance_of::<PySet>();
    if is_mistake {
        let text = format!("a shape is a number or several, not {}", value.get_type().name()?);
        return Err(PyTypeError::new_err(text));
    }
    let Ok(items) = value.try_iter() else {
        return Ok([dimension(value)?].into());
    };
    let mut dims = Vec::new();
    for item in items {
        dims.push(dimension(&item?)?);
        if dims.len() > Shape::MAX_AXES {
            break; // the library refuses so many axes
        }
    }
    Ok(dims.into())
}

/// Accepts the arguments of `reshape(2, 3)` and of `reshape((2, 3))`.
pub fn shape_of_call(arguments: &Bound<'_, PyTuple>) -> PyResult<Shape> {
    match arguments.len() {
        1 => shape(&arguments.get_item(0)?),
        _ => shape(arguments),
    }
}

fn dimension(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    number("a dimension", value)
}

/// Converts a number. Raises a ValueError if the number is out of range.
pub fn number<'py, T>(what: &str, value: &Bound<'py, PyAny>) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    fitting(what, value, value.extract())
}

/// Returns `made`, the result of converting `value`. Replaces an OverflowError with a ValueError.
pub fn fitting<T>(what: &str, value: &Bound<'_, PyAny>, made: PyResult<T>) -> PyResult<T> {
    made.map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            return refused(value.py(), "ArgumentError", &format!("{what} out of range: {value}"));
        }
        error
    })
}

/// Decodes bytes that are not UTF-8 as `os.fsdecode` does, so that different texts stay different.
pub fn text<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text)),
        Err(_) => {
            let bytes = PyBytes::new(py, bytes);
            PyString::from_encoded_object(&bytes, Some(c"utf-8"), Some(c"surrogateescape"))
        }
    }
}

/// Encodes a text as bytes: the inverse of the function `text`.
pub fn bytes(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let text = value.cast::<PyString>()?;
    let bytes = text.call_method1("encode", ("utf-8", "surrogateescape"))?;
    Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec())
}

pub fn path(value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    value.py().import("os")?.call_method1("fsdecode", (value,))?.extract()
}

struct Contexts {
    process: u32,
    by_device: Mutex<HashMap<String, Context>>,
}

/// Returns the contexts of this process. A child of fork gets an empty map, and leaks the parent's
/// map: its contexts are unusable, and its lock may be held by a thread of the parent.
fn contexts() -> &'static Mutex<HashMap<String, Context>> {
    static CONTEXTS: AtomicPtr<Contexts> = AtomicPtr::new(std::ptr::null_mut());
    let process = std::process::id();
    let mut known = CONTEXTS.load(Ordering::Acquire);
    loop {
        // SAFETY: the pointer is null, or was stored below, and stored contexts are never freed.
        match unsafe { known.as_ref() } {
            Some(contexts) if contexts.process == process => return &contexts.by_device,
            _ => {}
        }
        let made = Box::into_raw(Box::new(Contexts { process, by_device: Mutex::default() }));
        let set = CONTEXTS.compare_exchange(known, made, Ordering::AcqRel, Ordering::Acquire);
        known = match set {
            Ok(_) => made,
            Err(other) => {
                // SAFETY: `made` was not stored, so it has no other owner.
                drop(unsafe { Box::from_raw(made) });
                other
            }
        };
    }
}

/// Accepts `"cpu"`, `"cuda:0"`, `"sim:0"` and `"NAME:0"`. A process has one context for each
/// device.
pub fn context(device: &str) -> Result<Context, Failure> {
    if device == "cpu" {
        return Ok(Context::host());
    }
    let mut contexts = contexts().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(context) = contexts.get(device) {
        return Ok(context.clone());
    }
    let context = Context::builder().device(device).build()?;
    contexts.insert(device.to_owned(), context.clone());
    Ok(context)
}

pub enum Source {
    Path(PathBuf),
    Bytes(PyBackedBytes),
}

/// Converts a `str` or an `os.PathLike` to a path, and a bytes-like object to a file's content.
/// Reads an open file.
pub fn source(value: &Bound<'_, PyAny>) -> PyResult<Source> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Source::Bytes(bytes.clone().into()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        if text.to_string_lossy().contains(['\n', '{']) {
            let text = "a str must be a path, but this is a file's text: pass it as bytes";
            return Err(refused(value.py(), "ArgumentError", text));
        }
    }
    if value.is_instance_of::<PyString>() || value.hasattr("__fspath__")? {
        return path(value).map(Source::Path);
    }
    let Ok(view) = PyMemoryView::from(value) else {
        return read(value).map(Source::Bytes);
    };
    let bytes = view.call_method0("tobytes")?;
    Ok(Source::Bytes(bytes.cast_into::<PyBytes>()?.into()))
}

fn read(file: &Bound<'_, PyAny>) -> PyResult<PyBackedBytes> {
    if !file.hasattr("read")? {
        let kind = file.get_type();
        let text = format!("load needs a path, bytes or an open file, not {}", kind.name()?);
        return Err(PyTypeError::new_err(text));
    }
    let content = file.call_method0("read")?;
    match content.cast_into::<PyBytes>() {
        Ok(content) => Ok(content.into()),
        Err(_) => Err(PyTypeError::new_err("read() must return bytes: open it with mode \"rb\"")),
    }
}

/// Refuses extensions of formats other than Caffe's.
pub fn saved_path(value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    const OTHERS: [(&str, &str); 9] = [
        ("safetensors", CONVERT),
        ("npz", CONVERT),
        ("npy", CONVERT),
        ("onnx", "Net.to_onnx writes it"),
        ("prototxt", "`syncblob prototxt` writes it"),
        ("pt", TORCH),
        ("pth", TORCH),
        ("h5", NOTHING),
        ("hdf5", NOTHING),
    ];
    const CONVERT: &str = "`syncblob convert` writes it from a saved .caffemodel";
    const TORCH: &str = "torch.save(model.state_dict(framework=\"torch\"), path) writes it";
    const NOTHING: &str = "HDF5 is not written";
    let path = path(value)?;
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    match OTHERS.iter().find(|(other, _)| ending.as_deref() == Some(other)) {
        Some((other, advice)) => {
            let text = format!("save writes only Caffe's files, not .{other}: {advice}");
            Err(refused(value.py(), "ArgumentError", &text))
        }
        None => Ok(path),
    }
}

pub fn format(py: Python<'_>, name: &str) -> PyResult<Format> {
    let known = [Format::Caffemodel, Format::Solverstate, Format::Blob, Format::BlobVector];
    known.into_iter().find(|format| format.name() == name).ok_or_else(|| {
        let known = known.map(Format::name).join(", ");
        let text = format!("unknown format {name:?}; the formats are {known}");
        refused(py, "ArgumentError", &text)
    })
}

/// Names and values of limits, in this order: memory, layers, blobs, bytes of names.
pub type Bounds<'a, 'py> = [(&'static str, Option<&'a Bound<'py, PyAny>>)];

pub fn limits(bounds: &Bounds<'_, '_>) -> PyResult<Limits> {
    let set = [Limits::max_memory, Limits::max_layers, Limits::max_blobs, Limits::max_name_bytes];
    let mut limits = Limits::new();
    for ((name, bound), set) in bounds.iter().zip(set) {
        let Some(bound) = bound else { continue };
        limits = match number::<usize>(name, bound)? {
            0 => {
                let text = format!("{name} must be at least 1");
                return Err(refused(bound.py(), "ArgumentError", &text));
            }
            bound => set(limits, bound),
        };
    }
    Ok(limits)
}

pub fn open(
    value: &Bound<'_, PyAny>,
    format: Option<Format>,
    limits: Limits,
) -> PyResult<syncblob::Model> {
    let mut options = OpenOptions::new().limits(limits);
    if let Some(format) = format {
        options = options.format(format);
    }
    let source = source(value)?;
    detached(value.py(), || match source {
        Source::Path(path) => Ok(options.open(path)?),
        Source::Bytes(bytes) => Ok(options.from_bytes(bytes)?),
    })
}
