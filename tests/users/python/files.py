"""Models for the tests: real files, if available, and models made here."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import syncblob

IS_NUMPY_1 = np.__version__.startswith("1.")
ROOT = pathlib.Path(__file__).resolve().parents[3]
DEADLINE = 600  # seconds: a longer run is stuck, also on a busy machine or under qemu-user

sys.path.append(str(ROOT / "fuzz/seeds"))
from wire import data as field, legacy, shape  # noqa: E402


def resnet():
    path = os.environ.get("SYNCBLOB_TEST_RESNET")
    return pathlib.Path(path) if path else None


def data():
    return pathlib.Path(os.environ.get("SYNCBLOB_TEST_DATA") or ROOT.parent / "shared/data")


def cifar10():
    """Returns {name in the documentation: path}, or {} if a file is missing."""
    named = {"cifar10_full.caffemodel": "cifar10_full_everpeace_iter70000.caffemodel",
             "cifar10_quick.caffemodel": "cifar10_quick_skywang666_iter4000.caffemodel",
             "cifar10_mean.binaryproto": "mean_cifar10_skywang666.binaryproto"}
    found = {name: data() / file for name, file in named.items()}
    return found if all(path.exists() for path in found.values()) else {}


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)


def run_code(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          timeout=DEADLINE, check=False)


def has_gpu():
    try:
        syncblob.Blob(1, device="cuda:0")
    except syncblob.DeviceError:
        if "FAKE_SCHEDULE" in os.environ:
            raise
        return False
    return True


def devices():
    return ("cpu", "sim:0", "cuda:0") if has_gpu() else ("cpu", "sim:0")


def real_models():
    found = sorted(path for path in data().glob("*")
                   if path.suffix in (".caffemodel", ".solverstate", ".binaryproto"))
    return [*found, *filter(None, [resnet()])]


def made():
    """Returns a net with the converter's special cases, such as layers without a name or with the same name."""
    random = np.random.default_rng(1)
    floats = lambda *shape: random.standard_normal(shape).astype("float32")  # noqa: E731
    model = syncblob.Model("made")
    for name, kind, blobs in (
            ("data", "Input", []), ("conv_1", "Convolution", [floats(4, 3, 2, 2), floats(4)]),
            ("bn_1", "BatchNorm", [floats(4), floats(4) ** 2, np.float32([0.3])]),
            ("bn_0", "BatchNorm", [floats(4), floats(4) ** 2, np.float32([0.0])]),
            ("scale_1", "Scale", [floats(4), floats(4)]), ("conv_1", "Convolution", [floats(2, 2)]),
            ("", "InnerProduct", [random.standard_normal((2, 3))]),
            ("lstm", "LSTM", [floats(2), floats(3), floats(4)])):
        model.add_layer(name, kind, blobs)
    return model


def blob(values):
    """Four axes are written as legacy dimensions."""
    array = np.asarray(values, "<f4")
    return (legacy if array.ndim == 4 else shape)(*array.shape) + field(5, array.tobytes())


def layer(name, kind, bottoms, tops, blobs=(), more=b""):
    texts = [(1, name), (2, kind), *((3, bottom) for bottom in bottoms), *((4, top) for top in tops)]
    parts = [*(field(*text) for text in texts), *(field(7, blob(values)) for values in blobs), more]
    return field(100, b"".join(parts))


# The connections of this net cannot be guessed from the layers' names.
PROTOTXT = b"""
name: "small"
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 4 dim: 4 } } }
layer { name: "first" type: "Convolution" bottom: "x" top: "a"
        convolution_param { num_output: 2 kernel_size: 1 engine: CAFFE } }
layer { name: "second" type: "BatchNorm" bottom: "a" top: "a" batch_norm_param { eps: 0.001 } }
layer { name: "third" type: "Scale" bottom: "a" top: "a" scale_param { bias_term: true } }
layer { name: "act" type: "ReLU" bottom: "a" top: "a" relu_param { negative_slope: 0.1 } }
layer { name: "fc" type: "InnerProduct" bottom: "a" top: "y"
        inner_product_param { num_output: 5 transpose: true } }
layer { name: "alone" type: "BatchNorm" bottom: "y" top: "z" }
"""


def carrying():
    random = np.random.default_rng(2)
    floats = lambda *shape: random.random(shape, "float32") + 1  # noqa: E731
    norm = lambda n: [floats(n), floats(n), [0.5]]  # noqa: E731
    layers = (layer("in", "Input", [], ["x"]),
              layer("first", "Convolution", ["x"], ["a"], [floats(2, 3, 1, 1), floats(1, 1, 1, 2)],
                    field(106, b"\x08\x02\x20\x01\x78\x01")),
              layer("second", "BatchNorm", ["a"], ["a"], norm(2),
                    field(139, b"\x1d\x6f\x12\x83\x3a")),
              layer("third", "Scale", ["a"], ["a"], [floats(2), floats(2)],
                    field(142, b"\x20\x01")),
              layer("act", "ReLU", ["a"], ["a"], more=field(123, b"\x0d\xcd\xcc\xcc\x3d")),
              layer("fc", "InnerProduct", ["a"], ["y"], [floats(32, 5), floats(5)],
                    field(117, b"\x08\x05\x30\x01")),
              layer("alone", "BatchNorm", ["y"], ["z"], norm(5)))
    return field(1, b"small") + b"".join(layers)
