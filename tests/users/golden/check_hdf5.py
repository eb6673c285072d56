#!/usr/bin/env python3
"""Runs the script of c/guide/foreign.md on HDF5 snapshots as Caffe writes them, then `syncblob
convert`, and holds the net's blobs against the snapshot's.

    check_hdf5.py --cli PROGRAM --proto caffe.proto

A snapshot is the group "data" with a group for each layer, in which blobs are "0", "1", ...
Needs h5py: without it this is skipped.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy

from caffe_messages import Messages, read_descriptor
from checking import ROOT, Tally, parse_arguments
from reading import shape_of

PAGE = ROOT / "c/guide/foreign.md"

# A layer's name may have a slash, and more than ten blobs.
LAYERS = {
    "conv1": [(2, 3, 5, 5), (2,)],
    "relu1": [],
    "inception_3a/1x1": [(4, 3, 1, 1), (4,)],
    "lstm": [(3,)] * 12,
    "scalar": [()],
}


def script():
    """The page's one block for this check."""
    block = PAGE.read_text().split("```python golden\n")
    assert len(block) == 2, f"{PAGE}: {len(block) - 1} blocks"
    return block[1].split("```")[0]


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
    (folder / "h5_to_npz.py").write_text(script())
    for command in ([sys.executable, "h5_to_npz.py", "net.caffemodel.h5", "net.npz"],
                    [cli, "convert", "net.npz", "net.caffemodel"]):
        subprocess.run(command, cwd=folder, check=True)
    return (folder / "net.caffemodel").read_bytes()


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
    return tally.exit_status()


if __name__ == "__main__":
    sys.exit(main())
