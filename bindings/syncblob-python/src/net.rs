//! The Python classes Net and NetLayer.

use std::ffi::CString;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use syncblob::Limits;
use syncblob_cli::naming::Names;
use syncblob_net::{Mean, NetOptions, Onnx, OnnxOptions};

use crate::arguments::{self, source, Source};
use crate::error::{detached, refused, Failure};
use crate::model::Model;
use crate::state_dict::{self, Framework};
use crate::{bytes, plain, tensor};

/// Net(prototxt, weights=None, *, inputs=None, batch=None, level=0, stages=())
/// --
///
/// A net as Caffe would run it in phase TEST: its layers in order, and the shapes of its blobs. A
/// net with weights can be converted to ONNX.
///
/// `prototxt` is a path, or the text as bytes, in the format of any version of Caffe. If it is
/// `None`, the net is read from `weights`. `weights` is a path, bytes, or a `Model`. Later changes
/// of that model do not affect the net.
///
/// `inputs` maps names of inputs to shapes, which replace the net's shapes. A net in a model rarely
/// has shapes. `batch` is the new size of the first axis of the first input. The first axes of
/// other inputs change, too, if they have the same size. `level` and `stages` are matched with the
/// layers' include and exclude rules.
///
/// >>> net = Net(b'''
/// ...     name: "tiny" input: "data" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8
/// ...     layer { name: "pool" type: "Pooling" bottom: "data" top: "pool"
/// ...             pooling_param { kernel_size: 2 stride: 2 } }''', batch=4)
/// >>> net.shapes
/// {'data': (4, 3, 8, 8), 'pool': (4, 3, 4, 4)}
/// >>> net.layers[0].params
/// {'pooling_param': {'kernel_size': 2, 'stride': 2}}
#[pyclass(frozen, module = "syncblob")]
pub struct Net {
    net: Arc<syncblob_net::Net>,
}

