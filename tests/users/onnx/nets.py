"""Draws small Caffe nets: their prototxt, and their weights as a caffemodel."""

import pathlib
import struct
import sys
import zlib

import numpy

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "fuzz/seeds"))
from wire import data as field, varint  # noqa: E402

QUOTED = ("name", "type", "bottom", "top", "input", "module", "layer")


ROOT_3 = numpy.float32(numpy.sqrt(numpy.float64(3)))


class Draw:
    """NumPy guarantees the raw numbers of Philox for all machines, but not the results of distributions."""

    def __init__(self, name, index):
        self._bits = numpy.random.Philox(key=[zlib.crc32(name.encode()), index])

    def below(self, bound):
        return int(self._bits.random_raw()) % bound

    def between(self, least, most):
        return least + self.below(most - least + 1)

    def choice(self, options):
        return options[self.below(len(options))]

    def chance(self, percent):
        return self.below(100) < percent

    def sample(self, options):
        """Returns all options in a random order."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(len(left))]

    def shape(self, axes, largest=5):
        return [self.between(1, largest) for _ in range(axes)]

    def uniform(self, shape, least=0.0, most=1.0):
        count = int(numpy.prod(shape, dtype=int))
        whole = self._bits.random_raw(max(count, 1))[:count] >> numpy.uint64(40)
        fraction = whole.astype(numpy.float32) * numpy.float32(2 ** -24)
        least = numpy.float32(least)
        return (fraction * (numpy.float32(most) - least) + least).reshape(shape)

    def numbers(self, shape, deviation=1.0):
        """Normally distributed numbers would depend on the machine's functions exp or log."""
        bound = float(ROOT_3) * deviation
        return self.uniform(shape, -bound, bound)

    def integers(self, shape, bound):
        return numpy.floor(self.uniform(shape, 0, bound)).clip(0, bound - 1)


def counted(shape):
    return numpy.arange(1, numpy.prod(shape, dtype=int) + 1, dtype=numpy.float32).reshape(shape)


class Net:
    def __init__(self):
        self.inputs = {}
        self.messages = []
        self.head = {}        # fields of the net before its layers
        self.weights = []     # name, type and arrays of layers with weights
        self.detections = set()  # names of tops with rows of detections
        self.names_differ = False  # whether ONNX may name the outputs differently

    def input(self, name, values):
        values = numpy.asarray(values, numpy.float32)
        self.inputs[name] = values
        self.messages.append({"name": name, "type": "Input", "top": name,
                              "input_param": {"shape": {"dim": list(values.shape)}}})
        return name

    def layer(self, kind, bottoms, tops, blobs=(), **parameters):
        """If `bottoms` is an array, adds an input "data" with these values. Returns the layer's first top."""
        if isinstance(bottoms, numpy.ndarray):
            bottoms = self.input("data", bottoms)
        bottoms, tops = ([x] if isinstance(x, str) else list(x) for x in (bottoms, tops))
        name = parameters.pop("name", f"{tops[0] if tops else bottoms[0]}_{len(self.messages)}")
        parameters = {key: value for key, value in parameters.items() if value != {}}
        self.messages.append({"name": name, "type": kind, "bottom": bottoms, "top": tops, **parameters})
        if blobs:
            self.weights.append((name, kind, list(blobs)))
        return tops[0] if tops else None

    def text(self):
        return text_of({**self.head, "layer": self.messages})

    def model(self):
        layers = b"".join(field(100, layer_message(*layer)) for layer in self.weights)
        return field(1, b"net") + layers


def text_of(fields, indent=""):
    return "".join(f"{indent}{key}{value_text(key, value, indent)}\n"
                   for key, values in fields.items()
                   for value in (values if isinstance(values, list) else [values]))


def value_text(key, value, indent):
    if isinstance(value, dict):
        return f" {{\n{text_of(value, indent + '  ')}{indent}}}"
    if isinstance(value, bool):
        return f": {'true' if value else 'false'}"
    return f': "{value}"' if key in QUOTED else f": {value}"


def layer_message(name, kind, arrays):
    return field(1, name) + field(2, kind) + b"".join(field(7, blob_message(array)) for array in arrays)


def blob_message(array):
    array = numpy.asarray(array, "<f4")
    return field(5, array.tobytes()) + field(7, field(1, b"".join(map(varint, array.shape))))


def write_inputs(arrays):
    return b"".join(numpy.ascontiguousarray(array, "<f4").tobytes() for array in arrays)


def read_answers(data):
    """Reads the file OUT of answers.cpp."""
    at, nets = 0, []
    while at < len(data):
        count, at = struct.unpack_from("<i", data, at)[0], at + 4
        outputs = {}
        for _ in range(count):
            length, axes = struct.unpack_from("<ii", data, at)
            name = data[at + 8:at + 8 + length].decode()
            at += 8 + length
            shape = struct.unpack_from(f"<{axes}i", data, at)
            at += 4 * axes
            size = int(numpy.prod(shape, dtype=int))
            outputs[name] = numpy.frombuffer(data, "<f4", size, at).reshape(shape)
            at += 4 * size
        nets.append(outputs)
    return nets
