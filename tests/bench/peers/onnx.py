#!/usr/bin/env python3
"""Compares the conversion to ONNX with cp, by seconds and peak memory of whole processes.

    onnx.py SYNCBLOB MODEL PROTOTXT

MODEL and PROTOTXT are a net of 24 MB; the program also makes a VGG-16 with 528 MiB of random weights. The contestants
take turns: cp in memory (tmpfs), or cp with sync on the disk, because convert syncs its file; and "syncblob convert".
All files that are read are in the page cache.
"""

import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "users/onnx"))
import nets  # noqa: E402: of that folder

ROUNDS = 7


def vgg(folder):
    """Writes a VGG-16 whose weights repeat one random block."""
    block = numpy.random.default_rng(1).standard_normal(1 << 20, dtype="f4") / 100
    text, last = ['name: "VGG16"\ninput: "data"\ninput_shape { dim: 1 dim: 3 dim: 224 dim: 224 }\n'], "data"
    with open(folder / "net.caffemodel", "wb") as file:
        def layer(name, kind, shape, parameters):
            nonlocal last
            top = last if kind == "ReLU" else name
            text.append(f'layer {{ name: "{name}" type: "{kind}" bottom: "{last}" top: "{top}" {parameters} }}\n')
            last = top
            if shape:
                arrays = [numpy.resize(block, shape), numpy.resize(block, shape[:1])]
                file.write(nets.field(100, nets.layer_message(name, kind, arrays)))
        channels = 3
        for stage, (count, width) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)), 1):
            for number in range(1, count + 1):
                layer(f"conv{stage}_{number}", "Convolution", (width, channels, 3, 3),
                      f"convolution_param {{ num_output: {width} kernel_size: 3 pad: 1 }}")
                layer(f"relu{stage}_{number}", "ReLU", None, "")
                channels = width
            layer(f"pool{stage}", "Pooling", None, "pooling_param { kernel_size: 2 stride: 2 }")
        inner = 512 * 7 * 7
        for number, width in ((6, 4096), (7, 4096), (8, 1000)):
            layer(f"fc{number}", "InnerProduct", (width, inner),
                  f"inner_product_param {{ num_output: {width} }}")
            if number < 8:
                layer(f"relu{number}", "ReLU", None, "")
            inner = width
        layer("prob", "Softmax", None, "")
    (folder / "net.prototxt").write_text("".join(text))


def given(model, prototxt):
    def make(folder):
        (folder / "net.caffemodel").write_bytes(model.read_bytes())
        (folder / "net.prototxt").write_bytes(prototxt.read_bytes())
    return make


def run(command, folder):
    """Returns the seconds and the peak in MiB. Uses GNU time, because a child's peak includes this process's memory."""
    peak = folder / "peak"
    start = time.perf_counter()
    subprocess.run(["/usr/bin/time", "-q", "-o", peak, "-f", "%M", *shlex.split(command)], check=True,
                   stdout=subprocess.DEVNULL)
    return time.perf_counter() - start, int(peak.read_text()) / 1024


def contest(folder, syncblob, copy):
    """Returns the samples of the command `copy` and of syncblob, and prints them."""
    model, prototxt, out = (folder / name for name in ("net.caffemodel", "net.prototxt", "out.onnx"))
    commands = {"the copy": copy.format(model, out), "syncblob": f"{syncblob} convert {prototxt} {model} -o {out}"}
    samples = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            samples[name].append(run(command, folder))
            out.unlink()
    for name, each in samples.items():
        seconds, mib = zip(*each)
        print(f"{name:<20}{min(seconds):>10.3f} s{statistics.median(seconds):>10.3f} s, median{max(mib):>10.1f} MiB")
    return samples.values()


def judge(what, value, goal):
    print(f"{what}: {value:.2f}, at most {goal}: {'met' if value <= goal else 'MISSED'}")


def compare(name, make, syncblob):
    for place, copy, command, parent in (("in memory", "cp", "cp {0} {1}", "/dev/shm"),
                                         ("on the disk", "cp with sync", "sh -c 'cp {0} {1} && sync {1}'", None)):
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            make(pathlib.Path(folder))
            against, ours = contest(pathlib.Path(folder), syncblob, command)
        judge(f"{name}, {place}: seconds, of {copy}", min(ours)[0] / min(against)[0], 1.2)
        judge(f"{name}, {place}: peak, MiB", max(mib for _, mib in ours), 16)


def main():
    syncblob, *net = (pathlib.Path(path).resolve() for path in sys.argv[1:])
    compare("ResNet, 24 MB", given(*net), syncblob)
    compare("VGG-16, 528 MiB", vgg, syncblob)


if __name__ == "__main__":
    main()
