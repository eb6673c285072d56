//! Caffe's files for Python: a model, its layers, the blobs in it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

use pyo3::exceptions::{PyKeyError, PyOverflowError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyList, PySlice, PyString, PyTuple};
use syncblob::{BlobAny, BlobAt, BlobInfo, Context, Dtype, SolverInfo};
use syncblob_cli::naming;

use crate::arguments::{self, context, dtype_name, open};
use crate::blob::Blob;
use crate::error::{detached, refused, Failure};
use crate::{state_dict, tensor};

/// Model(name="", *, format="caffemodel")
/// --
///
/// A file of Caffe's, opened by `load` or made anew: layers by their names, none of their
/// blobs loaded until you ask for it.
///
/// It is a mapping of names to layers, in the file's order. Caffe lets two layers have one
/// name, or none: the second ``conv`` is called ``conv#2``, a layer without a name by its
/// index, ``#7``.
///
/// >>> model = Model("tiny")
/// >>> layer = model.add_layer("ip", "InnerProduct", [[[0.5, 1.5]], [1.0]])
/// >>> list(model)
/// ['ip']
/// >>> model["ip"][0].shape
/// (1, 2)
/// >>> model.state_dict()["ip.bias"]
/// array([1.])
#[pyclass(frozen, mapping, module = "syncblob")]
pub struct Model(RwLock<Opened>);

struct Opened {
    model: syncblob::Model,
    /// By index, each once.
    names: Vec<String>,
    indices: HashMap<String, usize>,
}

impl Opened {
    fn name_layers(&mut self) {
        self.names = naming::layer_names(&self.model);
        let indexed = self.names.iter().enumerate();
        self.indices = indexed.map(|(index, name)| (name.clone(), index)).collect();
    }

    /// Names the layer that was added last. A name that none is called yet changes no other.
    fn name_added(&mut self, index: usize, name: &str) {
        if name.is_empty() || self.indices.contains_key(name) {
            return self.name_layers();
        }
        self.names.push(name.to_owned());
        self.indices.insert(name.to_owned(), index);
    }
}

impl Model {
    pub fn new(model: syncblob::Model) -> Self {
        let mut opened = Opened { model, names: Vec::new(), indices: HashMap::new() };
        opened.name_layers();
        Self(RwLock::new(opened))
    }

    fn read<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Opened) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        detached(py, || work(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }

    fn write<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Opened) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        detached(py, || work(&mut self.0.write().unwrap_or_else(PoisonError::into_inner)))
    }

    fn find(&self, py: Python<'_>, name: &str) -> PyResult<Option<usize>> {
        self.read(py, |opened| Ok(opened.indices.get(name).copied()))
    }

    fn solver_info(&self, py: Python<'_>) -> PyResult<SolverInfo> {
        self.read(py, |opened| Ok(opened.model.solver_info()?))
    }

    fn change_solver_info(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut SolverInfo) + Send,
    ) -> PyResult<()> {
        self.write(py, |opened| {
            let mut info = opened.model.solver_info()?;
            change(&mut info);
            Ok(opened.model.set_solver_info(&info)?)
        })
    }

    pub fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.read(py, |opened| Ok(opened.model.save(path)?))
    }

    pub fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        to_python(py, &self.read(py, |opened| Ok(opened.model.to_bytes()?))?)
    }
}

/// A copy as Python's bytes, which is made without the interpreter's lock.
fn to_python<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let size = ffi::Py_ssize_t::try_from(bytes.len())?;
    // SAFETY: without a source the object has room for so many bytes, and its caller writes them
    // before anybody else has it.
    let made = unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyBytes_FromStringAndSize(std::ptr::null(), size))?
            .cast_into_unchecked::<PyBytes>()
    };
    // SAFETY: as above, and the object lives until it is returned.
    let room = unsafe {
        let start = ffi::PyBytes_AsString(made.as_ptr()).cast::<MaybeUninit<u8>>();
        std::slice::from_raw_parts_mut(start, bytes.len())
    };
    py.detach(|| {
        // SAFETY: what is initialised is of the layout of what may not be.
        room.copy_from_slice(unsafe { &*(std::ptr::from_ref(bytes) as *const [MaybeUninit<u8>]) });
    });
    Ok(made)
}

/// A view of `collections.abc`, which asks the model itself.
fn view<'py>(model: &Bound<'py, Model>, kind: &str) -> PyResult<Bound<'py, PyAny>> {
    model.py().import("collections.abc")?.getattr(kind)?.call1((model,))
}

