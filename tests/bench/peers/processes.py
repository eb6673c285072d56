#!/usr/bin/env python3
"""Compares processes that use the library with other processes, by their best times in turns.

    processes.py python [--check] MODEL PROTOTXT PROGRAM
    processes.py onnx MODEL PROTOTXT PROGRAM

PROGRAM is the command syncblob; MODEL and PROTOTXT are a net of 24 MB.
"python" compares the module with Google's protobuf (upb), with OpenCV, and with reading the bytes of the file.
"onnx" compares the conversion to ONNX with cp, for the net and for a VGG-16 with 528 MiB of random weights.
--check fails if a ratio is too large even for a busy machine.
"""
import argparse
import json
import mmap
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
# Each pair is the goal and the bound of --check. The bound is None if the ratio depends on the machine.
FIRST = {"protobuf": (0.08, 0.15), "read": (1.15, None)}
AGAIN = {"OpenCV": (0.4, 0.5)}
MEMORY = (1.03, 1.1)
PROCESSES = (0.1, 0.3)


def judge(what, value, goal, bound=None):
    print(f"{what}: {value:.3f}, at most {goal}: {'met' if value <= goal else 'MISSED'}")
    return bound is None or value <= bound


def in_turns(works, rounds):
    """Frees the results after the clock has stopped."""
    found = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            start = time.perf_counter()
            result = work()
            found[name].append(time.perf_counter() - start)
            del result
    return found


def process(words):
    return lambda: subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


# --- the weights of a net, by several libraries ----------------------------------------------------

def net_class():
    """Reads protoc's descriptors of caffe.proto from the file $CAFFE_DESCRIPTORS."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.internal import api_implementation
    assert api_implementation.Type() == "upb", api_implementation.Type()
    described = pathlib.Path(os.environ["CAFFE_DESCRIPTORS"]).read_bytes()
    pool = descriptor_pool.DescriptorPool()
    pool.Add(descriptor_pb2.FileDescriptorSet.FromString(described).file[0])
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("caffe.NetParameter"))


def by_protobuf(path):
    """numpy.fromiter is the fastest copy of a repeated field."""
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
    size, large = os.path.getsize(path), 2 << 20

    def load():
        memory = mmap.mmap(-1, (size + large - 1) // large * large)
        memory.madvise(mmap.MADV_HUGEPAGE)
        with open(path, "rb", buffering=0) as file, memoryview(memory) as view:
            assert file.readinto(view[:size]) == size
        return {}
    return load


def loader(name, model, prototxt):
    if name == "OpenCV":
        return by_opencv(model, prototxt)
    return {"syncblob": by_syncblob, "protobuf": by_protobuf, "read": by_read}[name](model)


def memory(kind):
    """VmRSS counts all resident bytes, RssFile those of mapped files, VmHWM the peak."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(kind))


def measure_first(name, model, prototxt):
    load = loader(name, model, prototxt)
    pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak
    before, code = memory("VmRSS"), memory("RssFile")
    start = time.perf_counter()
    arrays = load()
    seconds = time.perf_counter() - start
    peak = memory("VmHWM") - before - (memory("RssFile") - code)  # excludes the pages of programs
    values = sum(array.nbytes for array in arrays.values())
    total = sum(float(abs(array.astype("float64")).sum()) for array in arrays.values())
    print(json.dumps({"seconds": seconds, "peak": peak, "values": values, "sum": total}))


def this_script(what, *arguments):
    return [sys.executable, "-B", __file__, what, *arguments]


def compare_first(model, prototxt):
    found = {name: [] for name in ("syncblob", "protobuf", "OpenCV", "read")}
    for _ in range(ROUNDS):
        for name, results in found.items():
            printed = subprocess.run(this_script("measure_first", name, model, prototxt), check=True, stdout=subprocess.PIPE)
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


def compare_again(model, prototxt):
    found = in_turns({name: loader(name, model, prototxt) for name in ("syncblob", *AGAIN)}, 3 * ROUNDS)
    for name, own in found.items():
        print(f"again, {name:<9}{1000 * min(own):>10.1f}{1000 * statistics.median(own):>9.1f}")
    return [judge(f"again, to {other}", min(found["syncblob"]) / min(found[other]), *bounds)
            for other, bounds in AGAIN.items()]


def compare_scripts(model, prototxt, program):
    passed, script = [], process(this_script("measure_first", "protobuf", model, prototxt))
    for name in ("info", "verify", "convert"):
        with tempfile.TemporaryDirectory() as folder:
            own = [os.path.join(folder, "out.safetensors")] if name == "convert" else []
            found = in_turns({"ours": process([program, name, model, *own, *(["--force"] if own else [])]),
                              "other": script}, ROUNDS)
        ours, other = min(found["ours"]), min(found["other"])
        print(f"syncblob {name:<10}{1000 * ours:>9.1f} ms{1000 * other:>9.1f} ms")
        passed.append(judge(f"syncblob {name}, to a script", ours / other, *PROCESSES))
    return passed


