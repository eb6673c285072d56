//! The Python class Blob.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};
use syncblob::{BlobAny, BlobAt, Dtype, Format, Head, Part, Payload, Side};

use crate::arguments::{context, limits, number, open, saved_path, shape_of_call};
use crate::error::{detached, Failure};
use crate::model::{load_any, Model};
use crate::{arguments, bytes, calls, fill, tensor};

/// Blob(shape=None, dtype="float32", device="cpu")
/// --
///
/// An n-dimensional array with two memories, data and diff, each on the host, on a device, or on
/// both. A memory is allocated, and filled with zeros, at its first use.
///
/// `shape` is one number or several. By default, the blob has no shape yet. If `shape` is an array
/// with at least one axis, the blob gets a copy of the array's values. Without a `dtype`, the blob
/// also gets the array's type. `dtype` is a name such as ``"float32"``, or a dtype of NumPy or
/// PyTorch. `device` is ``"cpu"``, a GPU such as ``"cuda:0"``, or a device of a backend that
/// `load_backend` has loaded. The simulated device ``"sim:0"`` always exists.
///
/// >>> weights = Blob((2, 3))
/// >>> weights.data[...] = 1.0
/// >>> weights.diff[...] = 0.25
/// >>> weights.update()  # data -= diff
/// >>> weights.asum_data()
/// 4.5
///
/// NumPy and all libraries that support DLPack accept a blob as an array of its data, without a
/// copy.
///
/// >>> import numpy as np
/// >>> np.asarray(weights).shape
/// (2, 3)
#[pyclass(frozen, module = "syncblob")]
pub struct Blob {
    blob: RwLock<BlobAny>,
    /// Whether a memory was ever shared with another blob.
    shares: AtomicBool,
}

/// A call on a blob that shares a memory takes this lock after the blob's own lock, so that two
/// blobs never write their shared memory at the same time.
static SHARERS: RwLock<()> = RwLock::new(());

impl Blob {
    pub fn new(mut blob: BlobAny) -> Self {
        // SAFETY: the locks prevent concurrent writes. calls.rs explains why no slices exist.
        unsafe { blob.allow_shared_writes() };
        Self { blob: RwLock::new(blob), shares: AtomicBool::new(false) }
    }

    fn shares(&self) -> bool {
        self.shares.load(Ordering::Relaxed) // written while the blob's own lock is held
    }

    fn reading<T>(&self, work: impl FnOnce(&BlobAny) -> T) -> T {
        let blob = self.blob.read().unwrap_or_else(PoisonError::into_inner);
        let _sharers =
            self.shares().then(|| SHARERS.read().unwrap_or_else(PoisonError::into_inner));
        work(&blob)
    }

    fn writing<T>(&self, work: impl FnOnce(&mut BlobAny) -> T) -> T {
        let mut blob = locked(self);
        let _sharers =
            self.shares().then(|| SHARERS.write().unwrap_or_else(PoisonError::into_inner));
        work(&mut blob)
    }