fn layer(model: &Bound<'_, Model>, index: usize) -> Layer {
    Layer { model: model.clone().unbind(), index }
}

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (name="", *, format="caffemodel"))]
    fn create(py: Python<'_>, name: &str, format: &str) -> PyResult<Self> {
        let format = arguments::format(py, format)?;
        detached(py, || {
            let mut model = syncblob::Model::create(format)?;
            if !name.is_empty() {
                model.set_name(name)?;
            }
            Ok(Self::new(model))
        })
    }

    /// The net's name.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, |opened| Ok(opened.model.name().into_owned()))
    }

    /// ``"caffemodel"``, ``"solverstate"``, ``"blob"`` (a mean file) or ``"blobvector"``.
    #[getter]
    fn format(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.read(py, |opened| Ok(opened.model.format().name()))
    }

    /// The layers, in the file's order.
    #[getter]
    fn layers(slf: &Bound<'_, Self>) -> PyResult<Vec<Layer>> {
        let count = slf.get().__len__(slf.py())?;
        Ok((0..count).map(|index| layer(slf, index)).collect())
    }

    /// The blobs of no layer: a solver's history, the one blob of a mean file.
    #[getter]
    fn blobs(slf: &Bound<'_, Self>) -> PyResult<Vec<StoredBlob>> {
        let count = slf.get().read(slf.py(), |opened| Ok(opened.model.blobs().len()))?;
        let blob = |index: usize| StoredBlob { model: slf.clone().unbind(), at: index.into() };
        Ok((0..count).map(blob).collect())
    }

    /// The iteration that a solver state was saved at; it may be set.
    ///
    /// >>> state = Model(format="solverstate")
    /// >>> state.iteration = 5000
    /// >>> load(state.to_bytes()).iteration
    /// 5000
    #[getter]
    fn iteration(&self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.solver_info(py)?.iteration)
    }

    #[setter]
    fn set_iteration(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let iteration = arguments::number("an iteration", value)?;
        self.change_solver_info(value.py(), |info| info.iteration = iteration)
    }

    /// The step of a solver state's learning rate policy; it may be set.
    #[getter]
    fn current_step(&self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.solver_info(py)?.current_step)
    }

    #[setter]
    fn set_current_step(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let step = arguments::number("a step", value)?;
        self.change_solver_info(value.py(), |info| info.current_step = step)
    }

    /// The file that holds a solver state's net; empty where none is named. It may be set.
    #[getter]
    fn learned_net(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.solver_info(py)?.learned_net.to_string_lossy().into_owned())
    }

    #[setter]
    fn set_learned_net(&self, py: Python<'_>, value: PathBuf) -> PyResult<()> {
        self.change_solver_info(py, |info| info.learned_net = value)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, |opened| Ok(opened.names.len()))
    }

    fn __getitem__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<Layer> {
        let found = slf.get().find(slf.py(), &name.to_string_lossy())?;
        found
            .map(|index| layer(slf, index))
            .ok_or_else(|| PyKeyError::new_err(name.clone().unbind()))
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name.cast::<PyString>() {
            Ok(name) => Ok(self.find(name.py(), &name.to_string_lossy())?.is_some()),
            Err(_) => Ok(false),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.read(py, |opened| Ok(opened.names.clone()))?)?.try_iter()
    }

    /// The names of the layers, as a dict's.
    fn keys<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "KeysView")
    }

    /// The layers, as a dict's.
    fn values<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "ValuesView")
    }

    /// The names with their layers, as a dict's.
    fn items<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "ItemsView")
    }

    /// The layer of a name, or a default.
    #[pyo3(signature = (name, default=None))]
    fn get(
        slf: &Bound<'_, Self>,
        name: &str,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        match slf.get().find(slf.py(), name)? {
            Some(index) => Ok(Some(Bound::new(slf.py(), layer(slf, index))?.into_any().unbind())),
            None => Ok(default),
        }
    }

    /// Adds a layer at the end, with copies of arrays or of blobs' data; a diff is not stored.
    ///
    /// The element type decides: types all of whose values float32 holds are stored as
    /// float32, all others as float64, such as lists of Python's numbers. Integers that
    /// float64 does not hold exactly are a `DtypeError`. If a blob cannot be stored, no layer
    /// is added.
    #[pyo3(signature = (name, r#type="", blobs=None))]
    fn add_layer(
        slf: &Bound<'_, Self>,
        name: &str,
        r#type: &str,
        blobs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Layer> {
        let mut given = Vec::new();
        for blob in blobs.map(|blobs| blobs.try_iter()).transpose()?.into_iter().flatten() {
            given.push(stored(&blob?)?);
        }
        let given: Vec<&Blob> = given.iter().map(|blob| blob.get()).collect();
        let index = slf.get().write(slf.py(), |opened| {
            let index = opened.model.add_layer(name, r#type)?;
            let mut blobs = given.into_iter();
            if let Err(failure) =
                blobs.try_for_each(|blob| blob.add_to(&mut opened.model, Some(index)))
            {
                opened.model.pop_layer()?;
                return Err(failure);
            }
            opened.name_added(index, name);
            Ok(index)
        })?;
        Ok(layer(slf, index))
    }

    /// Adds a blob of no layer, such as of a solver's history, as `add_layer` adds those of one.
    fn add_blob(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let blob = stored(value)?;
        let blob = blob.get();
        self.write(value.py(), |opened| blob.add_to(&mut opened.model, None))
    }

    /// Loads all blobs into a dict of arrays with PyTorch's names: ``conv1.weight``,
    /// ``conv1.bias``, ``bn.running_mean``. Each array is a copy of its own.
    ///
    /// Caffe's BatchNorm stores mean and variance times a factor. They are divided by it,
    /// and it is left out, unless `apply_scale` is false; then it is ``bn.scale_factor``.
    ///
    /// `framework` is ``"numpy"`` or ``"torch"``. A blob of a layer that PyTorch has no
    /// words for is named by its number; a solver's are ``history.0`` and so on.
    #[pyo3(signature = (*, framework="numpy", apply_scale=true))]
    fn state_dict<'py>(
        &self,
        py: Python<'py>,
        framework: &str,
        apply_scale: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let framework = state_dict::framework(py, framework)?;
        let loaded = self.read(py, |opened| state_dict::load(&opened.model, apply_scale))?;
        state_dict::to_dict(py, loaded, framework)
    }

    /// Writes the file. What you did not change is written byte for byte as it was. The
    /// file is the old one or the whole new one; it may be the one that was loaded.
    #[pyo3(name = "save")]
    fn save_to(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.save(py, path)
    }

    /// What `save` would write.
    #[pyo3(name = "to_bytes")]
    fn bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.to_bytes(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (format, name) = (self.format(py)?, self.name(py)?);
        let name = if name.is_empty() { name } else { format!(" {name:?}") };
        Ok(format!("<syncblob.Model {format}{name}, {} layers>", self.__len__(py)?))
    }
}

