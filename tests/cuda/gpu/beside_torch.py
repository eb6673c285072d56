#!/usr/bin/env python3
"""Tests PyTorch and the library's C functions in one process, on one device.

usage: beside_torch.py LIBSYNCBLOB

Exit status: 0 if the tests pass, 77 if there is no PyTorch or no device, else 1.
"""

import ctypes
import sys

COUNT = 1000
F32 = 1  # SB_DTYPE_F32
DEVICE = 16  # the offset of `device` in sb_context_options


def skip(why):
    print("skipped:", why)
    sys.exit(77)


class Library:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.error = ctypes.create_string_buffer(256)  # sb_error

    def call(self, name, *arguments):
        if getattr(self.library, name)(*arguments, self.error):
            raise RuntimeError(f"{name}: {self.error.raw[16:].split(bytes(1))[0].decode()}")

    def context(self):
        options, out = ctypes.create_string_buffer(256), ctypes.c_void_p()
        device = ctypes.c_char_p(b"cuda:0")
        self.library.sb_context_options_init(options, ctypes.c_size_t(256))
        ctypes.memmove(ctypes.byref(options, DEVICE), ctypes.byref(device), 8)
        self.call("sb_context_create", options, ctypes.byref(out))
        return out

    def blob(self, context):
        out = ctypes.c_void_p()
        self.call("sb_blob_create_shaped", context, F32, (ctypes.c_int64 * 1)(COUNT), 1,
                  ctypes.byref(out))
        return out

    def lend(self, blob, tensor):
        """The tensor must outlive the blob."""
        self.call("sb_blob_set_gpu", blob, 0, ctypes.c_void_p(tensor.data_ptr()),
                  ctypes.c_size_t(4 * COUNT), 0, None, None)

    def asum(self, blob):
        out = ctypes.c_double()
        self.call("sb_blob_asum", blob, 0, ctypes.byref(out))
        return out.value


def check_memory(torch, library, context):
    tensor = torch.full((COUNT,), 1.0, device="cuda:0")
    blob = library.blob(context)
    library.lend(blob, tensor)
    for _ in range(10):
        tensor.mul_(2)
        library.call("sb_blob_scale", blob, 0, ctypes.c_double(0.5))
    library.call("sb_context_synchronize", context)
    assert tensor.sum().item() == COUNT and library.asum(blob) == COUNT
    library.library.sb_blob_destroy(blob)
    assert tensor.sum().item() == COUNT


def check_capture(torch, library, context):
    tensor = torch.full((COUNT,), 3.0, device="cuda:0")
    mine = torch.full((COUNT,), 1.0, device="cuda:0")
    blob = library.blob(context)
    library.lend(blob, mine)
    assert library.asum(blob) == COUNT
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tensor.mul_(2)
        library.call("sb_blob_scale", blob, 0, ctypes.c_double(2))
    assert library.asum(blob) == 2 * COUNT
    graph.replay()
    assert tensor.sum().item() == 6 * COUNT
    library.library.sb_blob_destroy(blob)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        import torch
    except ImportError as error:
        skip(f"PyTorch is not installed ({error})")
    if not torch.cuda.is_available():
        skip("PyTorch shows no device")
    a = torch.full((8, 8), 1.0, device="cuda:0")
    assert (a @ a).sum().item() == 8 * 64  # loads cuBLAS
    library = Library(sys.argv[1])
    context = library.context()
    check_memory(torch, library, context)
    check_capture(torch, library, context)
    library.library.sb_context_release(context)
    assert (a @ a).sum().item() == 8 * 64
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name(0)}: ok")


if __name__ == "__main__":
    main()
