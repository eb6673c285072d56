#!/usr/bin/env python3
"""A net's weights in Python: python.py [--check] MODEL

Loads the file into a dict of NumPy arrays by the module syncblob and by Google's protobuf (upb),
each in processes of its own, in turns; shows times and the memory at the peak. With --check it
fails if syncblob takes more than 0.15 of the other's time, or more memory than 1.1 times the values.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time

ROUNDS = 5
MOST_OF_THE_TIME, MOST_OF_THE_VALUES = 0.15, 1.1

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
    return lambda: syncblob.load(path).state_dict(apply_scale=False)


def memory(kind):
    """Bytes of the process: VmRSS, those that it has, or VmHWM, those that it had at its peak."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(kind))


def forget_peak():
    with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
        clear.write("5")


CONTESTANTS = {"syncblob": by_syncblob, "protobuf": by_protobuf, "parsed alone": parsed}


def measure(name, path):
    """In a process of its own: the first load, as a program does it once."""
    load = CONTESTANTS[name](path)
    forget_peak()
    before = memory("VmRSS")
    start = time.perf_counter()
    arrays = load()
    seconds = time.perf_counter() - start
    peak = memory("VmHWM") - before
    values = sum(array.nbytes for array in arrays.values())
    total = sum(float(abs(array.astype("float64")).sum()) for array in arrays.values())
    print(json.dumps({"seconds": seconds, "peak": peak, "values": values, "sum": total}))


def compare(path):
    """Whether both goals are met."""
    found = {name: [] for name in CONTESTANTS}
    for _ in range(ROUNDS):
        for name, results in found.items():
            done = subprocess.run([sys.executable, __file__, path, "--one", name], check=True,
                                  stdout=subprocess.PIPE)
            results.append(json.loads(done.stdout))
    results = [result for name in ("syncblob", "protobuf") for result in found[name]]
    size = results[0]["values"]
    assert len({(result["values"], result["sum"]) for result in results}) == 1, "other values"
    print(f"{'':<14}{'ms, fastest':>12}{'median':>9}{'peak, of the values':>21}")
    for name, own in found.items():
        times = [1000 * result["seconds"] for result in own]
        peak = max(result["peak"] for result in own) / size
        print(f"{name:<14}{min(times):>12.1f}{statistics.median(times):>9.1f}{peak:>21.2f}")
    fastest = {name: min(result["seconds"] for result in own) for name, own in found.items()}
    time_ratio = fastest["syncblob"] / fastest["protobuf"]
    memory_ratio = max(result["peak"] for result in found["syncblob"]) / size
    print(f"time {time_ratio:.3f} of protobuf's, at most {MOST_OF_THE_TIME}; memory "
          f"{memory_ratio:.2f} of the values, at most {MOST_OF_THE_VALUES}")
    return time_ratio <= MOST_OF_THE_TIME and memory_ratio <= MOST_OF_THE_VALUES


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--check", action="store_true", help="fail where a goal is missed")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(options.one, options.model)
        return 0
    return 0 if compare(options.model) or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
