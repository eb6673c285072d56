//! The Python classes of Caffe's files: Model, Layer and StoredBlob.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use pyo3::exceptions::{PyKeyError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyIterator, PyList, PySlice, PyString, PyTuple};
use syncblob::{
    BlobAny, BlobAt, BlobInfo, Context, Dtype, ErrorKind, Limits, OpenOptions, SolverInfo,
};
use syncblob_cli::naming;
use syncblob_net::{Message, StateTensor};

use crate::arguments::{self, context, open, path, saved_path, text};
use crate::blob::Blob;
use crate::error::{detached, refused, Failure};
use crate::state_dict::{self, Framework};
use crate::{bytes, calls, plain, tensor};

/// Model(name="", *, format="caffemodel")
/// --
///
/// A Caffe file that `load` has opened, or a new file. The file's blobs are loaded on request.
///
/// A model is a mapping of names to layers, in the file's order. In Caffe several layers may have
/// the same name or no name. The second ``conv`` is named ``conv#2``, and layer 7 without a name is
/// ``#7``.
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
pub struct Model {
    opened: RwLock<Opened>,
    /// The maximum memory of one read, in bytes. 0 means no limit.
    max_memory: usize,
}

struct Opened {
    /// Shared with nets that were made from this model.
    model: Arc<syncblob::Model>,
    names: naming::Names,
}

impl Opened {
    fn new(model: Arc<syncblob::Model>) -> Self {
        let names = naming::layer_names(&model);
        Self { model, names }
    }

    /// Returns the model for changes. If a net also owns the model, first replaces it with a copy.
    fn model_mut(&mut self) -> Result<&mut syncblob::Model, Failure> {
        if Arc::get_mut(&mut self.model).is_none() {
            self.model = Arc::new(copy(&self.model)?);
        }
        Ok(Arc::get_mut(&mut self.model).expect("a copy without other owners"))
    }
}

impl Opened {
    fn tensors(&self) -> Result<Vec<state_dict::Named>, Failure> {
        let tensors = StateTensor::from_model(&self.model, &syncblob_net::Limits::default())?;
        Ok(state_dict::tensors(tensors, &self.names))
    }
}

/// Copies a model. Sets no limits, because the model has passed the limits of its load.
fn copy(model: &syncblob::Model) -> Result<syncblob::Model, Failure> {
    let mut bytes = Vec::new();
    model.write_to(&mut bytes)?;
    let limits = Limits::new();
    let limits = limits.max_layers(usize::MAX).max_blobs(usize::MAX).max_name_bytes(usize::MAX);
    Ok(OpenOptions::new().limits(limits).format(model.format()).from_bytes(bytes)?)
}

impl Model {
    pub fn new(model: syncblob::Model, max_memory: usize) -> Self {
        Self { opened: RwLock::new(Opened::new(Arc::new(model))), max_memory }
    }

    /// Returns the model for a net. Later changes of this object do not affect the returned model.
    pub fn share(&self, py: Python<'_>) -> PyResult<Arc<syncblob::Model>> {
        self.read(py, |opened| Ok(Arc::clone(&opened.model)))
    }

