"""Tests blobs: Caffe's calls, and that arrays of a blob's memory never have dangling pointers."""
import copy
import gc
import os
import pickle
import sys
import types
import unittest

import files
import numpy as np
import syncblob
from syncblob import Blob

def element_types():
    try:
        Blob(2, "nothing")
    except syncblob.DtypeError as error:
        names = str(error).split("the types are ")[1].split(", ")
        return [name for name in names if name != "bfloat16"]


TYPES = element_types()


class Basics(files.InFolder):
    def test_a_new_blob_is_zeros_of_its_shape(self):
        for given, shape in (((2, 3), (2, 3)), ([4], (4,)), (5, (5,)), ((), ()), ((2, 0), (2, 0)),
                             (np.ones((2, 1)).shape, (2, 1)), (np.int64(3), (3,))):
            blob = Blob(given)
            self.assertEqual((blob.shape, blob.ndim, blob.dtype, blob.device),
                             (shape, len(shape), "float32", "cpu"))
            self.assertEqual((blob.size, blob.nbytes), (np.prod(shape), 4 * np.prod(shape)))
            self.assertEqual(blob.data.shape, shape)
            self.assertFalse(blob.data.any())

    def test_a_blob_of_an_array_has_its_values_and_type(self):
        floats = np.arange(6, dtype="float64").reshape(2, 3)
        for array in (floats, floats.T, floats[:, ::-1], floats.astype(">f4"), np.float16(floats),
                      np.int64([2, 3]), np.zeros((2, 0))):
            blob = Blob(array)
            self.assertEqual((blob.dtype, blob.shape, blob.data.tolist()),
                             (array.dtype.newbyteorder("=").name, array.shape, array.tolist()))
        blob = Blob(floats, "float32")
        floats[...] = 7
        self.assertEqual((blob.dtype, blob.asum_data(), Blob(blob).asum_data()), ("float32", 15, 15))

    def test_pickled_and_copied(self):
        full = Blob((2, 3), "float64", "sim:0")
        full.data[...], full.diff[...] = 2, 0.5
        full.to_device()
        bfloat16 = Blob(3, "bfloat16")
        bfloat16.__dlpack__()  # allocates the memory of bfloat16
        for blob in (full, Blob(), Blob(()), Blob((2, 0)), Blob(3, "int8"), bfloat16):
            for again in (pickle.loads(pickle.dumps(blob)), copy.copy(blob), copy.deepcopy(blob)):
                self.assertEqual(repr(again), repr(blob))
                self.assertEqual((again.size, again.data_head == "UNINITIALIZED"),
                                 (blob.size, blob.data_head == "UNINITIALIZED"))
        again = pickle.loads(pickle.dumps(full))
        again.update()
        self.assertEqual((again.asum_data(), full.asum_data()), (9.0, 12.0))
        self.assertEqual(full.data_head, "SYNCED")
        make, arguments, (data, _) = full.__reduce__()
        self.assertRaises(syncblob.ArgumentError, make(*arguments).__setstate__, (data[1:], None))

    def test_pickled_and_copied_without_numpy(self):
        code = """if True:
            import sys
            sys.modules["numpy"] = None  # as if NumPy were not installed
            import copy, pickle, syncblob
            blob = syncblob.Blob((2, 3))
            blob.fill("constant", value=2)
            for again in (copy.copy(blob), copy.deepcopy(blob), pickle.loads(pickle.dumps(blob))):
                print(again, again.asum_data(), again.to_bytes() == blob.to_bytes())
        """
        done = files.run_code(code)
        self.assertEqual((done.stdout, done.stderr),
                         ("<syncblob.Blob (2, 3) float32 on cpu> 12.0 True\n" * 3, ""))

    def test_blobs_that_share(self):
        for device in files.devices():
            first, second = Blob((2, 3), device=device), Blob(6, device=device)
            first.diff[...] = 1
            second.share_data(first)
            second.share_diff(first)
            second.share_data(second)
            second.data[...] = 3
            second.update()
            self.assertEqual((first.asum_data(), first.shape, second.shape), (12.0, (2, 3), (6,)))
            first.scale_diff(5)
            self.assertEqual(second.asum_diff(), 30.0)
            second.reshape(7)  # the shared memory is too small, so sharing ends
            self.assertEqual((second.asum_data(), first.asum_data()), (0.0, 12.0))
        self.assertRaises(ValueError, Blob(3).share_data, Blob(4))
        self.assertRaises(TypeError, Blob(3).share_data, Blob(3, "float64"))
        self.assertRaises(ValueError, Blob(3).share_diff, Blob(3, device="sim:0"))

    def test_element_types_by_every_spelling(self):
        for name in TYPES:
            for spelling in (name, np.dtype(name), getattr(np, name), np.dtype(name).str):
                blob = Blob(3, spelling)
                self.assertEqual((blob.dtype, blob.data.dtype), (name, np.dtype(name)))
        self.assertEqual(Blob(3, "bfloat16").nbytes, 6)
        self.assertEqual((Blob(3, None).dtype, Blob(3, float).dtype), ("float32", "float64"))

    def test_arithmetic_and_shapes(self):
        blob = Blob((2, 3), "float64")
        blob.data[...], blob.diff[...] = 1, 0.25
        blob.update()
        self.assertEqual(blob.data.tolist(), [[0.75] * 3] * 2)
        blob.scale_data(-2)
        blob.scale_diff(4.0)
        self.assertEqual((blob.asum_data(), blob.sumsq_data(), blob.asum_diff(), blob.sumsq_diff()),
                         (9.0, 13.5, 6.0, 6.0))
        blob.data[...] = np.arange(6).reshape(2, 3)
        for shape in ((3, 2), ([6],), (np.array([1, 6]),)):
            blob.reshape(*shape)
            self.assertEqual(blob.data.ravel().tolist(), [0, 1, 2, 3, 4, 5])
        self.assertEqual(blob.shape, (1, 6))

    def test_fillers(self):
        blob, again = Blob((4, 4, 3, 3)), Blob((4, 4, 3, 3))
        for name, numbers, low, high in (
                ("constant", {"value": 2.5}, 2.5, 2.5), ("uniform", {"min": -1, "max": 3}, -1, 3),
                ("gaussian", {"mean": 1, "std": 2, "sparse": 2}, -20, 20), ("bilinear", {}, 0, 1),
                ("positive_unitball", {}, 0, 1), ("xavier", {}, -1, 1),
                ("msra", {"variance_norm": "average"}, -20, 20)):
            blob.fill(name, 7, **numbers)
            again.fill(name, seed=7, **numbers)
            self.assertTrue((blob.data == again.data).all() and blob.data.any(), name)
            self.assertTrue(low <= blob.data.min() and blob.data.max() <= high, name)
            with self.assertRaisesRegex(TypeError, f"^the filler {name} has no none$"):
                blob.fill(name, none=1)
        blob.fill("gaussian")
        again.fill("gaussian", None)
        self.assertFalse((blob.data == again.data).any(), "without a seed each call draws another")

    def test_a_file_and_back(self):
        for name in ("float32", "float64"):
            blob = Blob((1, 3, 2), name)
            blob.fill("gaussian", seed=3)
            blob.diff[...] = 2
            blob.save("a.binaryproto")
            again = syncblob.load_blob("a.binaryproto")
            self.assertEqual((again.dtype, again.diff_head), (name, "UNINITIALIZED"))
            self.assertEqual(again.data.tolist(), blob.data.tolist())
            self.assertEqual(syncblob.load_blob(blob.to_bytes(diff=True)).asum_diff(), 12.0)


