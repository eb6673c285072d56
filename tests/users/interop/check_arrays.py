#!/usr/bin/env python3
"""Tests that real array libraries can use a blob's memory, and blobs an array's memory, by DLPack.

    check_arrays.py LIBSYNCBLOB.SO LIBRARY...    (numpy, tvm_ffi, torch)

Nothing is copied in either direction, both sides see each other's writes, read-only memory stays
read-only, and every tensor's deleter is called once: an array lives as long as a blob uses its
memory, and a blob's memory lives as long as an array uses it.
"""

import ctypes
import gc
import importlib
import pathlib
import sys
import threading
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import dlpack  # noqa: E402


class Arrays:
    """The operations on a library's arrays that the checks need."""

    def __init__(self, name):
        self.name, self.module = name, importlib.import_module(name)
        self.from_dlpack = getattr(self.module, "from_dlpack", None)
        if name == "torch":
            self.from_dlpack = importlib.import_module("torch.utils.dlpack").from_dlpack
            self.version = self.module.__version__
            # PyTorch before 2.9 supports only the struct without a version
            self.is_versioned = tuple(map(int, self.version.split(".")[:2])) >= (2, 9)
        else:
            self.version, self.is_versioned = self.module.__version__, True

    def pointer(self, array):
        return array.ctypes.data if self.name == "numpy" else array.data_ptr()

    def values(self, array):
        """Returns the elements in the order of memory."""
        count = 1
        for extent in array.shape:
            count *= extent
        return (ctypes.c_float * count).from_address(self.pointer(array))

    def make(self, shape, fill):
        """Returns an array of floats with its own memory."""
        if self.name == "torch":
            return self.module.full(shape, fill, dtype=self.module.float32)
        array = importlib.import_module("numpy").full(shape, fill, dtype="float32")
        return array if self.name == "numpy" else self.from_dlpack(array)

    def exchange(self, blob):
        """Calls from_dlpack with the blob, or with its capsule if the library accepts only
        capsules."""
        if self.name == "torch" and not self.is_versioned:
            return self.from_dlpack(blob.__dlpack__())
        return self.from_dlpack(blob)