    /// Takes the two locks in the order of addresses to avoid deadlock.
    fn share(&self, py: Python<'_>, other: &Self, part: Part) -> PyResult<()> {
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        detached(py, || {
            let (mut own, theirs);
            if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
                own = locked(self);
                theirs = locked(other);
            } else {
                theirs = locked(other);
                own = locked(self);
            }
            let _sharers = SHARERS.write().unwrap_or_else(PoisonError::into_inner);
            self.shares.store(true, Ordering::Relaxed);
            other.shares.store(true, Ordering::Relaxed);
            Ok(own.share(part, &theirs)?)
        })
    }

    fn read<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&BlobAny) -> Result<T, syncblob::Error> + Send,
    ) -> PyResult<T> {
        detached(py, || Ok(self.reading(work)?))
    }

    fn write<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut BlobAny) -> Result<T, syncblob::Error> + Send,
    ) -> PyResult<T> {
        detached(py, || Ok(self.writing(work)?))
    }

    fn array<'py>(&self, py: Python<'py>, part: Part) -> PyResult<Bound<'py, PyAny>> {
        let tensor = self.write(py, |blob| calls::to_dlpack(blob, part, Side::Host))?;
        tensor::array(py, tensor, self.element_type(py)?)
    }

    fn element_type(&self, py: Python<'_>) -> PyResult<Dtype> {
        self.read(py, |blob| Ok(blob.dtype()))
    }

    /// Returns the bytes of data or diff, or None if the memory was never used.
    fn values<'py>(&self, py: Python<'py>, part: Part) -> PyResult<Option<Bound<'py, PyBytes>>> {
        loop {
            let (size, head) =
                self.read(py, |blob| Ok((size_of_values(blob), blob.memory(part)?.head())))?;
            if head == Head::Uninitialized {
                return Ok(None);
            }
            let values = bytes::written(py, size, |room| {
                Ok(self.reading(|blob| calls::copy_values(blob, part, room))?)
            })?;
            if values.is_some() {
                return Ok(values);
            } // retries, because the blob was reshaped meanwhile
        }
    }

    fn set_values(&self, py: Python<'_>, part: Part, values: &[u8]) -> PyResult<()> {
        detached(py, || {
            self.writing(|blob| {
                let size = size_of_values(blob);
                if values.len() != size {
                    let text = format!("{} bytes for a blob of {size} bytes", values.len());
                    return Err(Failure::Refused("ArgumentError", text));
                }
                let tensor = calls::to_dlpack(blob, part, Side::Host)?;
                // SAFETY: the tensor has `size` bytes, which may be written.
                unsafe {
                    values.as_ptr().copy_to_nonoverlapping(tensor.data_ptr().cast_mut(), size);
                }
                Ok(())
            })
        })
    }

    fn head(&self, py: Python<'_>, part: Part) -> PyResult<String> {
        self.read(py, |blob| Ok(blob.memory(part)?.head().to_string()))
    }
}

#[pymethods]
impl Blob {
    #[new]
    #[pyo3(signature = (shape=None, dtype=None, device="cpu"))]
    fn create(
        py: Python<'_>,
        shape: Option<&Bound<'_, PyAny>>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: &str,
    ) -> PyResult<Self> {
        if let Some(values) = shape.map(values_of).transpose()?.flatten() {
            return Self::of_values(&values, dtype, device);
        }
        let dtype = dtype.map_or(Ok(Dtype::F32), arguments::dtype)?;
        let shape = shape.map(arguments::shape).transpose()?;
        detached(py, || {
            let mut blob = BlobAny::new(&context(device)?, dtype)?;
            if let Some(shape) = shape {
                blob.reshape(shape)?;
            }
            Ok(Self::new(blob))
        })
    }