class Arrays(unittest.TestCase):
    def test_every_array_shares_the_blobs_memory(self):
        for name in TYPES:
            blob = Blob((2, 3), name)
            blob.data[1, 2] = 7
            ways = (blob.data, np.asarray(blob), np.from_dlpack(blob), np.array(blob, copy=False),
                    np.asarray(memoryview(blob.data)), syncblob.from_dlpack(blob.data).data)
            for array in ways:
                self.assertEqual((array.dtype, array.shape), (np.dtype(name), (2, 3)))
                self.assertEqual(array.__array_interface__["data"][0],
                                 blob.data.__array_interface__["data"][0])
                self.assertEqual(array[1, 2], 7)
            self.assertIsNot(np.array(blob).base, blob.data.base)

    def test_other_types_and_copies(self):
        blob = Blob(2)
        blob.data[:] = 1.5
        self.assertEqual(np.asarray(blob, "float64").tolist(), [1.5, 1.5])
        self.assertEqual(blob.__array__(np.dtype("int32")).tolist(), [1, 1])
        copy = blob.__array__(copy=True)
        copy[0] = 9
        self.assertEqual(blob.data.tolist(), [1.5, 1.5])
        self.assertRaises(ValueError, blob.__array__, "float64", copy=False)

    def test_an_array_outlives_a_reshape_that_outgrows_it(self):
        blob = Blob((2, 3))
        old, old_diff = blob.data, blob.diff
        old[...], old_diff[...] = 1, 2
        blob.reshape(1000, 1000)
        blob.data[...] = 5
        self.assertEqual((old.tolist(), old_diff.sum()), ([[1] * 3] * 2, 12))
        old[...] = 3
        blob.reshape(1)
        self.assertEqual((blob.data.tolist(), old.sum()), ([5], 18))

    def test_round_trips_end_one_after_the_other(self):
        trips = {"blob": lambda blob: blob, "data": lambda blob: blob.data, "asarray": np.asarray}
        if not files.IS_NUMPY_1:  # from_dlpack of NumPy 1 returns read-only arrays
            trips["from_dlpack"] = np.from_dlpack
        for name, trip in trips.items():
            with self.subTest(name):
                array = np.full(4, 2, "float32")
                references = sys.getrefcount(array)
                blob = other = syncblob.from_dlpack(array)
                for _ in range(30000):
                    other = syncblob.from_dlpack(trip(other))
                blob.scale_data(2)
                self.assertEqual((array.tolist(), other.data.tolist()), ([4] * 4, [4] * 4))
                blob.reshape(1000)
                self.assertEqual(sys.getrefcount(array), references + 1)
                other.reshape(1000)
                self.assertEqual(sys.getrefcount(array), references)

    def test_a_read_only_array_is_never_written(self):
        base = np.ones(3, "float32")
        array = base[:]
        array.flags.writeable = False
        try:
            blob = syncblob.from_dlpack(array)
        except BufferError:  # NumPy 1 does not export read-only arrays
            self.assertTrue(files.IS_NUMPY_1)
            return
        base[0] = 5
        self.assertEqual(blob.asum_data(), 7)  # blob.data would copy the shared memory
        blob.scale_data(2)
        self.assertEqual((base.tolist(), blob.data.tolist()), ([5, 1, 1], [10, 2, 2]))

    def test_a_capsule_is_taken_once(self):
        blob = Blob(2)
        capsule = blob.__dlpack__()
        once = types.SimpleNamespace(__dlpack__=lambda **_: capsule,
                                     __dlpack_device__=blob.__dlpack_device__)
        syncblob.from_dlpack(once)
        self.assertRaises(BufferError, syncblob.from_dlpack, once)

    def test_arrays_in_a_cycle_are_collected(self):
        holder = [Blob(10).data]
        holder.append(holder)
        del holder
        self.assertGreater(gc.collect(), 0)