class Checks:
    def __init__(self, library, arrays):
        self.library, self.arrays = library, arrays

    def live_bytes(self):
        """Returns the bytes that the context of all blobs, the built-in one, owns and borrows."""
        gc.collect()
        figures = (ctypes.c_uint64 * 17)(17 * 8)
        self.library.call("sb_context_stats", None, figures)
        host, borrowed, cached = figures[1], figures[7], figures[8]
        return host - cached, borrowed

    def blob(self, shape=(2, 3), dtype=dlpack.F32):
        return self.library.blob(list(shape), dtype)

    def refusal(self, array):
        try:
            self.library.from_dlpack(array)
        except dlpack.Error as error:
            return error.name
        return None

    # --- any library -----------------------------------------------------------

    def check_an_array_is_the_blobs_memory(self):
        blob = self.blob()
        array = self.arrays.exchange(blob)
        assert tuple(array.shape) == (2, 3), array.shape
        assert self.arrays.pointer(array) == blob.pointer()
        self.arrays.values(array)[4] = 5.0
        assert blob.asum() == 5.0
        blob.scale(3.0)
        assert self.arrays.values(array)[4] == 15.0

    def check_diff_is_another_memory(self):
        blob = self.blob()
        blob.part = dlpack.DIFF
        array = self.arrays.exchange(blob)
        assert self.arrays.pointer(array) == blob.pointer(dlpack.DIFF)
        assert self.arrays.pointer(array) != blob.pointer()

    def check_an_array_outlives_its_blob(self):
        before = self.live_bytes()
        blob = self.blob((500, 3))
        array = self.arrays.exchange(blob)
        del blob
        assert self.live_bytes()[0] - before[0] > 6000
        self.arrays.values(array)[1499] = 7.0
        del array
        assert self.live_bytes() == before, (self.live_bytes(), before)

    def check_an_unused_capsule_ends_its_tensor(self):
        before = self.live_bytes()
        for max_version in (None, (1, 0)):
            capsule = self.blob().__dlpack__(max_version=max_version)
            assert self.live_bytes() != before
            del capsule
            assert self.live_bytes() == before

    def check_a_blob_is_the_arrays_memory(self):
        array = self.arrays.make((2, 3), 2.0)
        before = self.live_bytes()
        blob = self.library.from_dlpack(array, (1, 3) if self.arrays.is_versioned else None)
        assert blob.shape() == [2, 3] and blob.dtype() == dlpack.F32
        assert blob.pointer() == self.arrays.pointer(array)
        assert blob.asum() == 12.0
        assert self.live_bytes()[1] - before[1] == 24
        self.arrays.values(array)[0] = 5.0
        assert blob.asum() == 15.0
        blob.scale(2.0)
        assert self.arrays.values(array)[0] == 10.0
        del array
        gc.collect()
        assert blob.asum() == 30.0
        del blob
        assert self.live_bytes() == before

    def check_a_blob_by_the_struct_without_a_version(self):
        array = self.arrays.make((4,), 1.5)
        blob = self.library.from_dlpack(array, None)
        assert blob.pointer() == self.arrays.pointer(array) and blob.asum() == 6.0

    def check_round_and_round(self):
        before = self.live_bytes()
        blob = self.blob()
        start = blob.pointer()
        for _ in range(20):
            array = self.arrays.exchange(blob)
            blob = self.library.from_dlpack(array, (1, 3) if self.arrays.is_versioned else None)
            del array
        assert blob.pointer() == start
        del blob
        assert self.live_bytes() == before

    def check_arrays_end_on_any_thread(self):
        before = self.live_bytes()
        kept = [self.arrays.exchange(self.blob()) for _ in range(64)]
        threads = [threading.Thread(target=lambda: [kept.pop() for _ in range(8)])
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not kept and self.live_bytes() == before

    # --- NumPy ---------------------------------------------------------------------

    def check_numpy_read_only_both_ways(self):
        numpy = self.arrays.module
        blob = self.blob()
        blob.readonly = True
        array = numpy.from_dlpack(blob)
        assert array.ctypes.data == blob.pointer() and not array.flags.writeable
        mine = numpy.full((2, 3), 2.0, "f4")
        mine.flags.writeable = False
        theirs = self.library.from_dlpack(mine)
        assert theirs.pointer() == mine.ctypes.data
        theirs.scale(4.0)  # the library first copies the read-only values
        assert theirs.asum() == 48.0 and theirs.pointer() != mine.ctypes.data
        assert (mine == 2.0).all()

    def check_numpy_an_array_is_held_once(self):
        numpy = self.arrays.module
        array = numpy.zeros((2, 3), "f4")
        references = sys.getrefcount(array)
        blob = self.library.from_dlpack(array)
        assert sys.getrefcount(array) == references + 1
        again = self.library.from_dlpack(numpy.from_dlpack(blob))
        del blob
        assert sys.getrefcount(array) == references + 1
        del again
        assert sys.getrefcount(array) == references

    def check_numpy_refused_arrays_are_released(self):
        numpy = self.arrays.module
        whole = numpy.zeros((4, 6), "f4")
        references = sys.getrefcount(whole)
        for array in (whole.T, whole[::2], whole[:, :3], whole[::-1],
                      numpy.broadcast_to(whole[0], (4, 6))):
            assert self.refusal(array) == "SB_ERR_UNSUPPORTED", array.strides
        for dtype in ("c8", "c16", "?"):
            assert self.refusal(numpy.zeros(3, dtype)) == "SB_ERR_UNSUPPORTED", dtype
        unaligned = numpy.zeros(25, "u1")[1:].view("f4")
        assert self.refusal(unaligned) == "SB_ERR_INVALID_ARGUMENT"
        assert self.refusal(numpy.zeros((1,) * 33, "f4")) == "SB_ERR_OVER_LIMIT"
        del array
        gc.collect()
        assert sys.getrefcount(whole) == references

    def check_numpy_element_types(self):
        numpy = self.arrays.module
        for code, name, size in self.library.dtypes():
            if name == "bf16":
                continue
            array = numpy.arange(5).astype(f"{name[0]}{size}")
            blob = self.library.from_dlpack(array)
            assert blob.dtype() == code
            again = numpy.from_dlpack(blob)
            assert again.dtype == array.dtype and (again == array).all()

    def check_numpy_shapes(self):
        numpy = self.arrays.module
        for array in (numpy.full((), 3.0, "f4"), numpy.zeros((0, 5), "f4"),
                      numpy.ones((2, 1, 3), "f4")[:, ::-1], numpy.ones((1,) * 32, "f4"),
                      numpy.ones((4, 6), "f4")[2:], numpy.ones((3, 4), "f4")[1:1]):
            blob = self.library.from_dlpack(array)
            assert tuple(blob.shape()) == array.shape
            again = numpy.from_dlpack(blob)
            assert again.shape == array.shape and (again == array).all()
            assert not array.size or again.ctypes.data == array.ctypes.data

    def names(self):
        others = {"numpy", "torch"} - {self.arrays.name}
        for name in dir(self):
            if name.startswith("check_") and name.split("_")[1] not in others:
                yield name

    def run(self):
        failed = 0
        for name in self.names():
            try:
                getattr(self, name)()
            except Exception:
                failed += 1
                print(f"FAILED {self.arrays.name}: {name}")
                traceback.print_exc(file=sys.stdout)
        return len(list(self.names())) - failed, failed


def main(path, *names):
    library = dlpack.Library(path)
    passed = failed = 0
    for name in names:
        arrays = Arrays(name)
        good, bad = Checks(library, arrays).run()
        print(f"{name} {arrays.version}: {good} of {good + bad} checks")
        passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
