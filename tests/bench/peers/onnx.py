#!/usr/bin/env python3
"""Compares the conversion to ONNX with cp, by seconds and peak memory of whole processes.

    onnx.py SYNCBLOB MODEL PROTOTXT ENVIRONMENTS [--rounds N] [--check]

MODEL and PROTOTXT are a net of 24 MB; the program also makes a VGG-16 with 528 MiB of random weights. The
contestants take turns. In memory (tmpfs) the contestants are cp and "syncblob convert". On the disk there are two more
contestants: cp with sync, because convert syncs its file; and, for two rounds, each converter that has an environment
in the folder ENVIRONMENTS (of tests/release/users.sh). All files that are read are in the page cache.
"""

import argparse
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS / "users/onnx"))
import nets  # noqa: E402: of that folder

MEMORY = pathlib.Path("/dev/shm")
PEER_ROUNDS = 2
# The goal and the limit of --check: for the seconds, divided by cp's seconds, and for the peak memory in MiB.
GOALS = {"seconds": (1.2, 2.0), "MiB": (16, 24)}

PEERS = {
    "caffe2onnx": "{python} -m caffe2onnx.convert --prototxt {prototxt} --caffemodel {model} --onnx {out}",
    "caffe-onnx": "{python} -m src.cli {prototxt} {model} out {folder}",
    "mnn": "{python} -c \"import _tools; _tools.mnnconvert('mnn -f CAFFE --modelFile {model} --prototxt {prototxt}"
           " --MNNModel {out} --bizCode net'.split())\"",
    "x2paddle": "{python} -c \"from x2paddle.convert import caffe2paddle as c; "
                "c('{prototxt}', '{model}', '{out}', None, disable_feedback=True)\"",
    "mmdnn": "{python} {scripts}/run_mmdnn.py {folder}",
}


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


class Failed(Exception):
    """A contestant has failed; the argument is its error message."""


def run(command, folder):
    """Returns the seconds and the peak in MiB. Uses GNU time, because a child's peak includes this process's memory."""
    peak = folder / "peak"
    start = time.perf_counter()
    done = subprocess.run(["/usr/bin/time", "-q", "-o", peak, "-f", "%M", *shlex.split(command)], cwd=folder,
                          capture_output=True, text=True, errors="replace", check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise Failed(next(iter(done.stderr.splitlines()[-1:]), f"status {done.returncode}"))
    return seconds, int(peak.read_text()) / 1024


def clear(folder):
    for path in folder.glob("out*"):
        subprocess.run(["rm", "-rf", path], check=True)


def commands_of(folder, options, peers):
    """Returns the contestants' commands by name."""
    model, prototxt, out = (folder / name for name in ("net.caffemodel", "net.prototxt", "out.onnx"))
    commands = {"cp": f"cp {model} {out}"}
    if peers:
        commands["cp, sync"] = f"sh -c 'cp {model} {out} && sync {out}'"
    commands["syncblob"] = f"{options.syncblob.resolve()} convert {prototxt} {model} -o {out}"
    for peer, command in PEERS.items() if peers else ():
        python = options.environments.resolve() / peer / "bin/python"
        if python.exists():
            commands[peer] = command.format(python=python, prototxt=prototxt, model=model, out=out, folder=folder,
                                            scripts=TESTS / "users/onnx/peers")
    return commands


def contest(folder, options, peers):
    """Returns the samples of each contestant, or its error message."""
    commands, samples = commands_of(folder, options, peers), {}
    for turn in range(options.rounds):
        for name, command in commands.items():
            if isinstance(samples.get(name), str) or (name in PEERS and turn >= PEER_ROUNDS):
                continue
            clear(folder)
            try:
                samples.setdefault(name, []).append(run(command, folder))
            except Failed as error:
                samples[name] = str(error)
    clear(folder)
    return samples


def report(what, samples):
    cp = min(seconds for seconds, _ in samples["cp"])
    print(f"\n{what:<20}{'s, best':>10}{'median':>10}{'of cp':>10}{'MiB':>10}")
    for name, each in samples.items():
        if isinstance(each, str):
            print(f"{name:<20} fails: {each[:100]}")
            continue
        best = min(seconds for seconds, _ in each)
        median = statistics.median(seconds for seconds, _ in each)
        print(f"{name:<20}{best:>10.3f}{median:>10.3f}{best / cp:>10.2f}{max(mib for _, mib in each):>10.1f}",
              flush=True)


def judge(what, value, kind):
    goal, bound = GOALS[kind]
    print(f"{what}: {value:.2f}, at most {goal}: {'met' if value <= goal else 'MISSED'}")
    return value <= bound


def compare(name, make, options):
    passed = []
    for place, parent in (("in memory", MEMORY), ("on the disk", None)):
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            folder = pathlib.Path(folder)
            make(folder)
            samples = contest(folder, options, parent is None)
        report(f"{name}, {place}", samples)
        ours, against = samples["syncblob"], samples["cp" if parent else "cp, sync"]
        ratio = min(ours)[0] / min(against)[0]
        passed += [judge(f"{name}, {place}: seconds, of {'cp' if parent else 'cp with sync'}", ratio, "seconds"),
                   judge(f"{name}, {place}: peak, MiB", max(mib for _, mib in ours), "MiB")]
    return all(passed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("syncblob", "model", "prototxt", "environments"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--check", action="store_true", help="fail where a bound is passed")
    options = parser.parse_args()
    passed = [compare("ResNet, 24 MB", given(options.model, options.prototxt), options),
              compare("VGG-16, 528 MiB", vgg, options)]
    return 0 if all(passed) or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
