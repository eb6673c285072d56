"""Tests the files that the library writes: Google's protobuf reads them as Caffe's own messages.

The files are blobs, nets, solver states and vectors built in memory through the C functions, and
the real files with one blob replaced. Each file must equal the message that Google's protobuf
makes. Values must be equal bit for bit, and a file must contain nothing else.
"""

import ctypes
import math
import struct

import pytest

from test_convert import layers_of

DTYPES = {"f": 1, "d": 2}  # SB_DTYPE_F32 and SB_DTYPE_F64, by the codes of the module struct
CAFFEMODEL, SOLVERSTATE, BLOB_VECTOR = 2, 3, 4  # SB_FORMAT_*
NO_LAYER, WRITE_DIFF = -1, 1 << 4
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 2.0**-149, 1 / 3, -3e38]


class SolverInfo(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t),
                ("bytes", ctypes.c_char_p), ("size", ctypes.c_size_t),
                ("iter", ctypes.c_int32), ("current_step", ctypes.c_int32)]


class Library:
    """Calls C functions as methods, library.sb_blob_create(...); raises an exception on failure."""

    def __init__(self, path):
        self._library = ctypes.CDLL(str(path))

    def __getattr__(self, name):
        function = getattr(self._library, name)

        def call(*arguments):
            error = ctypes.create_string_buffer(256)
            if function(*arguments, error) != 0:
                raise RuntimeError(f"{name}: {error.raw[16:].split(bytes(1))[0].decode()}")

        return call

    def made(self, name, *arguments):
        """Calls a function and returns the handle that it stores in `out`, the argument before the error."""
        out = ctypes.c_void_p()
        getattr(self, name)(*arguments, ctypes.byref(out))
        return out

    def end(self, name, thing):
        getattr(self._library, name)(thing)


def i64(value):
    return ctypes.c_int64(value)


def text(value):
    """Returns two arguments: bytes and their size."""
    return value.encode(), ctypes.c_size_t(len(value.encode()))


class Blob:
    def __init__(self, dims, code, values, diff=()):
        self.dims, self.code, self.values, self.diff = dims, code, values, diff

    def in_library(self, library):
        dims = (ctypes.c_int64 * len(self.dims))(*self.dims)
        blob = library.made("sb_blob_create_shaped", None, DTYPES[self.code], dims, len(self.dims))
        for part, values in enumerate((self.values, self.diff)):
            to = library.made("sb_blob_mutable_cpu", blob, part)
            packed = struct.pack(f"={len(values)}{self.code}", *values)
            ctypes.memmove(to, packed, len(packed))
        return blob

    def flags(self):
        return WRITE_DIFF if len(self.diff) else 0

    def as_message(self, messages):
        prefix = "double_" if self.code == "d" else ""
        message = messages.BlobProto(**{f"{prefix}data": self.values, f"{prefix}diff": self.diff})
        if self.dims:
            message.shape.dim.extend(self.dims)
        return message


BLOBS = [blob for code in "fd" for blob in (
    Blob([2, 4], code, SPECIAL), Blob([8], code, SPECIAL, SPECIAL[::-1]), Blob([], code, [2.5]),
    Blob([3, 0, 2], code, []), Blob([1] * 31 + [2], code, [1, 2], [3, 4]),
    Blob([70000], code, [i / 7 for i in range(70000)]))]


@pytest.fixture
def library(request):
    return Library(request.config.getoption("library").resolve())


@pytest.fixture
def check(library, tmp_path):
    """Returns a function that saves an object of the library and compares the file with a message."""
    def check_saved(kind, thing, expected, *flags):
        path = tmp_path / "saved"
        getattr(library, f"sb_{kind}_save_file")(thing, str(path).encode(), *flags)
        library.end(f"sb_{kind}_destroy", thing)
        found = type(expected).FromString(path.read_bytes())
        assert (found.SerializeToString(deterministic=True) ==
                expected.SerializeToString(deterministic=True)), f"{found!r:.300}, not {expected!r:.300}"
    return check_saved


def add_blob(library, model, layer, blob):
    made = blob.in_library(library)
    library.sb_model_add_blob(model, i64(layer), made, blob.flags())
    library.end("sb_blob_destroy", made)


@pytest.mark.parametrize("blob", BLOBS)
def test_blob(library, messages, check, blob):
    check("blob", blob.in_library(library), blob.as_message(messages), blob.flags())


def test_net(library, messages, check):
    model = library.made("sb_model_create", None, CAFFEMODEL)
    expected = messages.NetParameter(name="\u91cd\0\u307f")
    library.sb_model_set_name(model, *text(expected.name))
    for number, blob in enumerate(BLOBS):
        layer = expected.layer.add(name=f"layer/{number}", type="Convolution")
        layer.blobs.append(blob.as_message(messages))
        index = library.made("sb_model_add_layer", model, *text(layer.name), *text(layer.type))
        add_blob(library, model, index.value or 0, blob)
    expected.layer.add(name="", type="Split")
    library.made("sb_model_add_layer", model, *text(""), *text("Split"))
    check("model", model, expected)


def test_solver_state(library, messages, check):
    model = library.made("sb_model_create", None, SOLVERSTATE)
    expected = messages.SolverState(iter=-3, learned_net="a.caffemodel", current_step=7)
    info = SolverInfo(ctypes.sizeof(SolverInfo), *text(expected.learned_net), expected.iter, expected.current_step)
    library.sb_model_set_solver_info(model, ctypes.byref(info))
    for blob in BLOBS:
        add_blob(library, model, NO_LAYER, blob)
        expected.history.append(blob.as_message(messages))
    check("model", model, expected)


def test_vector(library, messages, check):
    model = library.made("sb_model_create", None, BLOB_VECTOR)
    expected = messages.BlobProtoVector(blobs=[blob.as_message(messages) for blob in BLOBS])
    for blob in BLOBS:
        add_blob(library, model, NO_LAYER, blob)
    check("model", model, expected)


def test_edited_file(library, messages, check, real_file):
    """Tests a real file with its first blob replaced; the rest must not change."""
    model = library.made("sb_model_open_file", None, 0, str(real_file.path).encode(), 0, None)
    if real_file.format == "caffemodel":
        layers = enumerate(blobs for *_, blobs in layers_of(real_file.message))
        layer, old = next((number, blobs[0]) for number, blobs in layers if blobs)
    else:
        layer, message = NO_LAYER, real_file.message
        old = message.history[0] if real_file.format == "solverstate" else message
    blob = Blob([2, 2, 2], "d", SPECIAL, SPECIAL)
    made = blob.in_library(library)
    library.sb_model_set_blob(model, i64(layer), i64(0), made, blob.flags())
    library.end("sb_blob_destroy", made)
    old.CopyFrom(blob.as_message(messages))
    check("model", model, real_file.message)
