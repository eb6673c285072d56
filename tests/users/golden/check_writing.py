#!/usr/bin/env python3
"""Tests the files that the library writes: Google's protobuf reads them as Caffe's own messages.

    check_writing.py --library libsyncblob.so --proto caffe.proto [FILE...]

The files are blobs, nets, solver states and vectors built in memory through the C functions, and
the real files of SYNCBLOB_TEST_DATA (else ../shared/data beside the repository) and the
FILEs with one blob replaced. Each file must equal the message that Google's protobuf makes. Values
must be equal bit for bit, and a file must contain nothing else. Needs protoc and requirements.txt.
"""

import ctypes
import math
import pathlib
import struct
import sys
import tempfile

from caffe_messages import Messages, read_descriptor
from checking import FORMAT_OF, Tally, parse_arguments, real_files
from reading import MESSAGE_OF

DTYPES = {"f": 1, "d": 2}  # SB_DTYPE_F32 and SB_DTYPE_F64, by the codes of the module struct
CAFFEMODEL, SOLVERSTATE, BLOB_VECTOR = 2, 3, 4  # SB_FORMAT_*
NO_LAYER, WRITE_DIFF = -1, 1 << 4
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 2.0**-149, 1 / 3, -3e38]


# --- the library ----------------------------------------------------------------------


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


# --- objects that the library and Google's protobuf can both make -------------------------


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


def blobs():
    for code in "fd":
        yield Blob([2, 4], code, SPECIAL)
        yield Blob([8], code, SPECIAL, SPECIAL[::-1])
        yield Blob([], code, [2.5])
        yield Blob([3, 0, 2], code, [])
        yield Blob([1] * 31 + [2], code, [1, 2], [3, 4])
        yield Blob([70000], code, [i / 7 for i in range(70000)])


# --- checks ---------------------------------------------------------------------------


class Checker(Tally):
    def __init__(self, library, messages, folder):
        super().__init__()
        self.library, self.messages, self.folder = library, messages, folder

    def check(self, name, written, expected):
        """Checks that the bytes `written` are the expected message."""
        found = type(expected).FromString(written)
        same = (found.SerializeToString(deterministic=True) ==
                expected.SerializeToString(deterministic=True))
        problem = f"found {str(found)!r:.300}, wanted {str(expected)!r:.300}"
        self.report(name, [] if same else [problem])

    def saved(self, model):
        path = self.folder / "saved"
        self.library.sb_model_save_file(model, str(path).encode())
        self.library.end("sb_model_destroy", model)
        return path.read_bytes()

    def add_blob(self, model, layer, blob):
        made = blob.in_library(self.library)
        self.library.sb_model_add_blob(model, i64(layer), made, blob.flags())
        self.library.end("sb_blob_destroy", made)

    def check_blobs(self):
        path = self.folder / "blob"
        for number, blob in enumerate(blobs()):
            made = blob.in_library(self.library)
            self.library.sb_blob_save_file(made, str(path).encode(), blob.flags())
            self.library.end("sb_blob_destroy", made)
            self.check(f"blob {number}", path.read_bytes(), blob.as_message(self.messages))

    def check_net(self):
        model = self.library.made("sb_model_create", None, CAFFEMODEL)
        expected = self.messages.NetParameter(name="\u91cd\0\u307f")
        self.library.sb_model_set_name(model, *text(expected.name))
        for number, blob in enumerate(blobs()):
            layer = expected.layer.add(name=f"layer/{number}", type="Convolution")
            layer.blobs.append(blob.as_message(self.messages))
            index = self.library.made("sb_model_add_layer", model, *text(layer.name),
                                      *text(layer.type))
            self.add_blob(model, index.value or 0, blob)
        expected.layer.add(name="", type="Split")
        self.library.made("sb_model_add_layer", model, *text(""), *text("Split"))
        self.check("net of memory", self.saved(model), expected)

    def check_solver_state(self):
        model = self.library.made("sb_model_create", None, SOLVERSTATE)
        expected = self.messages.SolverState(iter=-3, learned_net="a.caffemodel", current_step=7)
        net = expected.learned_net.encode()
        info = SolverInfo(ctypes.sizeof(SolverInfo), net, len(net), expected.iter,
                          expected.current_step)
        self.library.sb_model_set_solver_info(model, ctypes.byref(info))
        for blob in blobs():
            self.add_blob(model, NO_LAYER, blob)
            expected.history.append(blob.as_message(self.messages))
        self.check("solver state of memory", self.saved(model), expected)

    def check_vector(self):
        model = self.library.made("sb_model_create", None, BLOB_VECTOR)
        expected = self.messages.BlobProtoVector()
        for blob in blobs():
            self.add_blob(model, NO_LAYER, blob)
            expected.blobs.append(blob.as_message(self.messages))
        self.check("vector of memory", self.saved(model), expected)

    def check_edited(self, path):
        """Checks a real file with its first blob replaced; the rest must not change."""
        expected = getattr(self.messages, MESSAGE_OF[FORMAT_OF[path.suffix]]).FromString(path.read_bytes())
        model = self.library.made("sb_model_open_file", None, 0, str(path).encode(), 0, None)
        layer, old = first_blob(expected)
        blob = Blob([2, 2, 2], "d", SPECIAL, SPECIAL)
        made = blob.in_library(self.library)
        self.library.sb_model_set_blob(model, i64(layer), i64(0), made, blob.flags())
        self.library.end("sb_blob_destroy", made)
        old.CopyFrom(blob.as_message(self.messages))
        self.check(f"{path.name}, edited", self.saved(model), expected)


def first_blob(message):
    """Returns the layer of the first blob, and the blob."""
    name = message.DESCRIPTOR.name
    if name == "BlobProto":
        return NO_LAYER, message
    if name == "SolverState":
        return NO_LAYER, message.history[0]
    for number, layer in enumerate(message.layer or message.layers):
        if layer.blobs:
            return number, layer.blobs[0]
    raise ValueError("a net without blobs")


def main():
    arguments = parse_arguments(__doc__.splitlines()[0], "--library", "libsyncblob.so")
    messages = Messages(read_descriptor(arguments.proto))
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(Library(arguments.library.resolve()), messages, pathlib.Path(folder))
        checker.check_blobs()
        checker.check_net()
        checker.check_solver_state()
        checker.check_vector()
        for path in real_files(arguments):
            checker.check_edited(path)
    return checker.exit_status()


if __name__ == "__main__":
    sys.exit(main())