    /// The data as a NumPy array, without a copy: writes to the array change the blob.
    ///
    /// If the blob has a device, the values are copied to the host. After work on the device an
    /// array is out of date: get `data` again. An array keeps its memory alive, also after the blob
    /// is reshaped or deleted.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, Part::Data)
    }

    /// The diff as a NumPy array. See `data`.
    #[getter]
    fn diff<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, Part::Diff)
    }

    /// The dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.read(py, |blob| Ok(blob.shape().to_vec()))?)
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, |blob| Ok(blob.shape().len()))
    }

    /// The number of elements.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, |blob| Ok(blob.count()))
    }

    /// The size of the data in bytes.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, |blob| Ok(size_of_values(blob)))
    }

    /// NumPy's name of the element type.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.element_type(py)?.numpy_name())
    }

    /// ``"cpu"``, or the device's name.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, |blob| Ok(blob.context().device().to_owned()))
    }

    /// Where the newest data is, in Caffe's words: ``"UNINITIALIZED"``, ``"HEAD_AT_CPU"``,
    /// ``"HEAD_AT_GPU"``, ``"SYNCED"``; ``"LOST"`` if the data was lost because the device or
    /// queued work failed.
    #[getter]
    fn data_head(&self, py: Python<'_>) -> PyResult<String> {
        self.head(py, Part::Data)
    }

    /// Where the newest diff is, in the words of `data_head`.
    #[getter]
    fn diff_head(&self, py: Python<'_>) -> PyResult<String> {
        self.head(py, Part::Diff)
    }

    /// Changes the shape. A memory that is too small is replaced by a new memory of zeros. A memory
    /// that is large enough keeps its elements. Existing arrays keep their shape and their memory.
    ///
    /// >>> blob = Blob((2, 3))
    /// >>> blob.reshape(6)
    /// >>> blob.reshape((1, 2, 3))
    /// >>> blob.shape
    /// (1, 2, 3)
    #[pyo3(signature = (*shape))]
    fn reshape(&self, shape: &Bound<'_, PyTuple>) -> PyResult<()> {
        let (py, shape) = (shape.py(), shape_of_call(shape)?);
        self.write(py, |blob| blob.reshape(shape)).map(drop)
    }

    /// ``data -= diff``: a solver's step.
    fn update(&self, py: Python<'_>) -> PyResult<()> {
        self.write(py, BlobAny::update)
    }

    /// The sum of the absolute values of the data.
    fn asum_data(&self, py: Python<'_>) -> PyResult<f64> {
        self.read(py, |blob| blob.asum(Part::Data))
    }

    /// The sum of the absolute values of the diff.
    fn asum_diff(&self, py: Python<'_>) -> PyResult<f64> {
        self.read(py, |blob| blob.asum(Part::Diff))
    }

    /// The sum of the squares of the data.
    fn sumsq_data(&self, py: Python<'_>) -> PyResult<f64> {
        self.read(py, |blob| blob.sumsq(Part::Data))
    }

    /// The sum of the squares of the diff.
    fn sumsq_diff(&self, py: Python<'_>) -> PyResult<f64> {
        self.read(py, |blob| blob.sumsq(Part::Diff))
    }

    /// Multiplies the data by a factor.
    fn scale_data(&self, factor: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, factor) = (factor.py(), number("a factor", factor)?);
        self.write(py, |blob| blob.scale(Part::Data, factor))
    }

    /// Multiplies the diff by a factor.
    fn scale_diff(&self, factor: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, factor) = (factor.py(), number("a factor", factor)?);
        self.write(py, |blob| blob.scale(Part::Diff, factor))
    }

    /// Fills the data with one of Caffe's fillers: ``"constant"`` (`value`), ``"uniform"`` (`min`,
    /// `max`), ``"gaussian"`` (`mean`, `std`, `sparse`), ``"positive_unitball"``, ``"xavier"`` and
    /// ``"msra"`` (`variance_norm`: ``"fan_in"``, ``"fan_out"``, ``"average"``), ``"bilinear"``. An
    /// option that the filler does not have raises a `TypeError`.
    ///
    /// Equal seeds produce equal values on every machine. Without a `seed` each call uses a random
    /// seed, as Caffe does without random_seed.
    ///
    /// >>> weights = Blob((64, 3, 7, 7))
    /// >>> weights.fill("msra", seed=42, variance_norm="fan_out")
    #[pyo3(signature = (filler, seed=None, **numbers))]
    fn fill(
        &self,
        py: Python<'_>,
        filler: &str,
        seed: Option<&Bound<'_, PyAny>>,
        numbers: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let filler = fill::filler(py, filler, numbers)?;
        let seed = match seed {
            Some(seed) => number("a seed", seed)?,
            None => fill::another_seed(py)?,
        };
        detached(py, || {
            self.writing(|blob| {
                fill::check(&filler, blob.dtype())?;
                Ok(calls::fill(blob, &filler, seed)?)
            })
        })
    }

    /// Copies the data to the device. Arithmetic then runs on the device.
    ///
    /// >>> blob = Blob(4, device="sim:0")
    /// >>> blob.fill("constant", value=2.0)
    /// >>> blob.to_device()
    /// >>> blob.data_head
    /// 'SYNCED'
    fn to_device(&self, py: Python<'_>) -> PyResult<()> {
        self.read(py, calls::to_device)
    }

    /// Makes the blob share the data of another blob, like Caffe's ShareData. The blobs must have
    /// equally many elements, of the same type, on the same device. The blobs' shapes may differ.
    ///
    /// >>> first, second = Blob((2, 3)), Blob(6)
    /// >>> second.share_data(first)
    /// >>> second.data[...] = 1.0
    /// >>> first.asum_data()
    /// 6.0
    fn share_data(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        self.share(py, other.get(), Part::Data)
    }

    /// Makes the blob share the diff of another blob. Works like `share_data`.
    fn share_diff(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        self.share(py, other.get(), Part::Diff)
    }

    /// Returns a blob with a copy of data and diff, on `device` (default: the same device).
    #[pyo3(signature = (device=None))]
    fn copy(&self, py: Python<'_>, device: Option<&str>) -> PyResult<Self> {
        let target = device.map(|device| detached(py, || context(device))).transpose()?;
        self.read(py, |blob| {
            let context = target.unwrap_or_else(|| blob.context());
            let mut copy = BlobAny::new(&context, blob.dtype())?;
            if blob.is_shaped() {
                copy.reshape(blob.shape())?;
            }
            for part in [Part::Data, Part::Diff] {
                if blob.memory(part)?.head() != Head::Uninitialized {
                    copy.copy_from_reshape(part, blob)?;
                }
            }
            Ok(Self::new(copy))
        })
    }

    /// Writes a blob of float32 or float64 to a file as Caffe does, such as ``mean.binaryproto``.
    /// The path always names the complete old file or the complete new file.
    #[pyo3(signature = (path, *, diff=false))]
    fn save(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = saved_path)] path: PathBuf,
        diff: bool,
    ) -> PyResult<()> {
        self.model(py, diff)?.save(py, path)
    }

    /// Returns the bytes that `save` writes.
    #[pyo3(signature = (*, diff=false))]
    fn to_bytes<'py>(&self, py: Python<'py>, diff: bool) -> PyResult<Bound<'py, PyBytes>> {
        self.model(py, diff)?.to_bytes(py)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py, None)
    }

    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        let _ = memo; // a blob refers to no other object
        self.copy(py, None)
    }

    /// Pickles type, shape and device, and the bytes of data and diff.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let (py, blob) = (slf.py(), slf.get());
        let shape = match blob.read(py, |blob| Ok(blob.is_shaped()))? {
            true => Some(blob.shape(py)?),
            false => None,
        };
        let values = (blob.values(py, Part::Data)?, blob.values(py, Part::Diff)?);
        Ok((slf.get_type(), (shape, blob.dtype(py)?, blob.device(py)?), values))
    }

    fn __setstate__(
        &self,
        py: Python<'_>,
        state: (Option<PyBackedBytes>, Option<PyBackedBytes>),
    ) -> PyResult<()> {
        for (part, values) in [(Part::Data, state.0), (Part::Diff, state.1)] {
            if let Some(values) = values {
                self.set_values(py, part, &values)?;
            }
        }
        Ok(())
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        tensor::converted(self.array(py, Part::Data)?, dtype, copy)
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(i64, i64)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream; // the data is ready on every stream
        let own = self.__dlpack_device__(py)?;
        let side = match dl_device {
            Some(wanted) if wanted == own => tensor::side(own),
            Some(tensor::HOST) => Side::Host,
            Some(_) => return Err(PyBufferError::new_err("the blob is on another device")),
            None => tensor::side(own),
        };
        if copy == Some(true) {
            return self.copy(py, None)?.capsule(py, side, max_version);
        }
        self.capsule(py, side, max_version)
    }

    /// Returns DLPack's numbers of the blob's device, or of the host.
    fn __dlpack_device__(&self, py: Python<'_>) -> PyResult<(i32, i32)> {
        Ok(tensor::device(&self.device(py)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shape = self.shape(py)?.repr()?;
        Ok(format!("<syncblob.Blob {shape} {} on {}>", self.dtype(py)?, self.device(py)?))
    }
}

/// Returns the array that the argument contains, or None if the argument lists dimensions.
fn values_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !value.hasattr("__array__")? {
        return Ok(None);
    }
    let array = tensor::to_array(value)?;
    let num_axes: usize = array.getattr("ndim")?.extract()?;
    Ok((num_axes > 0 || value.is_instance_of::<Blob>()).then_some(array))
}

