"""Caffe's nets for OpenCV 5, which has no importer for them any more."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Optional, Union

from ._syncblob import Net

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    _Source = Union[str, PathLike[str], Buffer, NDArray[Any]]


def readNetFromCaffe(prototxt: "Optional[_Source]" = None,
                     caffeModel: "Optional[_Source]" = None, *,  # noqa: N803
                     bufferProto: "Optional[_Source]" = None,  # noqa: N803
                     bufferModel: "Optional[_Source]" = None,  # noqa: N803
                     inputs: Optional[Mapping[str, Sequence[int]]] = None) -> Any:
    """Reads a net as the function of that name in OpenCV 4 did: a ``cv2.dnn.Net``.

    `prototxt` and `caffeModel` are files by their paths, or contents: bytes, a bytearray, an array
    of uint8; `bufferProto` and `bufferModel` are other names for them. The net is converted in memory, and `cv2.dnn.readNetFromONNX` reads it. `inputs` are
    shapes of inputs by name, for a net that does not say them.

    OpenCV comes as the package opencv-python, or opencv-python-headless without windows.
    """
    prototxt = _one("prototxt", prototxt, "bufferProto", bufferProto)
    if prototxt is None:
        raise TypeError("readNetFromCaffe() needs a prototxt")
    caffeModel = _one("caffeModel", caffeModel, "bufferModel", bufferModel)  # noqa: N806
    try:
        import cv2
        import numpy
    except ImportError as error:
        text = "syncblob.opencv needs OpenCV: pip install opencv-python-headless"
        raise ImportError(text, name=error.name) from error
    net = Net(prototxt, caffeModel, inputs=inputs)
    return cv2.dnn.readNetFromONNX(numpy.frombuffer(net.to_onnx(), "uint8"))


def _one(name: str, value: "Optional[_Source]", other: str,
         buffer: "Optional[_Source]") -> "Optional[_Source]":
    if value is not None and buffer is not None:
        raise TypeError(f"readNetFromCaffe() takes {name} or {other}, not both")
    return buffer if value is None else value
