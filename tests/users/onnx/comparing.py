"""Stores Caffe's answers, and compares a net's outputs with the answers."""

import functools
import json
import math
import pathlib

import numpy

LAYER_TOLERANCE = 1e-5  # relative to an output's largest value
UNREAL = 1e30  # for empty windows, Caffe computes larger values or NaN, which are not compared
SAMPLE = 2000
FOLDER = pathlib.Path(__file__).resolve().parent / "answers"
COLUMNS = ("image", "label", "score", "xmin", "ymin", "xmax", "ymax")


def sampled(array):
    """The step has no common factor with the size, so that every row and column has stored values."""
    flat = array.reshape(-1)
    step = -(-flat.size // SAMPLE)
    while math.gcd(step, flat.size) > 1:
        step += 1
    return flat[::step]


class Wanted:
    """An output of Caffe, with all values or with a sample of the values."""

    def __init__(self, shape, values, tolerance, detections):
        self.shape, self.values = list(shape), values
        self.tolerance, self.detections = tolerance, detections

    def problem(self, found, tolerance=None):
        tolerance = tolerance or self.tolerance
        if self.detections:
            return detections_problem(found, self.values.reshape(self.shape), tolerance)
        if list(found.shape) != self.shape:
            return f"shape {list(found.shape)}, Caffe's is {self.shape}"
        return array_problem(self._kept(found), self.values.reshape(-1), tolerance)

    def difference(self, found):
        """Returns the least tolerance that accepts the output, or None if detections differ by more than 1e-3."""
        if self.detections:
            wanted, ladder = self.values.reshape(self.shape), numpy.geomspace(1e-8, 1e-3, 51)
            return next((float(each) for each in ladder if detections_problem(found, wanted, each) is None), None)
        wanted = self.values.reshape(-1)
        return float(distances(self._kept(found), wanted).max(initial=0)) / (largest(wanted) or 1)

    def _kept(self, found):
        return found.reshape(-1) if found.size == self.values.size else sampled(found)

    def promise_problem(self, sizes):
        """A graph may declare an unknown number of detections."""
        if sizes == self.shape or (self.detections and sizes == [1, 1, None, 7]):
            return None
        return f"the graph promises {sizes}, Caffe's shape is {self.shape}"


def largest(array):
    sizes = numpy.abs(array, dtype=numpy.float64)
    return float(sizes[sizes < UNREAL].max(initial=0))


def distances(found, wanted):
    """Returns the differences, but 0 where Caffe's value is NaN or at least UNREAL."""
    real = numpy.abs(wanted) < UNREAL
    return numpy.where(real, numpy.abs(found.astype(numpy.float64) - numpy.where(real, wanted, 0)), 0)


def array_problem(found, wanted, tolerance):
    apart = distances(found, wanted)
    bound = tolerance * largest(wanted)
    bad = ~(apart <= bound)  # true for a NaN
    if not bad.any():
        return None
    at = int(numpy.argmax(numpy.where(numpy.isnan(apart), numpy.inf, apart)))
    return (f"{numpy.count_nonzero(bad)} of {apart.size} values differ by more than {bound:.2g}; value {at} is "
            f"{found[at]:.7g}, Caffe's {wanted[at]:.7g}")


def detections_problem(found, wanted, tolerance=LAYER_TOLERANCE):
    """Rows must be in Caffe's order, but rows with equal scores may have any order."""
    if found.ndim != 4 or found.shape[:2] != (1, 1) or found.shape[3] != 7:
        return f"shape {list(found.shape)}, Caffe's is {list(wanted.shape)}"
    if found.shape[2] != wanted.shape[2]:
        return f"{found.shape[2]} detections, Caffe's are {wanted.shape[2]}"
    found, wanted = found[0, 0].astype(numpy.float64), wanted[0, 0].astype(numpy.float64)
    allowed = tolerance * max(1.0, largest(wanted[:, 2:]))
    begin = 0
    while begin < len(wanted):
        end = end_of_tie(wanted, begin, allowed)
        left = list(range(begin, end))
        for row in range(begin, end):
            match = next((i for i in left if (abs(found[i] - wanted[row]) <= allowed).all()), None)
            if match is None:
                return row_problem(row, found[row], wanted[row], allowed)
            left.remove(match)
        begin = end
    return None


def by_label(rows):
    """Sorts detections in Caffe's order. OpenCV 4 sorts detections by score."""
    rows = rows.reshape(-1, 7)
    return rows[numpy.lexsort((-rows[:, 2], rows[:, 1], rows[:, 0]))][None, None]


def end_of_tie(rows, begin, allowed):
    """Rows of one image and label tie if each score differs from the next by at most `allowed`."""
    end = begin + 1
    while end < len(rows) and (rows[end, :2] == rows[begin, :2]).all() \
            and abs(rows[end, 2] - rows[end - 1, 2]) <= allowed:
        end += 1
    return end


def row_problem(row, found, wanted, allowed):
    column = next((i for i in range(7) if not abs(found[i] - wanted[i]) <= allowed), 2)
    return f"row {row}: {COLUMNS[column]} is {found[column]:.7g}, Caffe's {wanted[column]:.7g}"


def load_answers(name):
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        return {}, numpy.zeros(0, "<f4")
    with numpy.load(path) as file:
        return (json.loads(file["index"].tobytes()),
                numpy.ascontiguousarray(file["values"].T).view("<f4").reshape(-1))


def save_answers(name, index, arrays):
    """Groups the bytes of the values by significance, for better compression."""
    values = numpy.concatenate([array.reshape(-1) for array in arrays]).astype("<f4")
    planes = numpy.ascontiguousarray(values.view(numpy.uint8).reshape(-1, 4).T)
    text = json.dumps(index, separators=(",", ":")).encode()
    numpy.savez_compressed(FOLDER / f"{name}.npz", index=numpy.frombuffer(text, numpy.uint8), values=planes)


@functools.cache
def answers_of_module(name):
    index, values = load_answers(name)
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


def put_answers(name, row, cases):
    rows = answers_of_module(name)
    rows[row] = cases
    index = {row: [[digest, {output: array.shape for output, array in outputs.items()}]
                   for digest, outputs in rows[row]] for row in sorted(rows)}
    save_answers(name, index, [array for row in index for _, outputs in rows[row] for array in outputs.values()])