def python(model, prototxt, program):
    return all([*compare_first(model, prototxt), *compare_again(model, prototxt), *compare_scripts(model, prototxt, program)])


# --- the conversion to ONNX ------------------------------------------------------------------------

def vgg(folder):
    """The VGG-16 lacks its last two ReLUs, and its weights repeat one random block."""
    import numpy
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "users/onnx"))
    import nets
    layers, inputs = [], 3
    for stage, (count, width) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)), 1):
        for number in range(1, count + 1):
            layers += [(f"conv{stage}_{number}", "Convolution", (width, inputs, 3, 3),
                        f"convolution_param {{ num_output: {width} kernel_size: 3 pad: 1 }}"),
                       (f"relu{stage}_{number}", "ReLU", None, "")]
            inputs = width
        layers.append((f"pool{stage}", "Pooling", None, "pooling_param { kernel_size: 2 stride: 2 }"))
    for number, shape in enumerate(((4096, 25088), (4096, 4096), (1000, 4096)), 6):
        layers.append((f"fc{number}", "InnerProduct", shape, f"inner_product_param {{ num_output: {shape[0]} }}"))
    block = numpy.random.default_rng(1).standard_normal(1 << 20, dtype="f4") / 100
    text, last = ['name: "VGG16"\ninput: "data"\ninput_shape { dim: 1 dim: 3 dim: 224 dim: 224 }\n'], "data"
    with open(folder / "net.caffemodel", "wb") as file:
        for name, kind, shape, parameters in [*layers, ("prob", "Softmax", None, "")]:
            text.append(f'layer {{ name: "{name}" type: "{kind}" bottom: "{last}" top: "{name}" {parameters} }}\n')
            last = name
            if shape:
                arrays = [numpy.resize(block, shape), numpy.resize(block, shape[:1])]
                file.write(nets.field(100, nets.layer_message(name, kind, arrays)))
    (folder / "net.prototxt").write_text("".join(text))


def with_peak(command, folder):
    """Uses GNU time, because the peak of a child would include this process's memory."""
    peak, start = folder / "peak", time.perf_counter()
    process(["/usr/bin/time", "-q", "-o", peak, "-f", "%M", *shlex.split(command)])()
    return time.perf_counter() - start, int(peak.read_text()) / 1024


def convert(what, copy, program, folder):
    """On a disk, sync follows cp, because convert syncs its file."""
    model, prototxt, out = (folder / name for name in ("net.caffemodel", "net.prototxt", "out.onnx"))
    commands = {copy: f"sh -c 'cp {model} {out} && sync {out}'" if "sync" in copy else f"cp {model} {out}",
                "syncblob": f"{program} convert {prototxt} {model} -o {out}"}
    samples = {name: [] for name in commands}
    for _ in range(ROUNDS + 2):
        for name, command in commands.items():
            samples[name].append(with_peak(command, folder))
            out.unlink()
    for name, each in samples.items():
        seconds, mib = zip(*each)
        print(f"{name:<20}{min(seconds):>10.3f} s{statistics.median(seconds):>10.3f} s, median{max(mib):>10.1f} MiB")
    judge(f"{what}: seconds, of {copy}", min(samples["syncblob"])[0] / min(samples[copy])[0], 1.2)
    judge(f"{what}: peak, MiB", max(mib for _, mib in samples["syncblob"]), 16)


def onnx(model, prototxt, program):
    def given(folder):
        (folder / "net.caffemodel").write_bytes(pathlib.Path(model).read_bytes())
        (folder / "net.prototxt").write_bytes(pathlib.Path(prototxt).read_bytes())
    for name, make in (("ResNet, 24 MB", given), ("VGG-16, 528 MiB", vgg)):
        for place, copy, parent in (("in memory", "cp", "/dev/shm"), ("on the disk", "cp with sync", None)):
            with tempfile.TemporaryDirectory(dir=parent) as folder:
                make(pathlib.Path(folder))
                convert(f"{name}, {place}", copy, program, pathlib.Path(folder))
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if a ratio is above its bound")
    parser.add_argument("what", help="python or onnx; internally a function for one process")
    parser.add_argument("arguments", nargs="+")
    options = parser.parse_args()
    within = globals()[options.what](*options.arguments)
    return 1 if options.check and not within else 0


if __name__ == "__main__":
    sys.exit(main())
