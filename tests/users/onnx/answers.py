"""Caffe's stored answers: a file for each module of cases, and nets.npz for whole nets."""

import functools
import json
import math
import pathlib

import numpy

FOLDER = pathlib.Path(__file__).resolve().parent / "answers"


def load(name):
    """Returns a file's index and its values; the index is empty if there is no file."""
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        return {}, numpy.zeros(0, "<f4")
    with numpy.load(path) as file:
        return (json.loads(file["index"].tobytes()),
                numpy.ascontiguousarray(file["values"].T).view("<f4").reshape(-1))


def save(name, index, arrays):
    """Writes a file. Groups the values' bytes by significance, which compresses better."""
    values = numpy.concatenate([array.reshape(-1) for array in arrays]).astype("<f4")
    planes = numpy.ascontiguousarray(values.view(numpy.uint8).reshape(-1, 4).T)
    text = json.dumps(index, separators=(",", ":")).encode()
    numpy.savez_compressed(FOLDER / f"{name}.npz", index=numpy.frombuffer(text, numpy.uint8), values=planes)


@functools.cache
def of_module(name):
    """Returns {row: [(the case's digest, its outputs in Caffe's order)]} of a module of cases."""
    index, values = load(name)
    rows, at = {}, 0
    for row, cases in index.items():
        rows[row] = []
        for digest, shapes in cases:
            outputs = {}
            for output, shape in shapes.items():
                begin, at = at, at + math.prod(shape)
                outputs[output] = values[begin:at].reshape(shape)
            rows[row].append((digest, outputs))
    return rows


def put(name, row, cases):
    """Stores the answers of a row of a module."""
    rows = of_module(name)
    rows[row] = cases
    index = {row: [[digest, {output: array.shape for output, array in outputs.items()}]
                   for digest, outputs in rows[row]] for row in sorted(rows)}
    save(name, index, [array for row in index for _, outputs in rows[row] for array in outputs.values()])