/// Opens a file of Caffe's (``.caffemodel``, ``.solverstate``, ``mean.binaryproto``) by its
/// path, or from its content as bytes. It is indexed and checked; values stay in the file
/// until you ask for them.
///
/// `format` says what the file is, instead of its bytes. The others are bounds on what a
/// file may ask for, above which it is refused with `LimitError`: `max_memory` is bytes that
/// one read may hold, index and values together, without it as many as there are;
/// `max_layers` is 100,000 without it, `max_blobs` 1,000,000, and `max_name_bytes`, which one
/// name or type may have, 65,536.
///
/// >>> model = load(Model("net").to_bytes(), max_memory=1 << 20)
/// >>> model.name
/// 'net'
#[pyfunction]
#[pyo3(signature = (source, *, format=None, max_memory=None, max_layers=None, max_blobs=None,
                    max_name_bytes=None))]
pub fn load(
    source: &Bound<'_, PyAny>,
    format: Option<&str>,
    max_memory: Option<&Bound<'_, PyAny>>,
    max_layers: Option<&Bound<'_, PyAny>>,
    max_blobs: Option<&Bound<'_, PyAny>>,
    max_name_bytes: Option<&Bound<'_, PyAny>>,
) -> PyResult<Model> {
    let named = |name| arguments::format(source.py(), name);
    let format = format.map(named).transpose()?;
    let bounds = [
        ("max_memory", max_memory),
        ("max_layers", max_layers),
        ("max_blobs", max_blobs),
        ("max_name_bytes", max_name_bytes),
    ];
    let model = open(source, format, &bounds)?;
    detached(source.py(), || Ok(Model::new(model)))
}

