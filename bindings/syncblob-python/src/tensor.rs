//! Passes tensors between blobs and Python arrays, by DLPack's capsules or NumPy's interface.

use std::ffi::{c_void, CStr};
use std::ptr::NonNull;

use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use syncblob::{BlobAny, Context, Dlpack, Dtype, LegacyDlpack, Side};
use syncblob_sys as sys;

use crate::arguments::{named, no_dtype};
use crate::error::{detached, refused};
use crate::owner;

/// DLPack's numbers of device types.
const CUDA: i32 = 2;
const EXTENSION: i32 = 12;

/// DLPack's device for host memory.
pub const HOST: (i32, i32) = (1, 0);

const VERSIONED: &CStr = c"dltensor_versioned";
const LEGACY: &CStr = c"dltensor";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
const USED_LEGACY: &CStr = c"used_dltensor";

/// A blob's host memory, for NumPy's array interface. An array keeps its View alive, which keeps
/// the memory alive.
#[pyclass(frozen, module = "syncblob._syncblob")]
pub struct View {
    tensor: Dlpack,
    dtype: Dtype,
}

#[pymethods]
impl View {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        out.set_item("version", 3)?;
        out.set_item("shape", PyTuple::new(py, self.tensor.shape())?)?;
        out.set_item("typestr", typestr(py, self.dtype)?)?;
        // A tensor without elements has no address, but NumPy needs an address.
        let address = self.tensor.data_ptr().addr().max(align_of::<f64>());
        out.set_item("data", (address, self.tensor.is_read_only()))?;
        Ok(out)
    }
}

fn typestr(py: Python<'_>, dtype: Dtype) -> PyResult<&'static str> {
    dtype.typestr().ok_or_else(|| {
        let text = format!("NumPy has no type {}; use torch.from_dlpack(blob)", dtype.numpy_name());
        refused(py, "DtypeError", &text)
    })
}

fn asarray(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    ASARRAY.import(py, "numpy", "asarray")
}

pub fn array(py: Python<'_>, tensor: Dlpack, dtype: Dtype) -> PyResult<Bound<'_, PyAny>> {
    typestr(py, dtype)?;
    asarray(py)?.call1((View { tensor, dtype },))
}

pub fn to_array<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    asarray(value.py())?.call1((value,))
}

/// Converts an array as `__array__` does: NumPy defines the meaning of `dtype` and `copy`.
pub fn converted<'py>(
    array: Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let is_other = match dtype {
        Some(dtype) => array.getattr("dtype")?.ne(dtype)?,
        None => false,
    };
    match (is_other, copy) {
        (true, Some(false)) => {
            Err(PyValueError::new_err("another element type requires a copy, and copy is False"))
        }
        (true, _) => array.call_method1("astype", (dtype,)),
        (false, Some(true)) => array.call_method0("copy"),
        (false, _) => Ok(array),
    }
}

/// Returns DLPack's device type and index.
pub fn device(name: &str) -> (i32, i32) {
    let number = |prefix| name.strip_prefix(prefix).and_then(|number| number.parse().ok());
    if let Some(number) = number("cuda:") {
        return (CUDA, number);
    }
    number("sim:").map_or(HOST, |number| (EXTENSION, number))
}

pub fn side(device: (i32, i32)) -> Side {
    match device {
        HOST => Side::Host,
        _ => Side::Device,
    }
}

/// Capsules that this module made have the address of OWN as their context.
static OWN: u8 = 0;

fn mark_own(capsule: &Bound<'_, PyAny>) -> PyResult<()> {
    // SAFETY: the capsule is valid.
    match unsafe { ffi::PyCapsule_SetContext(capsule.as_ptr(), (&raw const OWN).cast_mut().cast()) }
    {
        0 => Ok(()),
        _ => Err(PyErr::fetch(capsule.py())),
    }
}