class Devices(unittest.TestCase):
    device, dlpack_device = "sim:0", (12, 0)

    def test_values_go_there_and_back(self):
        blob = Blob((2, 2), device=self.device)
        blob.data[...] = 3
        self.assertEqual((blob.device, blob.data_head), (self.device, "HEAD_AT_CPU"))
        blob.to_device()
        self.assertEqual(blob.data_head, "SYNCED")
        blob.scale_data(2.0)
        self.assertEqual(blob.data_head, "HEAD_AT_GPU")
        self.assertEqual((blob.asum_data(), blob.data.tolist()), (24.0, [[6, 6], [6, 6]]))

    def test_dlpack_gives_the_device_or_the_host(self):
        blob = Blob(4, device=self.device)
        blob.fill("constant", value=2)
        self.assertEqual(blob.__dlpack_device__(), self.dlpack_device)
        there = syncblob.from_dlpack(blob)
        blob.scale_data(2)
        self.assertEqual((there.device, there.asum_data()), (self.device, 16.0))
        host = blob.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
        self.assertIn("dltensor_versioned", repr(host))
        self.assertRaises(BufferError, blob.__dlpack__, dl_device=(2, 9))
        copy = blob.__dlpack__(copy=True)
        copied = syncblob.from_dlpack(types.SimpleNamespace(
            __dlpack__=lambda **_: copy, __dlpack_device__=blob.__dlpack_device__))
        copied.scale_data(2)
        self.assertEqual((blob.asum_data(), copied.asum_data()), (16.0, 32.0))

    def test_a_copy_to_another_device(self):
        blob = Blob(3)
        blob.data[:] = [1, 2, 3]
        far = blob.copy(self.device)
        back = far.copy(device="cpu")
        blob.copy().data[0] = back.copy().data[0] = 9
        self.assertEqual((far.device, back.device), (self.device, "cpu"))
        self.assertEqual((blob.data.tolist(), back.data.tolist()), ([1, 2, 3], [1, 2, 3]))

    def in_a_child(self, near):
        self.assertEqual(near.asum_data(), 6.0)
        for _ in range(2):
            own = Blob(3, device=self.device)
            own.fill("constant", value=1)
            own.to_device()
            own.scale_data(2)
        self.assertEqual(own.asum_data(), 6)

    def test_a_forked_child_uses_new_devices(self):
        blob = Blob(3, device=self.device)
        blob.fill("constant", value=2)
        blob.to_device()
        near = Blob(3, device=self.device)
        near.fill("constant", value=2)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                self.assertRaisesRegex(syncblob.DeviceError, "fork", blob.scale_data, 2)
                self.in_a_child(near)
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(blob.asum_data(), 6.0)


class Gpu(Devices):
    device, dlpack_device = "cuda:0", (2, 0)

    def setUp(self):
        if not files.has_gpu():
            self.skipTest("blobs on a GPU: there is none")

    def in_a_child(self, near):
        """CUDA does not work in a child of a process that has used CUDA."""
        self.assertRaisesRegex(syncblob.DeviceError, "fork", Blob, 3, device=self.device)

    def test_an_array_is_asked_to_be_ready_for_the_default_stream(self):
        """The exporter's __dlpack__ has no parameter max_version."""
        blob, streams = Blob(3, device=self.device), []
        blob.fill("constant", value=1)
        old = types.SimpleNamespace(
            __dlpack_device__=blob.__dlpack_device__,
            __dlpack__=lambda stream: streams.append(stream) or blob.__dlpack__(stream=stream))
        syncblob.from_dlpack(old).scale_data(2)
        self.assertEqual((streams, blob.asum_data()), ([1], 6.0))