#[pymethods]
impl Net {
    #[new]
    #[pyo3(signature = (prototxt, weights=None, *, inputs=None, batch=None, level=None,
                        stages=Vec::new()))]
    #[pyo3(text_signature = "(prototxt, weights=None, *, inputs=None, batch=None, level=0, \
                             stages=())")]
    fn create(
        py: Python<'_>,
        prototxt: Option<&Bound<'_, PyAny>>,
        weights: Option<&Bound<'_, PyAny>>,
        inputs: Option<&Bound<'_, PyDict>>,
        batch: Option<&Bound<'_, PyAny>>,
        level: Option<&Bound<'_, PyAny>>,
        stages: Vec<String>,
    ) -> PyResult<Self> {
        let mut options = NetOptions::default();
        options.inputs = inputs.map(shapes_by_name).transpose()?.unwrap_or_default();
        options.batch = batch.map(|batch| arguments::number("a batch", batch)).transpose()?;
        let level = level.map(|level| arguments::number("a level", level));
        (options.level, options.stages) = (level.transpose()?.unwrap_or(0), stages);
        let prototxt = prototxt.map(source).transpose()?;
        let weights_path = weights.map(path_of).transpose()?.flatten();
        let model = weights.map(model_of).transpose()?;
        if prototxt.is_none() && model.is_none() {
            let text = "pass a prototxt, or weights that contain a net";
            return Err(refused(py, "ArgumentError", text));
        }
        let path = match &prototxt {
            Some(Source::Path(path)) => Some(path.clone()),
            _ => None,
        };
        let net = detached(py, || open(prototxt, model, &options))?;
        Ok(Self { net: Arc::new(net.with_sources(path.as_deref(), weights_path.as_deref())) })
    }

    /// The net's name.
    #[getter]
    fn name(&self) -> &str {
        self.net.name()
    }

    /// The layers in execution order, without layers that only load data or only serve training.
    #[getter]
    fn layers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let layer = |index| NetLayer { net: Arc::clone(&self.net), index };
        PyTuple::new(py, (0..self.net.layers().len()).map(layer))
    }

    /// The names of the net's input blobs.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.net.inputs().iter().map(|input| &input.0))
    }

    /// The names of the blobs that no layer reads.
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.net.outputs())
    }

    /// The shapes of all blobs by name, in the order in which the layers make them. Omits the blobs
    /// of unknown layers, and blobs that depend on them.
    #[getter]
    fn shapes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let shapes = PyDict::new(py);
        for (name, shape) in py.detach(|| self.net.shapes()).known {
            shapes.set_item(name, PyTuple::new(py, shape)?)?;
        }
        Ok(shapes)
    }

    /// Warnings about parts of the net that are omitted or changed.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.net.warnings())
    }

    /// Converts the net to ONNX, opset 17. Returns bytes or, if `path` is given, writes a file. The
    /// path always names the complete old file or the complete new file. Weights above 2 GiB do not
    /// fit into one file, so they are written to a second file. The second file's name is the first
    /// file's name with ``.data`` appended.
    ///
    /// Blobs keep their names. If layers cannot be converted, the `UnsupportedError` lists all of
    /// them, one per line. If `custom` is true, such layers become nodes of the domain ``caffe``,
    /// which the runtime must implement. `shapes` maps names of these nodes' outputs to shapes.
    ///
    /// `outputs` are the blobs to compute instead of the net's outputs. Layers that these blobs do
    /// not need are omitted. `batch` names the batch axis, which then has no fixed size. If `fp16`
    /// is true, weights are stored as 16-bit floats, and the net computes with 16-bit floats.
    /// `swap_rb`, `mean` and `scale` add Caffe's preprocessing as the first nodes, in this order:
    /// swap red and blue, subtract `mean`, multiply by `scale`. `mean` is one number for each
    /// channel, or an image, such as the blob of a ``mean.binaryproto``.
    #[pyo3(signature = (path=None, *, outputs=None, batch=None, fp16=false, mean=None, scale=None,
                        swap_rb=false, custom=false, shapes=None))]
    #[pyo3(
        text_signature = "($self, path=None, *, outputs=(), batch=None, fp16=False, mean=None, \
                             scale=None, swap_rb=False, custom=False, shapes=None)"
    )]
    #[allow(clippy::too_many_arguments)] // keyword arguments in Python
    fn to_onnx<'py>(
        &self,
        py: Python<'py>,
        path: Option<&Bound<'py, PyAny>>,
        outputs: Option<&Bound<'py, PyAny>>,
        batch: Option<String>,
        fp16: bool,
        mean: Option<&Bound<'py, PyAny>>,
        scale: Option<&Bound<'py, PyAny>>,
        swap_rb: bool,
        custom: bool,
        shapes: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut options = OnnxOptions::default();
        options.outputs = outputs.map(names).transpose()?.unwrap_or_default();
        options.shapes = shapes.map(shapes_by_name).transpose()?.unwrap_or_default();
        (options.batch, options.half, options.custom) = (batch, fp16, custom);
        options.preprocessing.swap_rb = swap_rb;
        options.preprocessing.mean = mean.map(mean_of).transpose()?;
        let scale = scale.map(|scale| arguments::number("a scale", scale));
        options.preprocessing.scale = scale.transpose()?;
        match path.map(arguments::path).transpose()? {
            Some(path) => {
                let onnx = detached(py, || self.save(&options, path))?;
                warn(py, &onnx).map(|()| None)
            }
            None => {
                let onnx = detached(py, || Ok(self.net.to_onnx(&options)?))?;
                let bytes = whole(py, &onnx)?;
                warn(py, &onnx)?;
                Ok(Some(bytes))
            }
        }
    }

    /// Loads the weights into a dict of arrays with PyTorch's names and shapes, for a module whose
    /// submodules have the layers' names. See `Model.state_dict`.
    #[pyo3(signature = (*, framework="numpy"))]
    fn state_dict<'py>(&self, py: Python<'py>, framework: &str) -> PyResult<Bound<'py, PyDict>> {
        let framework = Framework::named(py, framework)?;
        let tensors = detached(py, || Ok(self.net.state_dict()?))?;
        let Some(model) = self.net.model() else { return Ok(PyDict::new(py)) };
        let names = Names::new(self.net.layers().iter().map(|layer| layer.name().as_bytes()));
        let entries = state_dict::tensors(tensors, &names);
        state_dict::load(py, &framework, &entries, |entry| detached(py, || entry.load(model)))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = match self.net.name() {
            "" => String::new(),
            name => format!(" {}", PyString::new(py, name).repr()?),
        };
        Ok(format!("<syncblob.Net{name}, {} layers>", self.net.layers().len()))
    }
}

impl Net {
    fn save(&self, options: &OnnxOptions, path: PathBuf) -> Result<Onnx, Failure> {
        let onnx = self.net.to_onnx(options)?;
        match onnx.save(&path) {
            Ok(()) => Ok(onnx),
            Err(error) => Err(Failure::Net(error, Some(path))),
        }
    }
}

/// Reports how the ONNX file differs from the net, as Python warnings.
fn warn(py: Python<'_>, onnx: &Onnx) -> PyResult<()> {
    let overflow = onnx.overflow().map(|overflow| overflow.to_string());
    for text in onnx.warnings().iter().chain(&overflow) {
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    Ok(())
}

/// Returns the bytes of the ONNX file, without a second copy in memory.
fn whole<'py>(py: Python<'py>, onnx: &Onnx) -> PyResult<Bound<'py, PyBytes>> {
    let size = if onnx.needs_external() { 0 } else { onnx.size() }; // `write` refuses a larger file
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let written = bytes::written(py, size, |room| {
        let mut out = Room(room);
        onnx.write(&mut out)?;
        Ok(out.0.is_empty())
    })?;
    Ok(written.expect("as many bytes as the size"))
}

