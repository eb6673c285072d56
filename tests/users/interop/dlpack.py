"""Blobs whose memory Python's array libraries can use, and the reverse: __dlpack__ and from_dlpack for
libsyncblob.so, using only ctypes.

    library = dlpack.Library("libsyncblob.so")
    blob = library.blob([2, 3], dlpack.F32)
    array = numpy.from_dlpack(blob)      # the blob's own memory
    blob = library.from_dlpack(array)    # the array's memory
"""

import ctypes

F32 = 1  # SB_DTYPE_F32
CPU, GPU = 0, 1  # SB_SIDE_*
DATA, DIFF = 0, 1  # SB_DATA, SB_DIFF
OLD, NEW = b"dltensor", b"dltensor_versioned"  # names of capsules
USED = {OLD: b"used_dltensor", NEW: b"used_dltensor_versioned"}


class ErrorStruct(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("device_code", ctypes.c_int32),
                ("offset", ctypes.c_int64), ("message", ctypes.c_char * 240)]


class Error(BufferError):
    def __init__(self, name, message):
        super().__init__(f"{name}: {message}")
        self.name = name


# --- capsules ------------------------------------------------------------------------------------
# A destructor receives a pointer, since a capsule in destruction must not become a py_object.

def python_function(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
new_capsule = python_function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
                              Destructor)
is_capsule = python_function("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
capsule_pointer = python_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p,
                                  ctypes.c_char_p)
rename_capsule = python_function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object,
                                 ctypes.c_char_p)
DELETER_AT = {OLD: 56, NEW: 16}  # the deleter's offset in the structs


def end_tensor(pointer, name):
    deleter = ctypes.c_void_p.from_address(pointer + DELETER_AT[name]).value
    if deleter:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(pointer)


@Destructor
def end_capsule(capsule):
    """The destructor of a capsule: deletes the tensor if no consumer has taken it."""
    for name in (OLD, NEW):
        if is_capsule(capsule, name):
            end_tensor(capsule_pointer(capsule, name), name)


# --- blobs ------------------------------------------------------------------------

class Blob:
    """Owns an sb_blob. `part`, `side` and `readonly` select what `__dlpack__` exports."""

    def __init__(self, library, handle):
        self.library, self.handle = library, handle
        self.part, self.side, self.readonly = DATA, CPU, False

    def __del__(self):
        self.library.c.sb_blob_destroy(self.handle)

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy or stream is not None or dl_device not in (None, (1, 0)):
            raise BufferError("a blob exports only its host memory, without a copy")
        versioned = max_version is not None and max_version[0] >= 1
        if self.readonly and not versioned:
            raise BufferError("the consumer does not support read-only tensors")
        call = "sb_blob_to_dlpack" if self.readonly else \
            "sb_blob_to_mutable_dlpack" if versioned else "sb_blob_to_legacy_dlpack"
        tensor = self.library.get(call, self.handle, self.part, self.side)
        return new_capsule(tensor, NEW if versioned else OLD, end_capsule)

    def shape(self):
        axes = self.library.c.sb_blob_num_axes(self.handle)
        return self.library.c.sb_blob_shape(self.handle)[:axes]

    def dtype(self):
        return self.library.c.sb_blob_dtype(self.handle)

    def pointer(self, part=DATA):
        return self.library.get("sb_blob_cpu", self.handle, part).value

    def asum(self):
        out = ctypes.c_double()
        self.library.call("sb_blob_asum", self.handle, DATA, ctypes.byref(out))
        return out.value

    def scale(self, factor):
        self.library.call("sb_blob_scale", self.handle, DATA, ctypes.c_double(factor))


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.sb_status_name.restype = self.c.sb_dtype_name.restype = ctypes.c_char_p
        self.c.sb_dtype_size.restype = ctypes.c_size_t
        self.c.sb_blob_shape.restype = ctypes.POINTER(ctypes.c_int64)
        for query in ("sb_blob_shape", "sb_blob_num_axes", "sb_blob_dtype", "sb_blob_destroy"):
            getattr(self.c, query).argtypes = [ctypes.c_void_p]

    def dtypes(self):
        """Yields (number, name, size) of each element type."""
        for number in range(1, 100):
            size = self.c.sb_dtype_size(number)
            if size:
                yield number, self.c.sb_dtype_name(number).decode(), size

    def call(self, name, *arguments):
        """Makes a call that may fail; raises its error."""
        error = ErrorStruct()
        status = getattr(self.c, name)(*arguments, ctypes.byref(error))
        if status:
            raise Error(self.c.sb_status_name(status).decode(), error.message.decode())

    def get(self, name, *arguments):
        """Makes a call and returns the pointer that it writes."""
        out = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(out))
        return out

    def blob(self, shape, dtype):
        dims = (ctypes.c_int64 * len(shape))(*shape)
        return Blob(self, self.get("sb_blob_create_shaped", None, dtype, dims, len(shape)))

    def take(self, capsule):
        """Returns a blob on the memory of a capsule's tensor, and marks the capsule as used; on
        failure the capsule stays unused."""
        name = NEW if is_capsule(id(capsule), NEW) else OLD
        call = {NEW: "sb_blob_create_from_dlpack", OLD: "sb_blob_create_from_legacy_dlpack"}[name]
        tensor = capsule_pointer(id(capsule), name)
        blob = Blob(self, self.get(call, None, ctypes.c_void_p(tensor)))
        rename_capsule(capsule, USED[name])
        return blob

    def from_dlpack(self, array, max_version=(1, 3)):
        """Returns a blob on the array's memory."""
        if max_version is None:
            return self.take(array.__dlpack__())
        return self.take(array.__dlpack__(max_version=max_version))
