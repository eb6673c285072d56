"""Runs the tests of test_arrays.py with TVM's tensors: python -m unittest tvm_arrays"""
import test_arrays
import tvm_ffi


class Tvm(test_arrays.Sharing):
    from_dlpack = staticmethod(tvm_ffi.from_dlpack)

    def pointer(self, array):
        return array.data_ptr()

    def of_base(self):
        return tvm_ffi.from_dlpack(self.base)