impl Blob {
    /// Makes a blob from an array. The blob's type is `dtype` or, by default, the array's type.
    fn of_values(
        array: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: &str,
    ) -> PyResult<Self> {
        let py = array.py();
        let numpy = py.import("numpy")?;
        let native = array.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
        let dtype = arguments::dtype(dtype.unwrap_or(&native))?;
        let shape = arguments::shape(&array.getattr("shape")?)?;
        let blob = detached(py, || {
            let mut blob = BlobAny::new(&context(device)?, dtype)?;
            blob.reshape(shape)?;
            Ok(Self::new(blob))
        })?;
        numpy.call_method1("copyto", (blob.array(py, Part::Data)?, array))?;
        Ok(blob)
    }

    fn capsule<'py>(
        &self,
        py: Python<'py>,
        side: Side,
        max_version: Option<(i64, i64)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match max_version {
            Some((1.., _)) => {
                let made = self.write(py, |blob| calls::to_dlpack(blob, Part::Data, side))?;
                tensor::capsule(py, made)
            }
            _ => {
                let made =
                    self.write(py, |blob| calls::to_legacy_dlpack(blob, Part::Data, side))?;
                tensor::legacy_capsule(py, made)
            }
        }
    }

    fn model(&self, py: Python<'_>, diff: bool) -> PyResult<Model> {
        let payload = if diff { Payload::DataAndDiff } else { Payload::Data };
        detached(py, || {
            let mut model = syncblob::Model::create(Format::Blob)?;
            self.reading(|blob| add(&mut model, None, blob, payload))?;
            Ok(Model::new(model, 0))
        })
    }

    pub fn is_of(&self, py: Python<'_>, shape: &[usize], dtype: Dtype) -> PyResult<bool> {
        self.read(py, |blob| Ok(blob.shape() == shape && blob.dtype() == dtype))
    }

    /// Returns whether a Caffe file can store the blob's type. If so, also checks the blob's size,
    /// and that the data can be read.
    pub fn check_stored(&self, py: Python<'_>) -> PyResult<bool> {
        self.read(py, |blob| match blob {
            BlobAny::F32(_) | BlobAny::F64(_) => calls::check_added(blob).map(|()| true),
            _ => Ok(false),
        })
    }

    /// Adds a copy of this blob to a layer or, if `layer` is None, to the blobs without a layer.
    pub fn add_to(&self, model: &mut syncblob::Model, layer: Option<usize>) -> Result<(), Failure> {
        self.reading(|blob| add(model, layer, blob, Payload::Data))
    }

    pub fn put_into(&self, model: &mut syncblob::Model, at: BlobAt) -> Result<(), Failure> {
        self.reading(|blob| match blob {
            BlobAny::F32(blob) => Ok(model.set_blob(at, blob, Payload::Data)?),
            BlobAny::F64(blob) => Ok(model.set_blob(at, blob, Payload::Data)?),
            other => Err(not_stored(other)),
        })
    }
}

