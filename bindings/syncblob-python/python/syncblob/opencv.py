"""Caffe's nets for OpenCV 5, which has no importer for them any more."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Optional, Union

from ._syncblob import Net

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    _Source = Union[str, PathLike[str], Buffer, NDArray[Any]]


def readNetFromCaffe(prototxt: "_Source", caffeModel: "Optional[_Source]" = None, *,  # noqa: N803
                     inputs: Optional[Mapping[str, Sequence[int]]] = None) -> Any:
    """Reads a net as the function of that name in OpenCV 4 did: a ``cv2.dnn.Net``.

    `prototxt` and `caffeModel` are files by their paths, or contents: bytes, a bytearray, an array
    of uint8. The net is converted in memory, and `cv2.dnn.readNetFromONNX` reads it. `inputs` are
    shapes of inputs by name, for a net that does not say them.

    OpenCV comes as the package opencv-python, or opencv-python-headless without windows.
    """
    try:
        import cv2
        import numpy
    except ImportError as error:
        text = "syncblob.opencv needs OpenCV: pip install opencv-python-headless"
        raise ImportError(text, name=error.name) from error
    net = Net(prototxt, caffeModel, inputs=inputs)
    return cv2.dnn.readNetFromONNX(numpy.frombuffer(net.to_onnx(), "uint8"))
