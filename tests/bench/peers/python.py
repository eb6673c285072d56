#!/usr/bin/env python3
"""Compares the Python module and the command with Google's protobuf (upb), OpenCV and scripts.

    python.py [--check] MODEL PROTOTXT PROGRAM

The program loads a real net's weights: by the module and by protobuf into a dict of NumPy arrays, by OpenCV into its
net, and as bytes into fresh memory; each way first in a new process, then repeatedly in one process. It then compares
PROGRAM, the command syncblob, with scripts, as whole processes. With --check the program fails if a ratio is above its
bound for a busy machine.
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
# For each contestant, the goal and the bound of --check; None if the ratio depends on the machine.
FIRST = {"protobuf": (0.08, 0.15), "read": (1.15, None)}
AGAIN = {"OpenCV": (0.4, 0.5)}
MEMORY = (1.03, 1.1)
PROCESSES = (0.1, 0.3)


def net_class():
    """Returns the class of NetParameter in protoc's description of caffe.proto, the file $CAFFE_DESCRIPTORS."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.internal import api_implementation
    assert api_implementation.Type() == "upb", api_implementation.Type()
    described = pathlib.Path(os.environ["CAFFE_DESCRIPTORS"]).read_bytes()
    pool = descriptor_pool.DescriptorPool()
    pool.Add(descriptor_pb2.FileDescriptorSet.FromString(described).file[0])
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("caffe.NetParameter"))


def judge(what, ratio, goal, bound):
    """Prints the ratio. Returns whether the ratio is within the bound of --check."""
    print(f"{what}: {ratio:.3f}, at most {goal}: {'met' if ratio <= goal else 'MISSED'}")
    return bound is None or ratio <= bound


def in_turns(works, rounds):
    """Runs the works in turn. Returns {name: seconds of each round}; the clock stops before results are freed."""
    found = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            start = time.perf_counter()
            result = work()
            found[name].append(time.perf_counter() - start)
            del result
    return found


# --- a net ----------------------------------------------------------------------------------------

def by_protobuf(path):
    """Returns a loader that uses protobuf and, as the fastest copy of a repeated field, numpy.fromiter."""
    import numpy
    Net = net_class()

    def array(blob):
        shape = blob.shape.dim if blob.HasField("shape") else (blob.num, blob.channels, blob.height, blob.width)
        return numpy.fromiter(blob.data, "float32", len(blob.data)).reshape(shape)

    def load():
        net = Net()
        net.ParseFromString(pathlib.Path(path).read_bytes())
        return {f"{layer.name}.{i}": array(blob)
                for layer in (*net.layer, *net.layers) for i, blob in enumerate(layer.blobs)}
    return load


def by_syncblob(path):
    import numpy  # noqa: F401: before the clock runs
    import syncblob
    return lambda: syncblob.load(path).state_dict(names="caffe")


def by_opencv(path, prototxt):
    import cv2
    return lambda: {} if cv2.dnn.readNetFromCaffe(prototxt, path) else None