fn is_own(capsule: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the capsule is valid.
    let context = unsafe { ffi::PyCapsule_GetContext(capsule.as_ptr()) };
    std::ptr::eq(context.cast(), &raw const OWN)
}

/// Makes a capsule, which deletes the tensor if no consumer takes the tensor.
pub fn capsule(py: Python<'_>, tensor: Dlpack) -> PyResult<Bound<'_, PyAny>> {
    let tensor = tensor.into_raw();
    // SAFETY: the name is static, and the destructor expects a tensor of this type.
    let made = unsafe {
        ffi::PyCapsule_New(tensor.as_ptr().cast(), VERSIONED.as_ptr(), Some(end_versioned))
    };
    // SAFETY: `made` is a new reference, or null if an exception was set.
    let capsule = unsafe { Bound::from_owned_ptr_or_err(py, made) }.inspect_err(|_| {
        // SAFETY: this function still owns the tensor.
        drop(unsafe { Dlpack::from_raw(tensor) });
    })?;
    mark_own(&capsule)?;
    Ok(capsule)
}

pub fn legacy_capsule(py: Python<'_>, tensor: LegacyDlpack) -> PyResult<Bound<'_, PyAny>> {
    let tensor = tensor.into_raw();
    // SAFETY: as in `capsule`.
    let made =
        unsafe { ffi::PyCapsule_New(tensor.as_ptr().cast(), LEGACY.as_ptr(), Some(end_legacy)) };
    // SAFETY: as in `capsule`.
    let capsule = unsafe { Bound::from_owned_ptr_or_err(py, made) }.inspect_err(|_| {
        // SAFETY: this function still owns the tensor.
        drop(unsafe { LegacyDlpack::from_raw(tensor) });
    })?;
    mark_own(&capsule)?;
    Ok(capsule)
}

/// Returns the tensor in a capsule, if the capsule has this name.
///
/// # Safety
/// `capsule` is a Python object, possibly one whose destructor is running.
unsafe fn content(capsule: *mut ffi::PyObject, name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the caller passes a Python object. A valid capsule has a pointer.
    unsafe {
        match ffi::PyCapsule_IsValid(capsule, name.as_ptr()) {
            1 => NonNull::new(ffi::PyCapsule_GetPointer(capsule, name.as_ptr())),
            _ => None,
        }
    }
}

unsafe extern "C" fn end_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule that still has its first name contains this module's tensor, which no
    // consumer has taken.
    unsafe {
        if let Some(tensor) = content(capsule, VERSIONED) {
            drop(Dlpack::from_raw(tensor.cast()));
        }
    }
}

unsafe extern "C" fn end_legacy(capsule: *mut ffi::PyObject) {
    // SAFETY: as in `end_versioned`.
    unsafe {
        if let Some(tensor) = content(capsule, LEGACY) {
            drop(LegacyDlpack::from_raw(tensor.cast()));
        }
    }
}

pub fn blob_on(array: &Bound<'_, PyAny>) -> PyResult<BlobAny> {
    let py = array.py();
    let (kind, number): (i32, i32) = match array.call_method0("__dlpack_device__") {
        Ok(device) => device.extract()?,
        Err(error) if error.is_instance_of::<PyAttributeError>(py) => {
            let text = format!("{} does not support DLPack", array.get_type().name()?);
            return Err(PyTypeError::new_err(text));
        }
        Err(error) => return Err(error),
    };
    let device = match kind {
        CUDA => format!("cuda:{number}"),
        EXTENSION => format!("sim:{number}"),
        _ => "cpu".to_owned(),
    };
    let context = detached(py, || crate::arguments::context(&device))?;
    take(&ask(array, kind)?, &context)
}

/// Requests the capsule with the newest struct that the array supports. Requests a CUDA tensor for
/// the default stream, so that the library waits for the work that fills the tensor.
fn ask<'py>(array: &Bound<'py, PyAny>, device: i32) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let arguments = PyDict::new(py);
    if device == CUDA {
        const DEFAULT_STREAM: i32 = 1;
        arguments.set_item("stream", DEFAULT_STREAM)?;
    }
    let old = arguments.copy()?;
    arguments.set_item("max_version", (sys::SB_DL_MAJOR_VERSION, sys::SB_DL_MINOR_VERSION))?;
    match array.call_method("__dlpack__", (), Some(&arguments)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            array.call_method("__dlpack__", (), Some(&old))
        }
        asked => asked,
    }
}

