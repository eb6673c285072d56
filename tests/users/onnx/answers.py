"""Caffe's stored answers: one file for each row of the tables."""

import json
import pathlib

import numpy

FOLDER = pathlib.Path(__file__).resolve().parent / "answers"


class Answers:
    """For each case, its digest and its outputs, {name: array} in Caffe's order."""

    def __init__(self, row, cases):
        self.row, self.cases = row, cases

    def write(self):
        """Writes the file. Groups the values' bytes by significance, which compresses better."""
        index = [[digest, {name: array.shape for name, array in outputs.items()}]
                 for digest, outputs in self.cases]
        values = numpy.concatenate([array.reshape(-1) for _, outputs in self.cases
                                    for array in outputs.values()] or [[]]).astype("<f4")
        planes = values.view(numpy.uint8).reshape(-1, 4).T
        text = json.dumps(index, separators=(",", ":")).encode()
        FOLDER.mkdir(exist_ok=True)
        numpy.savez_compressed(FOLDER / f"{self.row}.npz", index=numpy.frombuffer(text, numpy.uint8),
                               values=numpy.ascontiguousarray(planes))

    @classmethod
    def read(cls, row):
        path = FOLDER / f"{row}.npz"
        if not path.exists():
            return cls(row, [])
        with numpy.load(path) as file:
            index = json.loads(file["index"].tobytes())
            values = numpy.ascontiguousarray(file["values"].T).view("<f4").reshape(-1)
        cases, at = [], 0
        for digest, shapes in index:
            outputs = {}
            for name, shape in shapes.items():
                size = int(numpy.prod(shape, dtype=int))
                outputs[name] = values[at:at + size].reshape(shape)
                at += size
            cases.append((digest, outputs))
        return cls(row, cases)
