#!/usr/bin/env python3
"""Tests the Python program that `syncblob info` prints for HDF5 files: runs the program on snapshots
like Caffe's, converts the output with `syncblob convert`, and compares the blobs with the snapshots.

    check_hdf5.py --cli PROGRAM --proto caffe.proto

A snapshot of a net has the group "data", with a group for each layer, in which "0", "1", ... are the
layer's blobs. A solver's snapshot has its blobs in the group "history".
"""

import subprocess
import sys
import tempfile

import h5py
import numpy

from check_convert import differences, tensors_of
from checking import Checker, parse_arguments

# The shapes of each layer's blobs. One name has a slash, and one layer has more than ten blobs.
LAYERS = {
    "conv1": [(2, 3, 5, 5), (2,)],
    "relu1": [],
    "inception_3a/1x1": [(4, 3, 1, 1), (4,)],
    "lstm": [(3,)] * 12,
    "scalar": [()],
}


def make_archive(checker, snapshot):
    """Runs the Python lines that the command prints, on the snapshot instead of
    net.caffemodel.h5."""
    refusal = subprocess.run([checker.cli, "info", snapshot], cwd=checker.folder, capture_output=True, text=True)
    lines = [line.removeprefix("  ") for line in refusal.stderr.splitlines()[1:]]
    program = "\n".join(lines).replace("net.caffemodel.h5", snapshot)
    subprocess.run([sys.executable, "-c", program], cwd=checker.folder, check=True)


def layer_problems(checker, dtype):
    random = numpy.random.default_rng(7)
    blobs = {f"{name}.{index}": random.normal(size=shape).astype(dtype)
             for name, shapes in LAYERS.items() for index, shape in enumerate(shapes)}
    with h5py.File(checker.folder / "net.caffemodel.h5", "w") as snapshot:
        for name in LAYERS:
            snapshot.create_group(f"data/{name}")
        for name, blob in blobs.items():
            snapshot[f"data/{name.replace('.', '/')}"] = blob
    make_archive(checker, "net.caffemodel.h5")
    command = [checker.cli, "convert", "--force", "net.npz", "net.caffemodel"]
    subprocess.run(command, cwd=checker.folder, check=True)
    net = checker.message(checker.folder / "net.caffemodel", "caffemodel")
    yield from differences(tensors_of(net, "caffemodel"), blobs)
    yield from (f"{layer.name}: no blobs" for layer in net.layer if not layer.blobs)


def history_problems(checker):
    history = {"0": numpy.full((2, 3), 4, "<f4"), "1": numpy.arange(3, dtype="<f4")}
    with h5py.File(checker.folder / "net.solverstate.h5", "w") as snapshot:
        snapshot["iter"] = 9
        snapshot["learned_net"] = numpy.bytes_("net.caffemodel.h5")
        for index, blob in history.items():
            snapshot[f"history/{index}"] = blob
    make_archive(checker, "net.solverstate.h5")
    with numpy.load(checker.folder / "net.npz") as arrays:
        yield from differences(dict(arrays), history)


def main():
    arguments = parse_arguments(__doc__, "--cli", "the program syncblob")
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(arguments, folder)
        for dtype in ("<f4", "<f8"):
            checker.report(f"snapshot of {dtype}", layer_problems(checker, dtype))
        checker.report("snapshot of a solver", history_problems(checker))
    return checker.exit_status()


if __name__ == "__main__":
    sys.exit(main())
