#!/usr/bin/env python3
"""A real net's weights: python.py [--check] MODEL PROTOTXT PROGRAM

Loads the file by the module syncblob into a dict of NumPy arrays, by Google's protobuf (upb)
likewise, by OpenCV into its net, and reads it into fresh memory; the first time, each in processes
of its own, and again and again in one. Then PROGRAM, the command syncblob, beside Python scripts
that do the same with protobuf and safetensors, as whole processes. With --check it fails where a
ratio is above the bound that it has beside other work.
"""
import argparse
import json
import math
import mmap
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
# What is compared: [against, the goal, the bound of --check]; None: none, since it is of a machine.
FIRST = {"protobuf": (0.08, 0.15), "read": (1.15, None)}
AGAIN = {"OpenCV": (0.4, 0.5)}
MEMORY = (1.03, 1.1)
PROCESSES = (0.1, 0.3)

# Field numbers of caffe.proto, as far as weights need them.
LAYER_FIELDS = {"layer": (100, "LayerParameter"), "layers": (2, "V1LayerParameter")}


def message_class():
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.internal import api_implementation
    assert api_implementation.Type() == "upb", api_implementation.Type()
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="net.proto", package="peer", syntax="proto2")

    def message(name, *fields):
        made = file.message_type.add(name=name)
        for field, number, kind, label, of in fields:
            found = made.field.add(name=field, number=number, type=kind, label=label)
            if of:
                found.type_name = f".peer.{of}"
            elif label == kinds.LABEL_REPEATED:
                found.options.packed = True

    one, many = kinds.LABEL_OPTIONAL, kinds.LABEL_REPEATED
    message("BlobShape", ("dim", 1, kinds.TYPE_INT64, many, None))
    message("BlobProto", ("num", 1, kinds.TYPE_INT32, one, None),
            ("channels", 2, kinds.TYPE_INT32, one, None),
            ("height", 3, kinds.TYPE_INT32, one, None), ("width", 4, kinds.TYPE_INT32, one, None),
            ("data", 5, kinds.TYPE_FLOAT, many, None),
            ("shape", 7, kinds.TYPE_MESSAGE, one, "BlobShape"))
    message("LayerParameter", ("name", 1, kinds.TYPE_STRING, one, None),
            ("blobs", 7, kinds.TYPE_MESSAGE, many, "BlobProto"))
    message("V1LayerParameter", ("name", 4, kinds.TYPE_STRING, one, None),
            ("blobs", 6, kinds.TYPE_MESSAGE, many, "BlobProto"))
    message("NetParameter", *((name, number, kinds.TYPE_MESSAGE, many, of)
                              for name, (number, of) in LAYER_FIELDS.items()))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("peer.NetParameter"))


def parsed(path):
    """protobuf's message alone, as a net without arrays."""
    Net = message_class()

    def load():
        net = Net()
        with open(path, "rb") as file:
            net.ParseFromString(file.read())
        return {}
    return load


def by_protobuf(path):
    """By the fastest way from a repeated field into an array that we know: fromiter takes half the
    time of numpy.array."""
    import numpy
    Net = message_class()

    def shape(blob):
        return tuple(blob.shape.dim) if blob.HasField("shape") else \
            (blob.num, blob.channels, blob.height, blob.width)

    def array(values):
        return numpy.fromiter(values, "float32", len(values))

    def load():
        net = Net()
        with open(path, "rb") as file:
            net.ParseFromString(file.read())
        return {f"{layer.name}.{i}": array(blob.data).reshape(shape(blob))
                for layer in (*net.layer, *net.layers) for i, blob in enumerate(layer.blobs)}
    return load


def by_syncblob(path):
    import numpy  # noqa: F401: before the clock runs
    import syncblob
    return lambda: syncblob.load(path).state_dict(names="caffe")


def by_opencv(path, prototxt):
    import cv2

    def load():
        return {} if cv2.dnn.readNetFromCaffe(prototxt, path) else None
    return load