/// Refuses a type that blobs do not support. The error contains NumPy's name of the type.
fn check_dtype(py: Python<'_>, dtype: sys::sb_dl_data_type) -> PyResult<()> {
    const KINDS: [&str; 7] = ["int", "uint", "float", "opaque", "bfloat", "complex", "bool"];
    let kind = KINDS.get(usize::from(dtype.code)).unwrap_or(&"unknown");
    let name = if *kind == "bool" { (*kind).to_owned() } else { format!("{kind}{}", dtype.bits) };
    match named(&name) {
        Some(_) => Ok(()),
        None => Err(no_dtype(py, &name)),
    }
}

fn take(capsule: &Bound<'_, PyAny>, context: &Context) -> PyResult<BlobAny> {
    let raw = capsule.as_ptr();
    // SAFETY: `raw` is a live object.
    if let Some(tensor) = unsafe { content(raw, VERSIONED) } {
        let tensor = tensor.cast::<sys::sb_dl_managed_versioned>();
        // SAFETY: the capsule's tensor is alive. Structs of all versions begin with the version.
        if unsafe { (*tensor.as_ptr()).version.major } == sys::SB_DL_MAJOR_VERSION {
            // SAFETY: `sb_dl_managed_versioned` is the struct of this version.
            check_dtype(capsule.py(), unsafe { (*tensor.as_ptr()).dl_tensor.dtype })?;
        }
        let is_own = is_own(capsule);
        rename(capsule, USED_VERSIONED)?;
        let tensor = Raw(tensor);
        return detached(capsule.py(), || {
            // SAFETY: renaming the capsule has made this module the owner of its tensor. Python's
            // deleters take the interpreter's lock. Other owners may still use the elements: see
            // calls.rs.
            let tensor = unsafe {
                match is_own {
                    true => Dlpack::from_raw(tensor.get()),
                    false => owner::versioned(tensor.get()),
                }
            }?;
            Ok(BlobAny::from_dlpack(context, tensor)?)
        });
    }
    // SAFETY: `raw` is a live object.
    if let Some(tensor) = unsafe { content(raw, LEGACY) } {
        let tensor = tensor.cast::<sys::sb_dl_managed>();
        // SAFETY: the capsule's tensor is alive.
        check_dtype(capsule.py(), unsafe { (*tensor.as_ptr()).dl_tensor.dtype })?;
        let is_own = is_own(capsule);
        rename(capsule, USED_LEGACY)?;
        let tensor = Raw(tensor);
        return detached(capsule.py(), || {
            // SAFETY: as for the versioned tensor.
            Ok(unsafe {
                match is_own {
                    true => BlobAny::from_dlpack(context, LegacyDlpack::from_raw(tensor.get())),
                    false => BlobAny::from_dlpack(context, owner::legacy(tensor.get())?),
                }
            }?)
        });
    }
    Err(PyBufferError::new_err("__dlpack__ returned no capsule with an unused tensor"))
}

/// A tensor's pointer, for code that runs without the interpreter's lock.
struct Raw<T>(NonNull<T>);

// SAFETY: DLPack's tensors may be used on any thread.
unsafe impl<T> Send for Raw<T> {}

impl<T> Raw<T> {
    fn get(self) -> NonNull<T> {
        self.0
    }
}

fn rename(capsule: &Bound<'_, PyAny>, name: &'static CStr) -> PyResult<()> {
    // SAFETY: the capsule is valid, and the name is static.
    match unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), name.as_ptr()) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(capsule.py())),
    }
}