/// A blob of the value: itself, or a copy of an array. Types all of whose values float32 holds
/// become float32, the rest float64.
fn stored<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Blob>> {
    let py = value.py();
    if let Ok(blob) = value.cast::<Blob>() {
        blob.get().check_stored(py)?;
        return Ok(blob.clone());
    }
    let array = tensor::to_array(value)?;
    let can_cast = py.import("numpy")?.getattr("can_cast")?;
    let given = array.getattr("dtype")?;
    let fits = |name: &str| can_cast.call1((&given, name, "safe"))?.is_truthy();
    let dtype = if fits("float32")? { Dtype::F32 } else { Dtype::F64 };
    if dtype == Dtype::F64 && !fits("float64")? {
        let text = format!("Caffe's files hold float32 and float64, not {given}");
        return Err(refused(py, "DtypeError", &text));
    }
    let shape = arguments::shape(&array.getattr("shape")?)?;
    let blob = detached(py, || {
        let mut blob = BlobAny::new_in(&Context::host(), dtype)?;
        blob.reshape(shape)?;
        Ok(Blob::new(blob))
    })?;
    let blob = Bound::new(py, blob)?;
    let data = blob.getattr("data")?;
    py.import("numpy")?.call_method1("copyto", (&data, &array))?;
    if !is_exact(&data, &array)? {
        let text = format!("float64, as which {given} is stored, does not hold all of the values");
        return Err(refused(py, "DtypeError", &text));
    }
    Ok(blob)
}

/// Whether float64 holds all of an array's integers. NumPy calls the cast safe; Python compares the
/// numbers exactly. Only integers of 64 bits beyond float64's 53 may be lost.
fn is_exact(stored: &Bound<'_, PyAny>, given: &Bound<'_, PyAny>) -> PyResult<bool> {
    const LAST: i64 = 1 << f64::MANTISSA_DIGITS;
    let dtype = given.getattr("dtype")?;
    let is_wide = dtype.getattr("itemsize")?.extract::<usize>()? >= size_of::<i64>();
    if !is_wide || !matches!(dtype.getattr("kind")?.extract::<char>()?, 'i' | 'u') {
        return Ok(true);
    }
    let is_empty = given.getattr("size")?.eq(0)?;
    if is_empty || (given.call_method0("max")?.le(LAST)? && given.call_method0("min")?.ge(-LAST)?) {
        return Ok(true);
    }
    stored.call_method0("tolist")?.eq(given.call_method0("tolist")?)
}

/// A layer of a model, with its blobs by their numbers. ``layer[0] = array`` replaces one by a copy of
/// an array or of a blob's data, stored as `add_layer` says.
#[pyclass(frozen, module = "syncblob")]
pub struct Layer {
    model: Py<Model>,
    index: usize,
}

impl Layer {
    fn read<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&syncblob::Layer<'_>) -> T + Send,
    ) -> PyResult<T> {
        self.model.get().read(py, |opened| Ok(work(&opened.model.layer(self.index)?)))
    }

    /// A negative index counts from the end.
    fn at(&self, index: &Bound<'_, PyAny>) -> PyResult<BlobAt> {
        let py = index.py();
        let count = self.__len__(py)?;
        let given = match index.extract::<isize>() {
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => isize::MAX,
            given => given?,
        };
        let found = usize::try_from(given).ok().or_else(|| count.checked_add_signed(given));
        match found {
            Some(found) if found < count => Ok((self.index, found).into()),
            _ => {
                let text = format!("blob {index} of a layer that has {count}");
                Err(refused(py, "RangeError", &text))
            }
        }
    }

    fn blob(&self, py: Python<'_>, at: BlobAt) -> StoredBlob {
        StoredBlob { model: self.model.clone_ref(py), at }
    }
}

#[pymethods]
impl Layer {
    /// The name as the file has it.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, |layer| layer.name().into_owned())
    }

    /// Such as ``"Convolution"``; of a file of 2014 ``"CONVOLUTION"``.
    #[getter]
    fn r#type(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, |layer| layer.layer_type().into_owned())
    }

    /// The index in the model.
    #[getter]
    fn index(&self) -> usize {
        self.index
    }

    /// The blobs, none of them loaded.
    #[getter]
    fn blobs(&self, py: Python<'_>) -> PyResult<Vec<StoredBlob>> {
        let count = self.__len__(py)?;
        Ok((0..count).map(|index| self.blob(py, (self.index, index).into())).collect())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, |layer| layer.num_blobs())
    }

    /// One blob, or the list of a slice.
    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        if index.is_instance_of::<PySlice>() {
            return PyList::new(py, self.blobs(py)?)?.as_any().get_item(index);
        }
        Ok(Bound::new(py, self.blob(py, self.at(index)?))?.into_any())
    }

    fn __setitem__(&self, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let at = self.at(index)?;
        let value = stored(value)?;
        let blob = value.get();
        self.model.get().write(index.py(), |opened| blob.put_into(&mut opened.model, at))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.blobs(py)?)?.try_iter()
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let mut blobs = self.blobs(py)?;
        blobs.reverse();
        PyList::new(py, blobs)?.try_iter()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.model.is(&other.model) && self.index == other.index
    }

    fn __hash__(&self) -> u64 {
        hash((self.model.as_ptr().addr(), self.index))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (name, kind, blobs) = self.read(py, |layer| {
            (layer.name().into_owned(), layer.layer_type().into_owned(), layer.num_blobs())
        })?;
        Ok(format!("<syncblob.Layer {name:?} {kind}, {blobs} blobs>"))
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A blob in a model, not loaded. NumPy and all programs that speak DLPack take it as an
/// array: it is loaded then, and the array has the values to itself.
#[pyclass(frozen, module = "syncblob")]
pub struct StoredBlob {
    model: Py<Model>,
    at: BlobAt,
}

impl StoredBlob {
    fn info<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&BlobInfo) -> T + Send,
    ) -> PyResult<T> {
        let at = self.at;
        self.model.get().read(py, |opened| Ok(work(opened.model.blob(at)?.info())))
    }
}