/// The part of a memory that is not written yet.
struct Room<'a>(&'a mut [MaybeUninit<u8>]);

impl Write for Room<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.0.len());
        let (now, later) = std::mem::take(&mut self.0).split_at_mut(count);
        for (place, byte) in now.iter_mut().zip(bytes) {
            place.write(*byte);
        }
        self.0 = later;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn open(
    prototxt: Option<Source>,
    model: Option<Arc<syncblob::Model>>,
    options: &NetOptions,
) -> Result<syncblob_net::Net, Failure> {
    let open = |text: Option<&[u8]>| syncblob_net::Net::open(text, model, options);
    match prototxt {
        Some(Source::Path(path)) => {
            let net = options
                .limits
                .read_prototxt(&path)
                .map_err(Into::into)
                .and_then(|text| open(Some(&text)));
            net.map_err(|error| Failure::Net(error, Some(path)))
        }
        Some(Source::Bytes(text)) => Ok(open(Some(&text))?),
        None => Ok(open(None)?),
    }
}

fn model_of(weights: &Bound<'_, PyAny>) -> PyResult<Arc<syncblob::Model>> {
    match weights.cast::<Model>() {
        Ok(model) => model.get().share(weights.py()),
        Err(_) => arguments::open(weights, None, Limits::new()).map(Arc::new),
    }
}

/// Returns the path of the weights, or None if the weights are bytes or a `Model`.
fn path_of(weights: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    let is_path = weights.is_instance_of::<PyString>() || weights.hasattr("__fspath__")?;
    is_path.then(|| arguments::path(weights)).transpose()
}

fn shapes_by_name(shapes: &Bound<'_, PyDict>) -> PyResult<Vec<(String, Vec<i64>)>> {
    let shape = |(name, shape): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let dims = shape.try_iter()?.map(|dim| arguments::number("a dimension", &dim?));
        Ok((name.extract()?, dims.collect::<PyResult<_>>()?))
    };
    shapes.iter().map(shape).collect()
}

fn names(value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    match value.cast::<PyString>() {
        Ok(name) => Ok(vec![name.extract()?]),
        Err(_) => value.try_iter()?.map(|name| name?.extract()).collect(),
    }
}

/// Converts a mean. The mean is one number for each channel, or an array: an image of channels ×
/// height × width, with or without a leading axis of size 1.
fn mean_of(value: &Bound<'_, PyAny>) -> PyResult<Mean> {
    if value.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("mean must be numbers: read a file with load_blob"));
    }
    if !value.hasattr("shape")? {
        let numbers = value.try_iter()?.map(|number| arguments::number("a mean", &number?));
        return Ok(Mean::Channels(numbers.collect::<PyResult<_>>()?));
    }
    let array = tensor::to_array(value)?;
    let shape: Vec<i64> = array.getattr("shape")?.extract()?;
    let floats = array.call_method1("astype", ("float32",));
    let floats = arguments::fitting("a mean", value, floats)?.call_method0("ravel")?;
    let values = floats.call_method0("tolist")?.extract()?;
    match shape[..] {
        [_] => Ok(Mean::Channels(values)),
        [channels, height, width] | [1, channels, height, width] => {
            Ok(Mean::Image { shape: [channels, height, width], values })
        }
        _ => {
            let text = format!(
                "the mean has shape {shape:?}; it must be channels, channels x height x width, or \
                 1 x channels x height x width"
            );
            Err(refused(value.py(), "ArgumentError", &text))
        }
    }
}

/// A layer of a `Net`.
#[pyclass(frozen, module = "syncblob")]
pub struct NetLayer {
    net: Arc<syncblob_net::Net>,
    index: usize,
}

impl NetLayer {
    fn layer(&self) -> &syncblob_net::Layer {
        &self.net.layers()[self.index]
    }
}

#[pymethods]
impl NetLayer {
    /// The layer's name.
    #[getter]
    fn name(&self) -> &str {
        self.layer().name()
    }

    /// The layer's type, such as ``"Convolution"``, in Caffe's current form, even if the net is
    /// older.
    #[getter]
    fn r#type(&self) -> &str {
        self.layer().layer_type()
    }

    /// The names of the blobs that the layer reads.
    #[getter]
    fn bottoms<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.layer().bottoms())
    }

    /// The names of the blobs that the layer writes. A layer that works in place writes one of its
    /// bottoms.
    #[getter]
    fn tops<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.layer().tops())
    }

    /// All other fields of the layer, by Caffe's names: ``{"convolution_param": {"num_output": 64,
    /// "kernel_size": [7]}}``. Repeated fields are lists, enum values are texts, and unknown
    /// messages are bytes.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        plain::parameters(py, self.layer().message())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shown = |text| PyString::new(py, text).repr();
        Ok(format!("<syncblob.NetLayer {} {}>", shown(self.name())?, shown(self.r#type())?))
    }
}
