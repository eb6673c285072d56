#!/usr/bin/env python3
"""The library beside Python's: NumPy's arithmetic, and Google's protobuf (upb) reading and writing
BlobProto. In turns, on the same values; shown are the fastest rounds, and ours over the other's.
Calls go through ctypes, about a microsecond each, so small sizes are left out."""
import argparse
import ctypes
import time

import numpy
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import api_implementation

SIZES = (1 << 18, 64 << 18)  # floats
F32, WITH_RESHAPE = 1, 1 << 3  # as the headers have them


def message_class():
    """BlobProto, as far as a shape and floats need it."""
    file = descriptor_pb2.FileDescriptorProto(name="blob.proto", package="peer", syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    shape = file.message_type.add(name="BlobShape")
    shape.field.add(name="dim", number=1, type=kinds.TYPE_INT64, label=kinds.LABEL_REPEATED)
    blob = file.message_type.add(name="BlobProto")
    blob.field.add(name="data", number=5, type=kinds.TYPE_FLOAT, label=kinds.LABEL_REPEATED)
    blob.field.add(name="shape", number=7, type=kinds.TYPE_MESSAGE, type_name=".peer.BlobShape",
                   label=kinds.LABEL_OPTIONAL)
    for field in (shape.field[0], blob.field[0]):
        field.options.packed = True
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("peer.BlobProto"))


class Library:
    """The C functions, each of which raises where its status is no success."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)

    def __getattr__(self, name):
        function = getattr(self.c, "sb_" + name)

        def call(*arguments):
            status = function(*arguments, None)
            if status != 0:
                raise RuntimeError(f"sb_{name}: status {status}")
        return call

    def blob_over(self, data, diff):
        """A blob on two arrays' memory."""
        blob, memory = ctypes.c_void_p(), ctypes.c_void_p()
        shape = (ctypes.c_int64 * 1)(data.size)
        self.blob_create_shaped(None, F32, shape, 1, ctypes.byref(blob))
        size = ctypes.c_size_t(data.nbytes)
        self.blob_set_cpu_data(blob, ctypes.c_void_p(data.ctypes.data), size, 0, None, None)
        self.blob_diff(blob, ctypes.byref(memory))
        self.mem_set_cpu(memory, ctypes.c_void_p(diff.ctypes.data), size, 0, None, None)
        return blob


def fastest(works, rounds=15):
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for i, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def contest(what, size, name, ours, other):
    mine, others = fastest((ours, other))
    print(f"{what:<26}{size:>10}{mine * 1e6:>14.0f}{others * 1e6:>14.0f}{mine / others:>8.2f}  {name}")


def arithmetic(library, count):
    random = numpy.random.default_rng(1)
    data, diff = (random.random(count, dtype=numpy.float32) for _ in range(2))
    copy, sum_ = numpy.empty_like(data), ctypes.c_double()
    blob, target = library.blob_over(data, diff), library.blob_over(copy, diff)
    out = ctypes.byref(sum_)
    for what, ours, other in (
            ("update", lambda: library.blob_update(blob),
             lambda: numpy.subtract(data, diff, out=data)),
            ("scale", lambda: library.blob_scale_data(blob, ctypes.c_double(-1)),
             lambda: numpy.multiply(data, numpy.float32(-1), out=data)),
            ("asum", lambda: library.blob_asum_data(blob, out), lambda: numpy.abs(data).sum()),
            ("sumsq", lambda: library.blob_sumsq_data(blob, out), lambda: numpy.dot(data, data)),
            ("copy", lambda: library.blob_copy_from(target, blob, 0),
             lambda: numpy.copyto(copy, data))):
        contest(what, data.nbytes, "NumPy", ours, other)
    for made in (blob, target):
        library.c.sb_blob_destroy(made)


def messages(library, count):
    message = message_class()()
    message.shape.dim.append(count)
    message.data.extend(numpy.arange(count, dtype=numpy.float32))
    encoded = message.SerializeToString()
    blob, written = ctypes.c_void_p(), ctypes.c_size_t()
    library.blob_create(None, F32, ctypes.byref(blob))
    buffer = ctypes.create_string_buffer(len(encoded))
    size, name = ctypes.c_size_t(len(encoded)), f"protobuf ({api_implementation.Type()})"
    contest("bytes to values", 4 * count, name,
            lambda: library.blob_from_proto(blob, encoded, size, WITH_RESHAPE, None),
            lambda: message.ParseFromString(encoded))
    contest("values to bytes", 4 * count, name,
            lambda: library.blob_to_proto(blob, 0, buffer, size, ctypes.byref(written)),
            message.SerializeToString)
    assert buffer.raw[:written.value] == message.SerializeToString()
    library.c.sb_blob_destroy(blob)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("library", help="libsyncblob.so")
    library = Library(arguments.parse_args().library)
    library.c.sb_blob_destroy.argtypes = [ctypes.c_void_p]
    print(f"{'':<26}{'bytes':>10}{'syncblob, µs':>14}{'other, µs':>14}{'ratio':>8}")
    for count in SIZES:
        arithmetic(library, count)
        messages(library, count)


if __name__ == "__main__":
    main()
