#!/usr/bin/env python3
"""An example of syncblob in Python, by ctypes alone: example.py [LIBSYNCBLOB.SO]

Makes a blob, fills it, saves it as BlobProto, reads it back, and shows what a failure says.
Without the argument the loader finds the library.
"""

import ctypes
import ctypes.util
import os
import sys
import tempfile

F32 = 1  # SB_DTYPE_F32
RESHAPE = 1 << 3  # SB_PROTO_RESHAPE


class ErrorStruct(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("device_code", ctypes.c_int32),
                ("offset", ctypes.c_int64), ("message", ctypes.c_char * 240)]


class Error(Exception):
    """What a call says when it fails."""


class Library:
    def __init__(self, path=None):
        path = path or ctypes.util.find_library("syncblob")
        if not path:
            raise OSError("libsyncblob was not found: install it, or give its path")
        self.functions = ctypes.CDLL(path)
        self.functions.sb_status_name.restype = ctypes.c_char_p
        self.functions.sb_version_string.restype = ctypes.c_char_p
        self.functions.sb_blob_destroy.restype = None
        self.functions.sb_blob_count.restype = ctypes.c_int64
        self.functions.sb_blob_shape.restype = ctypes.POINTER(ctypes.c_int64)

    def call(self, name, *arguments):
        """A function that returns a status and takes an sb_error last."""
        error = ErrorStruct()
        status = self.functions[name](*arguments, ctypes.byref(error))
        if status:
            name = self.functions.sb_status_name(status).decode()
            raise Error(f"{name}: {error.message.decode()}")


class Blob:
    """Floats of any shape; its memory is the library's."""

    def __init__(self, library, shape):
        self.library, self.handle = library, ctypes.c_void_p()
        dims = (ctypes.c_int64 * len(shape))(*shape)
        library.call("sb_blob_create_shaped", None, F32, dims, len(shape),
                     ctypes.byref(self.handle))

    def __del__(self):
        self.library.functions.sb_blob_destroy(self.handle)

    @property
    def shape(self):
        axes = self.library.functions.sb_blob_num_axes(self.handle)
        return self.library.functions.sb_blob_shape(self.handle)[:axes]

    def data(self):
        """All elements, to be read and written; not to be kept longer than the blob."""
        data = ctypes.c_void_p()
        self.library.call("sb_blob_mutable_cpu", self.handle, 0, ctypes.byref(data))
        count = self.library.functions.sb_blob_count(self.handle)
        return (ctypes.c_float * count).from_address(data.value)

    def write(self, path):
        self.library.call("sb_blob_save_file", self.handle, os.fsencode(path), 0)

    def read(self, path):
        self.library.call("sb_blob_load_file", self.handle, os.fsencode(path), RESHAPE, None)


def main():
    library = Library(*sys.argv[1:])
    print("syncblob", library.functions.sb_version_string().decode())
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights.binaryproto")
        weights = Blob(library, [2, 3])
        weights.data()[:] = [0.5 * i for i in range(6)]
        weights.write(path)

        copy = Blob(library, [1])
        copy.read(path)
        print(copy.shape, list(copy.data()))
        try:
            copy.read(folder)
        except Error as error:
            print(error)


if __name__ == "__main__":
    main()
