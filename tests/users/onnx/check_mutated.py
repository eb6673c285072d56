#!/usr/bin/env python3
"""Changes nets at random. Each changed net must be refused with a message, or be converted to a valid model.

    check_mutated.py PROGRAM NETS

PROGRAM is the example mutated_nets of the crate syncblob-net; NETS is a folder of prototxts.
"""

import collections
import pathlib
import re
import subprocess
import sys

import numpy
import onnx

from running import Wrong, check_model, run_model, temporary_folder

COUNT = 300
THINNER = 16
MOST_INPUTS = 1 << 18


def thin(text):
    """Small numbers may be numbers of classes or boxes, not of channels."""
    def fewer(found):
        number = int(found[2])
        return found[1] + str(number if number < 128 or number % THINNER else number // THINNER)
    return re.sub(r"((?:num_output|group)\s*:\s*)(\d+)", fewer, text)


def check(stem):
    path = stem.with_suffix(".onnx")
    if not path.exists():
        if not stem.with_suffix(".txt").read_text():
            raise Wrong("refused without a message")
        return "refused"
    promised = check_model(str(path))
    inputs = {value.name: numpy.zeros([dim.dim_value for dim in value.type.tensor_type.shape.dim], numpy.float32)
              for value in onnx.load(path).graph.input}
    if sum(value.size for value in inputs.values()) <= MOST_INPUTS:
        for name, output in run_model(str(path), inputs).items():
            wanted = promised[name]
            if len(wanted) != output.ndim or any(dim not in (None, size) for dim, size in zip(wanted, output.shape)):
                raise Wrong(f"{name} is {output.shape}, not {wanted}")
    return "right"


def main():
    program, nets = map(pathlib.Path, sys.argv[1:])
    if not nets.is_dir():
        print(f"skipped: {nets} is missing; set SYNCBLOB_TEST_DATA")
        return 0
    counts = collections.Counter()
    with temporary_folder() as folder:
        for name in ("nets", "out"):
            (folder / name).mkdir()
        for net in nets.glob("*.prototxt"):
            (folder / "nets" / net.name).write_text(thin(net.read_text()))
        subprocess.run([program, folder / "nets", folder / "out", "0", str(COUNT)], check=True)
        for number in range(COUNT):
            try:
                counts[check(folder / "out" / str(number))] += 1
            except Wrong as error:
                counts["wrong"] += 1
                print(f"{number}: {error}", flush=True)
    print(", ".join(f"{count} {status}" for status, count in counts.items()))
    return 1 if counts["wrong"] or not counts["right"] else 0


if __name__ == "__main__":
    sys.exit(main())