def by_read(path):
    """The file's bytes into memory that nobody had, in large pages."""
    size, large = os.path.getsize(path), 2 << 20

    def load():
        memory = mmap.mmap(-1, (size + large - 1) // large * large)
        memory.madvise(mmap.MADV_HUGEPAGE)
        with open(path, "rb", buffering=0) as file, memoryview(memory) as view:
            assert file.readinto(view[:size]) == size
        return {}
    return load


def memory(kind):
    """Bytes of the process: VmRSS, those that it has, RssFile, those of them that are files', or
    VmHWM, those that it had at its peak."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(kind))


def forget_peak():
    with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
        clear.write("5")


def loader(name, options):
    if name == "OpenCV":
        return by_opencv(options.model, options.prototxt)
    return {"syncblob": by_syncblob, "protobuf": by_protobuf, "parsed alone": parsed,
            "read": by_read}[name](options.model)


def measure_first(name, options):
    """In a process of its own: the first load, as a program does it once."""
    load = loader(name, options)
    forget_peak()
    before, code = memory("VmRSS"), memory("RssFile")
    start = time.perf_counter()
    arrays = load()
    seconds = time.perf_counter() - start
    peak = memory("VmHWM") - before - (memory("RssFile") - code)  # pages of programs are not data
    values = sum(array.nbytes for array in arrays.values())
    total = sum(float(abs(array.astype("float64")).sum()) for array in arrays.values())
    print(json.dumps({"seconds": seconds, "peak": peak, "values": values, "sum": total}))


def judge(what, ratio, goal, bound):
    """Whether --check passes it."""
    print(f"{what}: {ratio:.3f}, at most {goal}: {'met' if ratio <= goal else 'MISSED'}")
    return bound is None or ratio <= bound


def again(options, *more):
    return subprocess.run([sys.executable, "-B", __file__, *options.positional, *more], check=True,
                          stdout=subprocess.PIPE).stdout


def compare_first(options):
    found = {name: [] for name in ("syncblob", "protobuf", "parsed alone", "OpenCV", "read")}
    for _ in range(ROUNDS):
        for name, results in found.items():
            results.append(json.loads(again(options, "--first", name)))
    results = [result for name in ("syncblob", "protobuf") for result in found[name]]
    size = results[0]["values"]
    assert len({(result["values"], result["sum"]) for result in results}) == 1, "other values"
    print(f"{'the first time':<14}{'ms, fastest':>12}{'median':>9}{'peak, of the values':>21}")
    for name, own in found.items():
        times = [1000 * result["seconds"] for result in own]
        peak = max(result["peak"] for result in own) / size
        print(f"{name:<14}{min(times):>12.1f}{statistics.median(times):>9.1f}{peak:>21.2f}")
    fastest = {name: min(result["seconds"] for result in own) for name, own in found.items()}
    peak = max(result["peak"] for result in found["syncblob"]) / size
    return [*(judge(f"the first time, to {other}", fastest["syncblob"] / fastest[other], *bounds)
              for other, bounds in FIRST.items()), judge("memory, of the values", peak, *MEMORY)]


def compare_again(options):
    """In turns, in this process; what was loaded before goes when the clock has stopped."""
    found = {name: [] for name in ("syncblob", *AGAIN)}
    loads = {name: loader(name, options) for name in found}
    for _ in range(3 * ROUNDS):
        for name, load in loads.items():
            start = time.perf_counter()
            loaded = load()
            found[name].append(time.perf_counter() - start)
            del loaded
    for name, own in found.items():
        print(f"again, {name:<9}{1000 * min(own):>10.1f}{1000 * statistics.median(own):>9.1f}")
    return [judge(f"again, to {other}", min(found["syncblob"]) / min(found[other]), *bounds)
            for other, bounds in AGAIN.items()]


# --- whole processes ------------------------------------------------------------------------------

def script_info(model, _):
    """The sums that info shows, in doubles."""
    import numpy
    for name, array in by_protobuf(model)().items():
        wide = array.astype("float64")
        print(name, *array.shape, array.dtype, array.nbytes, wide.sum(), numpy.abs(wide).sum(),
              numpy.square(wide).sum())


def script_verify(model, _):
    """What the message claims: as many values as the shape has, all of them numbers."""
    import numpy
    for name, array in by_protobuf(model)().items():
        assert array.size == math.prod(array.shape) and numpy.isfinite(array).all(), name


def script_convert(model, out):
    from safetensors.numpy import save_file
    save_file(by_protobuf(model)(), out)


SCRIPTS = {"info": script_info, "verify": script_verify, "convert": script_convert}


def run(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def compare_processes(options):
    passed = []
    with tempfile.TemporaryDirectory() as folder:
        for name in SCRIPTS:
            ours, theirs = [], []
            for i in range(ROUNDS):
                outs = [os.path.join(folder, f"{who}-{i}.safetensors") for who in "ab"]
                own = [outs[0]] if name == "convert" else []
                ours.append(run([options.program, name, options.model, *own]))
                theirs.append(run([sys.executable, "-B", __file__, *options.positional, "--script",
                                   name, "--out", outs[1]]))
                for out in pathlib.Path(folder).iterdir():
                    out.unlink()
            print(f"syncblob {name:<10}{1000 * min(ours):>9.1f} ms{1000 * min(theirs):>9.1f} ms")
            ratio = min(ours) / min(theirs)
            passed.append(judge(f"syncblob {name}, to a script", ratio, *PROCESSES))
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("prototxt")
    parser.add_argument("program")
    parser.add_argument("--check", action="store_true", help="fail where a bound is passed")
    parser.add_argument("--first", help=argparse.SUPPRESS)
    parser.add_argument("--script", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.positional = [options.model, options.prototxt, options.program]
    if options.first:
        measure_first(options.first, options)
        return 0
    if options.script:
        SCRIPTS[options.script](options.model, options.out)
        return 0
    passed = [*compare_first(options), *compare_again(options), *compare_processes(options)]
    return 0 if all(passed) or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