    fn read<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Opened) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        detached(py, || work(&self.opened.read().unwrap_or_else(PoisonError::into_inner)))
    }

    fn write<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Opened) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        detached(py, || work(&mut self.opened.write().unwrap_or_else(PoisonError::into_inner)))
    }

    fn find(&self, name: &Bound<'_, PyString>) -> PyResult<Option<usize>> {
        let Ok(bytes) = arguments::bytes(name) else { return Ok(None) };
        self.read(name.py(), |opened| Ok(opened.names.index(&bytes)))
    }

    /// Makes the exception for a missing name. The message suggests a similar name.
    fn missing(&self, name: &Bound<'_, PyString>) -> PyResult<PyErr> {
        const MOST_NAMES: usize = 1000; // comparing two names is slow
        const MOST_BYTES: usize = 100;
        let py = name.py();
        if name.to_string_lossy().len() > MOST_BYTES {
            return Ok(PyKeyError::new_err(name.clone().unbind()));
        }
        let names = self.read(py, |opened| {
            let short = opened.names.all().iter().filter(|name| name.len() <= MOST_BYTES);
            Ok(short.take(MOST_NAMES).cloned().collect::<Vec<_>>())
        })?;
        let names = names.iter().map(|name| text(py, name)).collect::<PyResult<Vec<_>>>()?;
        let near = py.import("difflib")?.call_method1("get_close_matches", (name, names, 1))?;
        Ok(match near.try_iter()?.next() {
            Some(near) => PyKeyError::new_err(format!(
                "{}: a layer is called {}",
                name.repr()?,
                near?.repr()?
            )),
            None => PyKeyError::new_err(name.clone().unbind()),
        })
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
            Ok(opened.model_mut()?.set_solver_info(&info)?)
        })
    }

    pub fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.read(py, |opened| Ok(opened.model.save(path)?))
    }

    pub fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        loop {
            let size = self.read(py, |opened| Ok(opened.model.size()?))?;
            let saved = bytes::written(py, size, |room| {
                let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
                Ok(calls::save(&opened.model, room)?)
            })?;
            if let Some(saved) = saved {
                return Ok(saved);
            } // retries, because the model was changed meanwhile
        }
    }
}

/// Returns a view of the model. `kind` is a class of `collections.abc`, such as `KeysView`.
fn view<'py>(model: &Bound<'py, Model>, kind: &str) -> PyResult<Bound<'py, PyAny>> {
    model.py().import("collections.abc")?.getattr(kind)?.call1((model,))
}