def by_read(path):
    """Returns a function that reads the file's bytes into fresh memory in large pages."""
    size, large = os.path.getsize(path), 2 << 20

    def load():
        memory = mmap.mmap(-1, (size + large - 1) // large * large)
        memory.madvise(mmap.MADV_HUGEPAGE)
        with open(path, "rb", buffering=0) as file, memoryview(memory) as view:
            assert file.readinto(view[:size]) == size
        return {}
    return load


def loader(name, options):
    if name == "OpenCV":
        return by_opencv(options.model, options.prototxt)
    return {"syncblob": by_syncblob, "protobuf": by_protobuf, "read": by_read}[name](options.model)


def memory(kind):
    """Returns resident bytes of this process: VmRSS (all), RssFile (of mapped files) or VmHWM (the peak)."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(kind))


def measure_first(name, options):
    """Loads the weights for the first time in this process and prints the measured figures."""
    load = loader(name, options)
    pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak
    before, code = memory("VmRSS"), memory("RssFile")
    start = time.perf_counter()
    arrays = load()
    seconds = time.perf_counter() - start
    peak = memory("VmHWM") - before - (memory("RssFile") - code)  # without pages of programs
    values = sum(array.nbytes for array in arrays.values())
    total = sum(float(abs(array.astype("float64")).sum()) for array in arrays.values())
    print(json.dumps({"seconds": seconds, "peak": peak, "values": values, "sum": total}))


def this_script(options, *more):
    return [sys.executable, "-B", __file__, options.model, options.prototxt, options.program, *more]


def compare_first(options):
    found = {name: [] for name in ("syncblob", "protobuf", "OpenCV", "read")}
    for _ in range(ROUNDS):
        for name, results in found.items():
            printed = subprocess.run(this_script(options, "--first", name), check=True, stdout=subprocess.PIPE)
            results.append(json.loads(printed.stdout))
    results = [result for name in ("syncblob", "protobuf") for result in found[name]]
    size = results[0]["values"]
    assert len({(result["values"], result["sum"]) for result in results}) == 1, "other values"
    print(f"{'the first time':<14}{'ms, fastest':>12}{'median':>9}{'peak, of the values':>21}")
    fastest, peaks = {}, {}
    for name, own in found.items():
        times = [result["seconds"] for result in own]
        fastest[name], peaks[name] = min(times), max(result["peak"] for result in own) / size
        print(f"{name:<14}{1000 * min(times):>12.1f}{1000 * statistics.median(times):>9.1f}{peaks[name]:>21.2f}")
    return [*(judge(f"the first time, to {other}", fastest["syncblob"] / fastest[other], *bounds)
              for other, bounds in FIRST.items()), judge("memory, of the values", peaks["syncblob"], *MEMORY)]


def compare_again(options):
    found = in_turns({name: loader(name, options) for name in ("syncblob", *AGAIN)}, 3 * ROUNDS)
    for name, own in found.items():
        print(f"again, {name:<9}{1000 * min(own):>10.1f}{1000 * statistics.median(own):>9.1f}")
    return [judge(f"again, to {other}", min(found["syncblob"]) / min(found[other]), *bounds)
            for other, bounds in AGAIN.items()]


# --- whole processes ------------------------------------------------------------------------------

def script_info(model, _):
    import numpy
    for name, array in by_protobuf(model)().items():
        wide = array.astype("float64")
        print(name, *array.shape, array.dtype, array.nbytes, wide.sum(), numpy.abs(wide).sum(),
              numpy.square(wide).sum())


def script_verify(model, _):
    import numpy
    for name, array in by_protobuf(model)().items():
        assert array.size == math.prod(array.shape) and numpy.isfinite(array).all(), name


def script_convert(model, out):
    from safetensors.numpy import save_file
    save_file(by_protobuf(model)(), out)


SCRIPTS = {"info": script_info, "verify": script_verify, "convert": script_convert}


def compare_processes(options):
    passed = []
    for name in SCRIPTS:
        def run(command):
            return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with tempfile.TemporaryDirectory() as folder:
            outs = [os.path.join(folder, f"{side}.safetensors") for side in "ab"]
            own = [outs[0], "--force"] if name == "convert" else []
            found = in_turns({"ours": run([options.program, name, options.model, *own]),
                              "other": run(this_script(options, "--script", name, "--out", outs[1]))}, ROUNDS)
        ours, other = min(found["ours"]), min(found["other"])
        print(f"syncblob {name:<10}{1000 * ours:>9.1f} ms{1000 * other:>9.1f} ms")
        passed.append(judge(f"syncblob {name}, to a script", ours / other, *PROCESSES))
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "prototxt", "program"):
        parser.add_argument(name)
    parser.add_argument("--check", action="store_true", help="fail if a ratio is above its bound")
    for name in ("--first", "--script", "--out"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    options = parser.parse_args()
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