/// A pickled blob: the class, its arguments, and the bytes of data and diff.
type Reduced<'py> = (
    Bound<'py, PyType>,
    (Option<Bound<'py, PyTuple>>, &'static str, String),
    (Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>),
);

fn size_of_values(blob: &BlobAny) -> usize {
    blob.count() * blob.dtype().size()
}

fn locked(blob: &Blob) -> RwLockWriteGuard<'_, BlobAny> {
    blob.blob.write().unwrap_or_else(PoisonError::into_inner)
}

fn add(
    model: &mut syncblob::Model,
    layer: Option<usize>,
    blob: &BlobAny,
    payload: Payload,
) -> Result<(), Failure> {
    match blob {
        BlobAny::F32(blob) => Ok(model.add_blob(layer, blob, payload)?),
        BlobAny::F64(blob) => Ok(model.add_blob(layer, blob, payload)?),
        other => Err(not_stored(other)),
    }
}

fn not_stored(blob: &BlobAny) -> Failure {
    let name = blob.dtype().numpy_name();
    Failure::Refused("DtypeError", format!("Caffe's files store float32 or float64, not {name}"))
}

/// Returns a blob that uses the memory of an array of NumPy, PyTorch or another library that
/// supports DLPack. Writes to the blob change the array, and writes to the array change the blob. A
/// read-only array is copied before the first write, and before `data` returns a writable array.
///
/// >>> import numpy as np
/// >>> array = np.ones((2, 3), "float32")
/// >>> blob = from_dlpack(array)
/// >>> blob.scale_data(2.0)
/// >>> float(array.sum())
/// 12.0
#[pyfunction]
pub fn from_dlpack(array: &Bound<'_, PyAny>) -> PyResult<Blob> {
    tensor::blob_on(array).map(Blob::new)
}

/// Loads a file of one blob, such as ``mean.binaryproto``, from its path or from its content as
/// bytes. `max_memory` is the same limit as in `load`.
#[pyfunction]
#[pyo3(signature = (source, *, max_memory=None))]
pub fn load_blob(
    source: &Bound<'_, PyAny>,
    max_memory: Option<&Bound<'_, PyAny>>,
) -> PyResult<Blob> {
    let limits = limits(&[("max_memory", max_memory)])?;
    let model = open(source, Some(Format::Blob), limits)?;
    detached(source.py(), || {
        let blob = load_any(&model.blob(0)?)?;
        Ok(Blob::new(blob))
    })
}