fn layer(model: &Bound<'_, Model>, index: usize) -> Layer {
    Layer { model: model.clone().unbind(), index }
}

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (name=Vec::new(), *, format="caffemodel"))]
    #[pyo3(text_signature = "(name='', *, format='caffemodel')")]
    fn create(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::bytes)] name: Vec<u8>,
        format: &str,
    ) -> PyResult<Self> {
        let format = arguments::format(py, format)?;
        detached(py, || {
            let mut model = syncblob::Model::create(format)?;
            if !name.is_empty() {
                model.set_name(name)?;
            }
            Ok(Self::new(model, 0))
        })
    }

    /// The net's name.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        text(py, &self.read(py, |opened| Ok(opened.model.name_bytes().to_vec()))?)
    }

    /// ``"caffemodel"``, ``"solverstate"``, ``"blob"`` (a mean file) or ``"blobvector"``.
    #[getter]
    fn format(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.read(py, |opened| Ok(opened.model.format().name()))
    }

    /// The layers, in the file's order.
    #[getter]
    fn layers<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let count = slf.get().__len__(slf.py())?;
        PyTuple::new(slf.py(), (0..count).map(|index| layer(slf, index)))
    }

    /// The blobs that belong to no layer: a solver's history, or the blobs of a mean file or a
    /// BlobProtoVector. `set_blob` replaces a blob.
    #[getter]
    fn blobs<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let count = slf.get().num_blobs(slf.py())?;
        let blob = |index: usize| StoredBlob { model: slf.clone().unbind(), at: index.into() };
        PyTuple::new(slf.py(), (0..count).map(blob))
    }

    /// The iteration at which a solver state was saved. Writable.
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

    /// The step of a solver state's learning rate policy. Writable.
    #[getter]
    fn current_step(&self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.solver_info(py)?.current_step)
    }

    #[setter]
    fn set_current_step(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let step = arguments::number("a step", value)?;
        self.change_solver_info(value.py(), |info| info.current_step = step)
    }

    /// The path of the net's file in a solver state, or an empty path. Writable.
    #[getter]
    fn learned_net(&self, py: Python<'_>) -> PyResult<OsString> {
        Ok(self.solver_info(py)?.learned_net.into_os_string())
    }

    #[setter]
    fn set_learned_net(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = path)] value: PathBuf,
    ) -> PyResult<()> {
        self.change_solver_info(py, |info| info.learned_net = value)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, |opened| Ok(opened.names.all().len()))
    }

    fn __getitem__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<Layer> {
        let found = slf.get().find(name)?;
        found.map(|index| layer(slf, index)).map_or_else(|| Err(slf.get().missing(name)?), Ok)
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name.cast::<PyString>() {
            Ok(name) => Ok(self.find(name)?.is_some()),
            Err(_) => Ok(false),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let names = self.read(py, |opened| Ok(opened.names.all().to_vec()))?;
        let names = names.iter().map(|name| text(py, name)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, names)?.try_iter()
    }

    /// Returns a view of the layers' names, like `dict.keys`.
    fn keys<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "KeysView")
    }

    /// Returns a view of the layers, like `dict.values`.
    fn values<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "ValuesView")
    }

    /// Returns a view of pairs of a name and its layer, like `dict.items`.
    fn items<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "ItemsView")
    }

    /// Returns the layer with this name, or `default` if no layer has this name.
    #[pyo3(signature = (name, default=None))]
    fn get(
        slf: &Bound<'_, Self>,
        name: &Bound<'_, PyString>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        match slf.get().find(name)? {
            Some(index) => Ok(Some(Bound::new(slf.py(), layer(slf, index))?.into_any().unbind())),
            None => Ok(default),
        }
    }

    /// Adds a layer at the end. `blobs` is a list of arrays or blobs. Of a blob, only the data is
    /// copied, not the diff.
    ///
    /// Values of a type that float32 represents exactly are stored as float32. Values of all other
    /// types, and lists of Python numbers, are stored as float64. Integers that float64 cannot
    /// represent exactly raise a `DtypeError`. If a blob cannot be stored, no layer is added.
    #[pyo3(signature = (name, r#type=Vec::new(), blobs=None))]
    #[pyo3(text_signature = "($self, name, type='', blobs=None)")]
    fn add_layer(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = arguments::bytes)] name: Vec<u8>,
        #[pyo3(from_py_with = arguments::bytes)] r#type: Vec<u8>,
        blobs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Layer> {
        let mut given = Vec::new();
        if let Some(blobs) = blobs {
            check_list(blobs)?;
        }
        for blob in blobs.map(|blobs| blobs.try_iter()).transpose()?.into_iter().flatten() {
            given.push(stored(&blob?, None)?);
        }
        let given: Vec<&Blob> = given.iter().map(|blob| blob.get()).collect();
        let index = slf.get().write(slf.py(), |opened| {
            let model = opened.model_mut()?;
            let index = model.add_layer(&name, r#type)?;
            let mut blobs = given.into_iter();
            if let Err(failure) = blobs.try_for_each(|blob| blob.add_to(model, Some(index))) {
                model.pop_layer()?;
                return Err(failure);
            }
            if !opened.names.push(&name) {
                opened.names = naming::layer_names(&opened.model);
            }
            Ok(index)
        })?;
        Ok(layer(slf, index))
    }

    /// Adds a blob that belongs to no layer, such as a solver's history. The rules of `add_layer`
    /// for types apply.
    fn add_blob(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let blob = stored(value, None)?;
        let blob = blob.get();
        self.write(value.py(), |opened| blob.add_to(opened.model_mut()?, None))
    }

    /// Replaces one of `blobs`. The rules of `Layer.set_blob` apply.
    ///
    /// >>> state = Model(format="solverstate")
    /// >>> state.add_blob([1.0])
    /// >>> state.set_blob(0, [[2.0, 3.0]], replace=True)
    /// >>> state.blobs[0].shape
    /// (1, 2)
    #[pyo3(signature = (index, value, *, replace=false))]
    fn set_blob(
        &self,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        replace: bool,
    ) -> PyResult<()> {
        let at = index_of(index, self.num_blobs(index.py())?, "model")?.into();
        self.put(at, value, replace)
    }

    /// Loads all blobs into a dict of arrays with PyTorch's names and shapes: ``conv1.weight``,
    /// ``conv1.bias``, ``bn.running_mean``. A PyTorch module can load the dict if its submodules
    /// have the layers' names. Each array is a separate copy.
    ///
    /// A BatchNorm and the Scale after it become one module with the BatchNorm's name. Without a
    /// Scale, the module's weight is 1 and its bias 0. Caffe stores mean and variance multiplied by
    /// a factor. This method divides mean and variance by the factor. The layers are in the net's
    /// order, if Caffe wrote the model.
    ///
    /// Blobs of layers without an equivalent in PyTorch are named by their numbers. A solver's
    /// blobs are ``history.0`` and so on. With ``names="caffe"`` all blobs are named by their
    /// numbers (``conv1.0``, ``bn.2``) and have the file's values and shapes. `framework` is
    /// ``"numpy"`` or ``"torch"``.
    #[pyo3(signature = (*, framework="numpy", names="torch"))]
    fn state_dict<'py>(
        &self,
        py: Python<'py>,
        framework: &str,
        names: &str,
    ) -> PyResult<Bound<'py, PyDict>> {
        let framework = Framework::named(py, framework)?;
        let entries: fn(&Opened) -> Result<Vec<state_dict::Named>, Failure> = match names {
            "torch" => Opened::tensors,
            "caffe" => |opened| Ok(state_dict::blobs(&opened.model, &opened.names)),
            _ => {
                let text = format!("names must be torch or caffe, not {names:?}");
                return Err(refused(py, "ArgumentError", &text));
            }
        };
        let entries = self.read(py, |opened| {
            let mut entries = entries(opened)?;
            entries.extend(state_dict::others(&opened.model));
            Ok(entries)
        })?;
        state_dict::load(py, &framework, &entries, |entry| {
            self.read(py, |opened| entry.load(&opened.model))
        })
    }

    /// Writes the file. Unchanged parts are written byte for byte. The path always names the
    /// complete old file or the complete new file, and may be the path of the loaded file. The
    /// default limits of `load` do not limit `save`. A path with the extension of another format is
    /// refused.
    #[pyo3(name = "save")]
    fn save_to(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = saved_path)] path: PathBuf,
    ) -> PyResult<()> {
        self.save(py, path)
    }

    /// Returns the bytes that `save` would write.
    #[pyo3(name = "to_bytes")]
    fn bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.to_bytes(py)
    }

    /// Pickles the content and the memory limit. The unpickled model has no other limits, because
    /// the content has already passed them.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let options = PyDict::new(py);
        options.set_item("format", self.format(py)?)?;
        options.set_item("max_memory", (self.max_memory != 0).then_some(self.max_memory))?;
        for bound in ["max_layers", "max_blobs", "max_name_bytes"] {
            options.set_item(bound, isize::MAX)?;
        }
        let load = py.import("syncblob")?.getattr("load")?;
        let open = py.import("functools")?.getattr("partial")?.call((load,), Some(&options))?;
        Ok((open, (self.to_bytes(py)?,)))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (format, name) = (self.format(py)?, self.name(py)?);
        let name = if name.is_empty()? { String::new() } else { format!(" {}", name.repr()?) };
        Ok(format!("<syncblob.Model {format}{name}, {} layers>", self.__len__(py)?))
    }
}