/// With the type that it is loaded as where nobody names one.
pub fn load_any(stored: &syncblob::StoredBlob<'_>) -> syncblob::Result<BlobAny> {
    match loaded_as(stored.info().dtype()) {
        Dtype::F64 => stored.load::<f64>().map(BlobAny::from),
        _ => stored.load::<f32>().map(BlobAny::from),
    }
}

/// What a stored type is loaded as: exactly, of NVCaffe's raw types too.
fn loaded_as(stored: Dtype) -> Dtype {
    match stored {
        Dtype::F64 | Dtype::I32 | Dtype::U32 => Dtype::F64,
        _ => Dtype::F32,
    }
}

#[pymethods]
impl StoredBlob {
    /// The dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.info(py, |info| info.shape().to_vec())?)
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self, py: Python<'_>) -> PyResult<usize> {
        self.info(py, |info| info.shape().len())
    }

    /// The number of elements.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<usize> {
        self.info(py, BlobInfo::count)
    }

    /// NumPy's name of the type that it is loaded as: ``"float32"`` or ``"float64"``.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.info(py, |info| dtype_name(loaded_as(info.dtype())))
    }

    /// Whether the file has the diff too.
    #[getter]
    fn has_diff(&self, py: Python<'_>) -> PyResult<bool> {
        self.info(py, |info| info.diff_count() > 0)
    }

    /// Loads data and diff into a blob: of the type that `dtype` of this object says, or as
    /// float32, float64, int32 or uint32; on the host, or on a device. To float32 values are
    /// rounded; of what becomes an integer the fraction is cut off, as Caffe's Blob<int> does,
    /// and a value that does not fit then is a `DataError`. Other types are a `DtypeError`.
    #[pyo3(signature = (dtype=None, device="cpu"))]
    fn load(
        &self,
        py: Python<'_>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: &str,
    ) -> PyResult<Blob> {
        let dtype = dtype.map(arguments::dtype).transpose()?;
        let at = self.at;
        self.model.get().read(py, |opened| {
            let (context, stored) = (context(device)?, opened.model.blob(at)?);
            let blob = match dtype.unwrap_or_else(|| loaded_as(stored.info().dtype())) {
                Dtype::F32 => BlobAny::from(stored.load_in::<f32>(&context)?),
                Dtype::F64 => stored.load_in::<f64>(&context)?.into(),
                Dtype::I32 => stored.load_in::<i32>(&context)?.into(),
                Dtype::U32 => stored.load_in::<u32>(&context)?.into(),
                other => {
                    let text = format!("no file is loaded as {}", dtype_name(other));
                    return Err(Failure::Refused("DtypeError", text));
                }
            };
            Ok(Blob::new(blob))
        })
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = copy; // it is one already
        let array = Bound::new(py, self.load(py, None, "cpu")?)?.getattr("data")?;
        tensor::converted(array, dtype, None)
    }

    /// Some of the values, as of a NumPy array: ``blob[...]``, ``blob[:, 0]``.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.__array__(py, None, None)?.get_item(key)
    }

    #[pyo3(signature = (**options))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Bound::new(py, self.load(py, None, "cpu")?)?.call_method("__dlpack__", (), options)
    }

    /// That of the host.
    fn __dlpack_device__(&self) -> (i32, i32) {
        tensor::HOST
    }

    /// Whether it is the same blob of the same model; another array is compared as NumPy does.
    fn __eq__(&self, other: &Self) -> bool {
        self.model.is(&other.model) && self.at == other.at
    }

    fn __hash__(&self) -> u64 {
        hash((self.model.as_ptr().addr(), self.at))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<syncblob.StoredBlob {} {}>", self.shape(py)?.repr()?, self.dtype(py)?))
    }
}
