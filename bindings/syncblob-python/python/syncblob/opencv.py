"""Reads Caffe's nets for OpenCV 5, which no longer has an importer for them."""

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
    """Returns a ``cv2.dnn.Net``, like OpenCV 4's function of the same name.

    `prototxt` and `caffeModel` are paths, or the files' contents: bytes, a bytearray or an array of
    uint8. `bufferProto` and `bufferModel` are other names of these arguments. `inputs` maps names
    of inputs to shapes, for a net that does not contain these shapes. The net is converted to ONNX
    in memory, and then read by `cv2.dnn.readNetFromONNX`.

    OpenCV is in the package opencv-python, or in opencv-python-headless, which opens no windows.
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