impl Model {
    fn num_blobs(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, |opened| Ok(opened.model.blobs().len()))
    }

    /// Replaces a blob. If `replace` is true, the value may have another shape and type.
    fn put(&self, at: BlobAt, value: &Bound<'_, PyAny>, replace: bool) -> PyResult<()> {
        let py = value.py();
        let kept = match replace {
            true => None,
            false => Some(self.read(py, |opened| {
                let stored = opened.model.blob(at)?;
                let info = stored.info();
                Ok((info.shape().to_vec(), loaded_as(info.dtype())))
            })?),
        };
        let value = stored(value, kept.as_ref())?;
        let blob = value.get();
        self.write(value.py(), |opened| blob.put_into(opened.model_mut()?, at))
    }
}

/// Converts an index to a position in a list of `count` blobs. A negative index counts from the
/// end.
fn index_of(index: &Bound<'_, PyAny>, count: usize, whose: &str) -> PyResult<usize> {
    let py = index.py();
    let given = match index.extract::<isize>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => isize::MAX,
        given => given?,
    };
    let found = usize::try_from(given).ok().or_else(|| count.checked_add_signed(given));
    found.filter(|found| *found < count).ok_or_else(|| {
        refused(
            py,
            "RangeError",
            &format!("blob index {index} is out of range: the {whose} has {count} blobs"),
        )
    })
}

