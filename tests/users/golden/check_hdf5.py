#!/usr/bin/env python3
"""Tests the Python program that `syncblob info` prints for HDF5 files: runs it on snapshots like
Caffe's, converts its output with `syncblob convert`, and compares the blobs with the snapshots'.

    check_hdf5.py --cli PROGRAM --proto caffe.proto

A snapshot is the group "data" with a group for each layer, in which blobs are "0", "1", ... A solver's
snapshot has its blobs in the group "history". Skips the test without h5py.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy

from caffe_messages import Messages, read_descriptor
from checking import Tally, parse_arguments
from reading import shape_of

# The shapes of each layer's blobs. One name has a slash, and one layer has more than ten blobs.
LAYERS = {
    "conv1": [(2, 3, 5, 5), (2,)],
    "relu1": [],
    "inception_3a/1x1": [(4, 3, 1, 1), (4,)],
    "lstm": [(3,)] * 12,
    "scalar": [()],
}


def make_archive(cli, folder, snapshot):
    """Runs the Python lines that the command prints, on the snapshot instead of
    net.caffemodel.h5."""
    refusal = subprocess.run([cli, "info", snapshot], cwd=folder, capture_output=True, text=True)
    lines = [line.removeprefix("  ") for line in refusal.stderr.splitlines()[1:]]
    program = "\n".join(lines).replace("net.caffemodel.h5", snapshot)
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)


def made_blobs(dtype):
    random = numpy.random.default_rng(7)
    return {name: [random.normal(size=shape).astype(dtype) for shape in shapes]
            for name, shapes in LAYERS.items()}


def write_snapshot(h5py, path, layers):
    with h5py.File(path, "w") as snapshot:
        for name, blobs in layers.items():
            group = snapshot.create_group(f"data/{name}")
            for index, blob in enumerate(blobs):
                group[str(index)] = blob


def convert(cli, folder):
    make_archive(cli, folder, "net.caffemodel.h5")
    subprocess.run([cli, "convert", "net.npz", "net.caffemodel"], cwd=folder, check=True)
    return (folder / "net.caffemodel").read_bytes()


def history_problems(cli, h5py):
    history = [numpy.full((2, 3), 4, "<f4"), numpy.arange(3, dtype="<f4")]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with h5py.File(folder / "net.solverstate.h5", "w") as snapshot:
            snapshot["iter"] = 9
            snapshot["learned_net"] = numpy.bytes_("net.caffemodel.h5")
            for index, blob in enumerate(history):
                snapshot[f"history/{index}"] = blob
        make_archive(cli, folder, "net.solverstate.h5")
        with numpy.load(folder / "net.npz") as arrays:
            if sorted(arrays) != ["0", "1"]:
                yield f"arrays {sorted(arrays)}"
            for index, blob in enumerate(history):
                if arrays[str(index)].tobytes() != blob.tobytes():
                    yield f"history {index}: other values"


def problems(messages, cli, h5py, dtype):
    layers = made_blobs(dtype)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_snapshot(h5py, folder / "net.caffemodel.h5", layers)
        net = messages.NetParameter.FromString(convert(cli, folder))
    expected = {name: blobs for name, blobs in layers.items() if blobs}
    if sorted(layer.name for layer in net.layer) != sorted(expected):
        yield f"layers {[layer.name for layer in net.layer]}"
        return
    for layer in net.layer:
        if len(layer.blobs) != len(expected[layer.name]):
            yield f"{layer.name}: {len(layer.blobs)} blobs"
        for index, (blob, wanted) in enumerate(zip(layer.blobs, expected[layer.name])):
            values = blob.double_data if dtype == "<f8" else blob.data
            found = numpy.array(values, dtype).reshape(shape_of(blob))
            if found.shape != wanted.shape or found.tobytes() != wanted.tobytes():
                yield f"{layer.name}.{index}: other values, or {found.shape} for {wanted.shape}"


def main():
    arguments = parse_arguments(__doc__, "--cli", "the program syncblob")
    try:
        import h5py
    except ImportError:
        print("skipped: Python has no module h5py")
        return 0
    messages = Messages(read_descriptor(arguments.protoc, arguments.proto))
    tally = Tally()
    for dtype in ("<f4", "<f8"):
        tally.report(f"snapshot of {dtype}", problems(messages, arguments.cli.resolve(), h5py, dtype))
    tally.report("snapshot of a solver", history_problems(arguments.cli.resolve(), h5py))
    return tally.exit_status()


if __name__ == "__main__":
    sys.exit(main())
