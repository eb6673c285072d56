"""Caffe's model files as NumPy arrays and PyTorch tensors, without Caffe.

    import syncblob

    model = syncblob.load("resnet.caffemodel")
    weights = model.state_dict()

    net = syncblob.Net("deploy.prototxt", "resnet.caffemodel")
    net.to_onnx("resnet.onnx")
"""

from collections.abc import Mapping as _Mapping

from . import opencv
from ._syncblob import (
    Blob,
    Layer,
    Model,
    Net,
    NetLayer,
    StoredBlob,
    __version__,
    errors,
    from_dlpack,
    load,
    load_backend,
    load_blob,
)
from .errors import (
    ArgumentError,
    DataError,
    DeviceError,
    DtypeError,
    Error,
    FileError,
    ForbiddenFileError,
    LimitError,
    MissingFileError,
    OutOfMemoryError,
    RangeError,
    UnsupportedError,
)

_Mapping.register(Model)
for _function in (from_dlpack, load, load_backend, load_blob):
    _function.__module__ = __name__  # a pickled function contains this name

__all__ = [
    "ArgumentError",
    "Blob",
    "DataError",
    "DeviceError",
    "DtypeError",
    "Error",
    "FileError",
    "ForbiddenFileError",
    "Layer",
    "LimitError",
    "MissingFileError",
    "Model",
    "Net",
    "NetLayer",
    "OutOfMemoryError",
    "RangeError",
    "StoredBlob",
    "UnsupportedError",
    "__version__",
    "from_dlpack",
    "load",
    "load_backend",
    "load_blob",
    "opencv",
]