/// Refuses an array where a list of arrays is needed: each row of the array would become a blob.
fn check_list(blobs: &Bound<'_, PyAny>) -> PyResult<()> {
    if blobs.hasattr("__array__")? || blobs.hasattr("__dlpack__")? {
        return Err(PyTypeError::new_err("blobs must be a list of arrays: pass [array] for one"));
    }
    Ok(())
}

/// Opens a Caffe file (``.caffemodel``, ``.solverstate``, ``mean.binaryproto``) from its path, or
/// from its content as bytes. The file is indexed and checked. Values are loaded on request. Texts
/// that are not UTF-8 are decoded as by `os.fsdecode`. For a file without a size, such as a pipe,
/// pass its bytes.
///
/// `format` replaces the detection of the format: ``"caffemodel"``, ``"solverstate"``, ``"blob"``
/// or ``"blobvector"``. The other arguments are limits. A file above a limit raises a `LimitError`.
/// `max_memory` limits the bytes of one read, index and values together (default: no limit).
/// `max_layers` (default 100,000) and `max_blobs` (1,000,000) limit counts. `max_name_bytes`
/// (65,536) limits each name and type.
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
    let limits = arguments::limits(&bounds)?;
    let model = open(source, format, limits)?;
    detached(source.py(), || Ok(Model::new(model, limits.memory())))
}

/// The shape and type that a new value must have.
type Kept = (Vec<usize>, Dtype);

/// Returns the value itself if it is a blob that a Caffe file can store, otherwise a copy. The
/// copy's type is float32 if float32 represents all values of the value's type exactly, else
/// float64. `kept` is the required shape and type. Numbers without a type get the type in `kept`.
fn stored<'py>(value: &Bound<'py, PyAny>, kept: Option<&Kept>) -> PyResult<Bound<'py, Blob>> {
    let py = value.py();
    if let Ok(blob) = value.cast::<Blob>() {
        let fits = kept.map_or(Ok(true), |kept| blob.get().is_of(py, &kept.0, kept.1))?;
        if fits && blob.get().check_stored(py)? {
            return Ok(blob.clone());
        }
    }
    let array = tensor::to_array(value)?;
    if py.import("numpy.ma")?.call_method1("is_masked", (value,))?.is_truthy()? {
        let text = "the array has masked values: pass array.filled()";
        return Err(refused(py, "ArgumentError", text));
    }
    let can_cast = py.import("numpy")?.getattr("can_cast")?;
    let given = array.getattr("dtype")?;
    let fits = |name: &str| can_cast.call1((&given, name, "safe"))?.is_truthy();
    let mut dtype = if fits("float32")? { Dtype::F32 } else { Dtype::F64 };
    if dtype == Dtype::F64 && !fits("float64")? {
        let text = format!("Caffe's files store float32 or float64, not {given}");
        return Err(refused(py, "DtypeError", &text));
    }
    if let Some(kept) = kept {
        check_kept(&array, kept)?;
        if dtype == Dtype::F64 && kept.1 == Dtype::F32 && value.hasattr("dtype")? {
            let text = format!(
                "the blob is of float32, the value of {given}: value.astype(\"float32\") rounds it; \
                 set_blob(index, value, replace=True) changes the blob's type"
            );
            return Err(refused(py, "DtypeError", &text));
        }
        dtype = kept.1;
    }
    let shape = arguments::shape(&array.getattr("shape")?)?;
    let blob = detached(py, || {
        let mut blob = BlobAny::new(&Context::host(), dtype)?;
        blob.reshape(shape)?;
        Ok(Blob::new(blob))
    })?;
    let blob = Bound::new(py, blob)?;
    let data = blob.getattr("data")?;
    let numpy = py.import("numpy")?;
    let silent = [("over", "ignore")].into_py_dict(py)?;
    let state = numpy.call_method("seterr", (), Some(&silent))?;
    let copied = numpy.call_method1("copyto", (&data, &array));
    numpy.call_method("seterr", (), Some(state.cast::<PyDict>()?))?;
    copied?;
    if !is_exact(&data, &array, dtype)? {
        let name = dtype.numpy_name();
        let text = format!("{given} is stored as {name}, which does not hold all of the values");
        return Err(refused(py, "DtypeError", &text));
    }
    Ok(blob)
}

