"""Models that the tests read: real ones where there are any, and made ones."""
import os
import pathlib

import numpy as np
import syncblob

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEADLINE = 600  # seconds: what takes longer never ends, on a busy machine and under qemu-user, too


def resnet():
    """The real net, or None."""
    path = os.environ.get("SYNCBLOB_TEST_RESNET")
    return pathlib.Path(path) if path else None


def data():
    """The folder of small real files."""
    return pathlib.Path(os.environ.get("SYNCBLOB_TEST_DATA") or ROOT.parent / "shared/data")


def cifar10():
    """Three of them by the names that pages have for them; none if one is missing."""
    named = {"cifar10_full.caffemodel": "cifar10_full_everpeace_iter70000.caffemodel",
             "cifar10_quick.caffemodel": "cifar10_quick_skywang666_iter4000.caffemodel",
             "cifar10_mean.binaryproto": "mean_cifar10_skywang666.binaryproto"}
    found = {name: data() / file for name, file in named.items()}
    return found if all(path.exists() for path in found.values()) else {}


def has_gpu():
    """Whether there is one, or what stands in for NVIDIA's libraries."""
    try:
        syncblob.Blob(1, device="cuda:0")
    except syncblob.DeviceError:
        if "STANDIN_SCHEDULE" in os.environ:
            raise
        return False
    return True


def devices():
    """Where blobs can be here."""
    return ("cpu", "sim:0", "cuda:0") if has_gpu() else ("cpu", "sim:0")


def foreign():
    """(bytes, words) of how files begin that are not Caffe's, and what is said of them."""
    for line in (ROOT / "tests/support/foreign.txt").read_text().splitlines():
        if not line.startswith("#"):
            words, _, _, content = line.split("\t")
            yield content.encode().decode("unicode_escape").encode("latin-1"), words
    yield b"", "empty: there are no bytes"
    yield made().to_bytes()[:-3], "the beginning of a caffemodel: the rest was cut off"


def real_models():
    found = sorted(path for path in data().glob("*")
                   if path.suffix in (".caffemodel", ".solverstate", ".binaryproto"))
    return [*found, *filter(None, [resnet()])]


def made():
    """A net with what the converter has rules for: a BatchNorm, names that two layers share, a
    layer without a name, a blob more than PyTorch has words for, doubles."""
    random = np.random.default_rng(1)
    floats = lambda *shape: random.standard_normal(shape).astype("float32")  # noqa: E731
    model = syncblob.Model("made")
    model.add_layer("data", "Input")
    model.add_layer("conv_1", "Convolution", [floats(4, 3, 2, 2), floats(4)])
    model.add_layer("bn_1", "BatchNorm", [floats(4), floats(4) ** 2, np.float32([0.3])])
    model.add_layer("bn_0", "BatchNorm", [floats(4), floats(4) ** 2, np.float32([0.0])])
    model.add_layer("scale_1", "Scale", [floats(4), floats(4)])
    model.add_layer("conv_1", "Convolution", [floats(2, 2)])
    model.add_layer("", "InnerProduct", [random.standard_normal((2, 3))])
    model.add_layer("lstm", "LSTM", [floats(2), floats(3), floats(4)])
    return model
