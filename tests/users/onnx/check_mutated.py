#!/usr/bin/env python3
"""Changes nets at random: each must be refused with a message, or its ONNX must be valid for onnx
and onnxruntime.

    check_mutated.py PROGRAM NETS

PROGRAM is the example mutated_nets of the crate syncblob-net; NETS is a folder of prototxts. A
converted net must pass onnx.checker in full mode, which infers all shapes and compares them with
the shapes in the file. If the net is small, onnxruntime also runs it, and its outputs must have the
shapes in the file.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import onnx

from running import Wrong, check_model, run_model

COUNT = 300
THINNER = 16  # divides large numbers of channels, so that weights stay small
MOST_INPUTS = 1 << 18


def thin(text):
    """Divides large numbers of channels by THINNER. Counts of classes and boxes are not multiples of THINNER,
    so they do not change."""
    def fewer(found):
        number = int(found[2])
        return found[1] + str(number if number < 128 or number % THINNER else number // THINNER)
    return re.sub(r"((?:num_output|group)\s*:\s*)(\d+)", fewer, text)


def run(path, promised):
    """Returns the first output whose shape differs from the shape in the file, or None."""
    sizes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
             for value in onnx.load(path).graph.input}
    inputs = {name: numpy.zeros(size, numpy.float32) for name, size in sizes.items()}
    if sum(value.size for value in inputs.values()) > MOST_INPUTS:
        return None
    for name, output in run_model(str(path), inputs).items():
        wanted = promised[name]
        if len(wanted) != output.ndim or any(dim not in (None, size) for dim, size in zip(wanted, output.shape)):
            return f"{name} is {output.shape}, not {wanted}"
    return None


def check(stem):
    """Returns the result of a net (refused, right or wrong), and why."""
    path = stem.with_suffix(".onnx")
    if not path.exists():
        words = stem.with_suffix(".txt").read_text()
        return ("refused", words) if words else ("wrong", "refused without a message")
    try:
        found = run(path, check_model(str(path)))
    except Wrong as error:
        found = str(error)
    return ("wrong", found) if found else ("right", "")


def main():
    program, nets = map(pathlib.Path, sys.argv[1:])
    if not nets.is_dir():
        print(f"skipped: {nets} is missing; set SYNCBLOB_TEST_DATA")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        thinner, out = pathlib.Path(folder, "nets"), pathlib.Path(folder, "out")
        thinner.mkdir()
        out.mkdir()
        for net in nets.glob("*.prototxt"):
            (thinner / net.name).write_text(thin(net.read_text()))
        subprocess.run([program, thinner, out, "0", str(COUNT)], check=True)
        counts = {"right": 0, "refused": 0, "wrong": 0}
        for number in range(COUNT):
            status, words = check(out / str(number))
            counts[status] += 1
            if status == "wrong":
                print(f"{number}: {words}", flush=True)
    print(", ".join(f"{count} {status}" for status, count in counts.items()))
    return 1 if counts["wrong"] or not counts["right"] else 0


if __name__ == "__main__":
    sys.exit(main())