fn check_kept(array: &Bound<'_, PyAny>, kept: &Kept) -> PyResult<()> {
    let py = array.py();
    let (given, wanted) = (array.getattr("shape")?, PyTuple::new(py, &kept.0)?);
    if given.eq(&wanted)? {
        return Ok(());
    }
    let text = format!(
        "the blob has the shape {wanted}, the value {given}: set_blob(index, value, replace=True) \
         changes the blob's shape"
    );
    Err(refused(py, "ArgumentError", &text))
}

/// Returns whether all stored integers are exact and no finite number became infinite. A float
/// rounds only integers that have more digits than the float's mantissa. The function compares
/// Python's numbers, because Python compares an int and a float exactly.
fn is_exact(stored: &Bound<'_, PyAny>, given: &Bound<'_, PyAny>, held_as: Dtype) -> PyResult<bool> {
    let digits = if held_as == Dtype::F32 { f32::MANTISSA_DIGITS } else { f64::MANTISSA_DIGITS };
    let last = 1_i64 << digits;
    let kind = given.getattr("dtype")?.getattr("kind")?.extract::<char>()?;
    if held_as == Dtype::F32 && kind == 'f' {
        let numpy = given.py().import("numpy")?;
        let finite = |array| numpy.call_method1("isfinite", (array,));
        return numpy.call_method1("array_equal", (finite(stored)?, finite(given)?))?.extract();
    }
    if !matches!(kind, 'i' | 'u') {
        return Ok(true);
    }
    let is_empty = given.getattr("size")?.eq(0)?;
    if is_empty || (given.call_method0("max")?.le(last)? && given.call_method0("min")?.ge(-last)?) {
        return Ok(true);
    }
    stored.call_method0("tolist")?.eq(given.call_method0("tolist")?)
}

/// A layer of a model. The object is a sequence of the layer's blobs: ``layer[0] = array`` calls
/// `set_blob`.
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

    fn message(&self, py: Python<'_>) -> PyResult<Message> {
        let limits = syncblob_net::Limits::default();
        let index = self.index;
        self.model
            .get()
            .read(py, |opened| Ok(Message::from_layer(&opened.model.layer(index)?, &limits)?))
    }

    fn at(&self, index: &Bound<'_, PyAny>) -> PyResult<BlobAt> {
        let found = index_of(index, self.__len__(index.py())?, "layer")?;
        Ok((self.index, found).into())
    }

    fn blob(&self, py: Python<'_>, at: BlobAt) -> StoredBlob {
        StoredBlob { model: self.model.clone_ref(py), at }
    }
}

