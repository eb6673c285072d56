"""Tests the Python program that `syncblob info` prints for HDF5 files: runs the program on snapshots
like Caffe's, converts the output with `syncblob convert`, and compares the blobs with the snapshots.

A snapshot of a net has the group "data", with a group for each layer, in which "0", "1", ... are the
layer's blobs. A solver's snapshot has its blobs in the group "history".
"""

import subprocess
import sys

import h5py
import numpy
import pytest

from conftest import read_message
from test_convert import check_arrays, check_npz, tensors_of

# The shapes of each layer's blobs. One name has a slash, and one layer has more than ten blobs.
LAYERS = {
    "conv1": [(2, 3, 5, 5), (2,)],
    "relu1": [],
    "inception_3a/1x1": [(4, 3, 1, 1), (4,)],
    "lstm": [(3,)] * 12,
    "scalar": [()],
}


@pytest.fixture
def make_archive(cli, tmp_path):
    """Returns a function of a snapshot's name. The function runs the Python lines that `syncblob info` prints
    for the snapshot; in them it replaces net.caffemodel.h5 by the name."""
    def run_lines(snapshot):
        lines = [line.removeprefix("  ") for line in cli("info", snapshot).stderr.decode().splitlines()[1:]]
        program = "\n".join(lines).replace("net.caffemodel.h5", snapshot)
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    return run_lines


@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
def test_snapshot_of_a_net(cli, make_archive, messages, tmp_path, dtype):
    random = numpy.random.default_rng(7)
    blobs = {f"{name}.{index}": random.normal(size=shape).astype(dtype)
             for name, shapes in LAYERS.items() for index, shape in enumerate(shapes)}
    with h5py.File(tmp_path / "net.caffemodel.h5", "w") as snapshot:
        for name in LAYERS:
            snapshot.create_group(f"data/{name}")
        for name, blob in blobs.items():
            snapshot[f"data/{name.replace('.', '/')}"] = blob
    make_archive("net.caffemodel.h5")
    assert cli("convert", "net.npz", "net.caffemodel").returncode == 0
    net = read_message(messages, tmp_path / "net.caffemodel", "caffemodel")
    check_arrays(tensors_of(net, "caffemodel"), blobs)
    assert all(layer.blobs for layer in net.layer)


def test_snapshot_of_a_solver(make_archive, tmp_path):
    history = {"0": numpy.full((2, 3), 4, "<f4"), "1": numpy.arange(3, dtype="<f4")}
    with h5py.File(tmp_path / "net.solverstate.h5", "w") as snapshot:
        snapshot["iter"] = 9
        snapshot["learned_net"] = numpy.bytes_("net.caffemodel.h5")
        for index, blob in history.items():
            snapshot[f"history/{index}"] = blob
    make_archive("net.solverstate.h5")
    check_npz(tmp_path / "net.npz", history)
