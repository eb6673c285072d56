"""Tests that arrays and blobs share memory through DLPack without a copy, and keep the memory alive."""
import concurrent.futures
import ctypes
import gc
import importlib.util
import math
import pathlib
import resource
import sys
import types
import unittest

import files
import numpy as np
import syncblob
from syncblob import Blob

STATM = pathlib.Path("/proc/self/statm")


def resident_bytes():
    return int(STATM.read_text().split()[1]) * resource.getpagesize()


class Sharing(unittest.TestCase):
    """Tests count the references of `base`, a NumPy array whose memory the arrays and blobs use."""
    from_dlpack = staticmethod(np.from_dlpack)

    def setUp(self):
        self.base = np.zeros((2, 3), "float32")
        self.references = sys.getrefcount(self.base)

    def users(self):
        gc.collect()
        return sys.getrefcount(self.base) - self.references

    def pointer(self, array):
        return array.ctypes.data

    def of_base(self):
        return self.base[...]

    def values(self, array):
        return (ctypes.c_float * math.prod(array.shape)).from_address(self.pointer(array))

    def test_an_array_is_the_blobs_memory_and_outlives_the_blob(self):
        blob = syncblob.from_dlpack(self.base)
        array = self.from_dlpack(blob)
        self.assertEqual(tuple(array.shape), (2, 3))
        self.assertEqual(self.pointer(array), blob.data.ctypes.data)
        self.values(array)[4] = 5
        blob.scale_data(3)
        self.assertEqual((blob.asum_data(), self.values(array)[4]), (15, 15))
        del blob
        self.assertEqual(self.users(), 1)
        self.values(array)[5] = 7
        self.assertEqual(self.base[1, 2], 7)
        del array
        self.assertEqual(self.users(), 0)

    def test_an_unused_capsule_ends_its_tensor(self):
        for version in (None, (0, 8), (1, 0), (2, 0)):
            capsule = syncblob.from_dlpack(self.base).__dlpack__(max_version=version)
            name = "dltensor_versioned" if version and version[0] else "dltensor"
            self.assertIn(f'"{name}"', repr(capsule))
            self.assertEqual(self.users(), 1)
            del capsule
            self.assertEqual(self.users(), 0)

    @unittest.skipUnless(STATM.exists(), "no file with the resident memory of the process")
    def test_a_blobs_memory_lives_as_long_as_its_array_or_capsule(self):
        size = 40 << 20  # the context caches at most 256 MiB, that is, six blobs

        def export(take):
            blob = Blob(size // 4)
            blob.fill("constant", value=1)  # makes the memory resident
            return take(blob)

        for take in (self.from_dlpack, Blob.__dlpack__,
                     lambda blob: blob.__dlpack__(max_version=(1, 0))):
            kept = [export(take) for _ in range(10)]
            before = resident_bytes()
            kept.clear()
            gc.collect()
            self.assertLess(resident_bytes(), before - 3 * size)

    def test_a_blob_is_the_arrays_memory(self):
        """An exporter whose __dlpack__ has no parameter max_version returns the struct without a version."""
        for is_old in (False, True):
            given = array = self.of_base()
            if is_old:
                given = types.SimpleNamespace(__dlpack__=lambda array=array: array.__dlpack__(),
                                              __dlpack_device__=array.__dlpack_device__)
            blob = syncblob.from_dlpack(given)
            self.assertEqual((blob.shape, blob.dtype), ((2, 3), "float32"))
            self.assertEqual(blob.data.ctypes.data, self.pointer(array))
            self.values(array)[0] = 5
            self.assertEqual(blob.asum_data(), 5)
            blob.scale_data(2)
            self.assertEqual(self.values(array)[0], 10)
            del array, given
            self.assertEqual((self.users(), blob.asum_data()), (1, 10))
            del blob
            self.assertEqual(self.users(), 0)

    def test_arrays_end_on_any_thread(self):
        kept = [self.from_dlpack(syncblob.from_dlpack(self.base)) for _ in range(64)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(kept.__delitem__, [-1] * 64))
        self.assertEqual((kept, self.users()), ([], 0))


def sharing_with(library):
    return type(f"Sharing_{library.__name__}", (Sharing,), {
        "from_dlpack": staticmethod(library.from_dlpack), "pointer": lambda self, array: array.data_ptr(),
        "of_base": lambda self: library.from_dlpack(self.base)})


for name in filter(importlib.util.find_spec, ("torch", "tvm_ffi")):
    globals()[name] = sharing_with(importlib.import_module(name))


class NumpysArrays(unittest.TestCase):
    def test_refused_arrays_are_released(self):
        whole = np.zeros((4, 6), "float32")
        references = sys.getrefcount(whole)
        rows = [("UNSUPPORTED", whole.T), ("UNSUPPORTED", whole[::2]), ("UNSUPPORTED", whole[:, :3]),
                ("UNSUPPORTED", whole[::-1]), ("DTYPE_MISMATCH", np.zeros(3, "c8")),
                ("DTYPE_MISMATCH", np.zeros(3, "c16")), ("DTYPE_MISMATCH", np.zeros(3, "?")),
                ("INVALID_ARGUMENT", np.zeros(25, "u1")[1:].view("f4"))]
        if not files.IS_NUMPY_1:  # NumPy 1 exports no read-only arrays, and has at most 32 axes
            rows += [("UNSUPPORTED", np.broadcast_to(whole[0], (4, 6))),
                     ("OVER_LIMIT", np.zeros((1,) * 33, "f4"))]
        for code, array in rows:
            with self.subTest(strides=array.strides, dtype=array.dtype), \
                    self.assertRaises(syncblob.Error) as caught:
                syncblob.from_dlpack(array)
            self.assertEqual(caught.exception.code, f"SB_ERR_{code}")
        del array, rows
        gc.collect()
        self.assertEqual(sys.getrefcount(whole), references)