#[pymethods]
impl Layer {
    /// The layer's name in the file.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        text(py, &self.read(py, |layer| layer.name_bytes().to_vec())?)
    }

    /// The layer's type, such as ``"Convolution"``, or ``"CONVOLUTION"`` in files of 2014.
    #[getter]
    fn r#type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        text(py, &self.read(py, |layer| layer.layer_type_bytes().to_vec())?)
    }

    /// The layer's index in the model.
    #[getter]
    fn index(&self) -> usize {
        self.index
    }

    /// The names of the blobs that the layer reads, if Caffe wrote the model.
    #[getter]
    fn bottoms<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        plain::texts(py, &self.message(py)?, "bottom")
    }

    /// The names of the blobs that the layer writes, if Caffe wrote the model.
    #[getter]
    fn tops<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        plain::texts(py, &self.message(py)?, "top")
    }

    /// All other fields of the layer, by Caffe's names, in the form of `NetLayer.params`. The
    /// fields of an old file keep their old form.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        plain::parameters(py, &self.message(py)?)
    }

    /// The layer's blobs, which are not loaded yet.
    #[getter]
    fn blobs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let count = self.__len__(py)?;
        PyTuple::new(py, (0..count).map(|index| self.blob(py, (self.index, index).into())))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, |layer| layer.num_blobs())
    }

    /// Returns one blob, or the blobs of a slice.
    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        if index.is_instance_of::<PySlice>() {
            return self.blobs(py)?.as_any().get_item(index);
        }
        Ok(Bound::new(py, self.blob(py, self.at(index)?))?.into_any())
    }

    fn __setitem__(&self, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.model.get().put(self.at(index)?, value, false)
    }

    /// Replaces a blob with a copy of an array, or of another blob's data. The value must have the
    /// old blob's shape and type. Numbers without a type get the old type. If `replace` is true,
    /// the value may have any shape, and is stored in the type that `add_layer` would choose.
    ///
    /// >>> layer = Model().add_layer("ip", "InnerProduct", [[1.0, 2.0]])
    /// >>> layer.set_blob(0, [3.0], replace=True)
    /// >>> layer[0].shape
    /// (1,)
    #[pyo3(signature = (index, value, *, replace=false))]
    fn set_blob(
        &self,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        replace: bool,
    ) -> PyResult<()> {
        self.model.get().put(self.at(index)?, value, replace)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.blobs(py)?.try_iter()
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let blobs = self.blobs(py)?.to_list();
        blobs.reverse()?;
        blobs.try_iter()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.model.is(&other.model) && self.index == other.index
    }

    fn __hash__(&self) -> u64 {
        hash((self.model.as_ptr().addr(), self.index))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (name, kind, blobs) = (self.name(py)?, self.r#type(py)?, self.__len__(py)?);
        Ok(format!("<syncblob.Layer {} {}, {blobs} blobs>", name.repr()?, kind.repr()?))
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A blob in a model, loaded on request. NumPy and all libraries that support DLPack accept this
/// object as an array. Each use loads a separate copy of the values.
///
/// ``==`` tests whether two objects are the same blob of the same model. With a NumPy array, ``==``
/// compares elements. `numpy.array_equal` compares the values of two blobs.
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

pub fn load_any(stored: &syncblob::StoredBlob<'_>) -> syncblob::Result<BlobAny> {
    stored.load_as(&Context::host(), loaded_as(stored.info().dtype()))
}

/// Returns the smallest float type that represents all values of a stored type exactly.
fn loaded_as(stored: Dtype) -> Dtype {
    stored.exact_float().unwrap_or(stored)
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

    /// NumPy's name of the type in which the blob is loaded: ``"float32"`` or ``"float64"``.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.info(py, |info| loaded_as(info.dtype()).numpy_name())
    }

    /// Whether the file also has the blob's diff.
    #[getter]
    fn has_diff(&self, py: Python<'_>) -> PyResult<bool> {
        self.info(py, |info| info.diff_count() > 0)
    }

    /// Loads data and diff into a blob of type `dtype` (default: this object's `dtype`), on the
    /// host or on a device. Values that are loaded as float32 are rounded. A value that an integer
    /// type cannot represent, such as a fraction, raises a `DataError`. The type bfloat16 raises a
    /// `DtypeError`, and so does float16 for a blob that is not stored as float16.
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
            let dtype = dtype.unwrap_or_else(|| loaded_as(stored.info().dtype()));
            match stored.load_as(&context, dtype) {
                Ok(blob) => Ok(Blob::new(blob)),
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    let text = format!("the blob cannot be loaded as {}", dtype.numpy_name());
                    Err(Failure::Refused("DtypeError", text))
                }
                Err(error) => Err(error.into()),
            }
        })
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = copy; // the result is always a copy
        let array = Bound::new(py, self.load(py, None, "cpu")?)?.getattr("data")?;
        tensor::converted(array, dtype, None)
    }

    /// Returns values of the blob, with NumPy's indices: ``blob[...]``, ``blob[:, 0]``.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.__array__(py, None, None)?.get_item(key)
    }

    /// Loads the values and iterates over the first axis, like a NumPy array.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.__array__(py, None, None)?.try_iter()
    }

    #[pyo3(signature = (**options))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Bound::new(py, self.load(py, None, "cpu")?)?.call_method("__dlpack__", (), options)
    }

    /// Returns DLPack's device for host memory.
    fn __dlpack_device__(&self) -> (i32, i32) {
        tensor::HOST
    }

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
