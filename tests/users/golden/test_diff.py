"""Compares `syncblob diff --json` and `syncblob verify --json` with results from Google's protobuf
and NumPy for the same files.

Each file is compared with itself and with copies in which Google's protobuf has changed values,
shapes, types, names and blobs. Each printed line must equal the expected line, numbers to the last
bit, and follow its JSON Schema.
"""

import collections
import json
import math
import random

import numpy

from conftest import read_message, validator
from reading import LEGACY, is_legacy, payload
from test_convert import array_of, blobs_of, layers_of

TOLERANCES = ((0, 0), (1e-3, 0), (0, 1e-2), (1e-4, 1e-4))


# A blob with its layer's name and type and its number in the layer. Blobs with equal `name` are paired.
# `legacy` is true if the blob has the four legacy dimensions.
Entry = collections.namedtuple("Entry", "name layer kind number data diff legacy")


def entries_of(message, file_format):
    entries = []
    for *place, blob in blobs_of(message, file_format):
        data = array_of(blob)
        entries.append(Entry(*place, data, diff_of(blob, data), is_legacy(blob)))
    return entries


def diff_of(blob, data):
    values = payload(blob, "diff").values
    with numpy.errstate(over="ignore"):  # doubles beyond a float's range become infinite
        return numpy.array(values, data.dtype).reshape(data.shape) if values else None


def finite(number):
    return float(number) if math.isfinite(number) else None


def shape_text(array):
    return "x".join(map(str, array.shape)) or "scalar"


def without_ones(shape):
    shape = list(shape)
    while shape[:1] == [1]:
        shape.pop(0)
    return shape


def same_shape(a, b):
    shapes = a.data.shape, b.data.shape
    legacy = (a.legacy or b.legacy) and max(map(len, shapes)) <= 4
    return shapes[0] == shapes[1] or legacy and without_ones(shapes[0]) == without_ones(shapes[1])


def compared_values(name, part, a, b, tolerance):
    """Returns the line about differing values (None if all are equal), and the largest differences."""
    first, second = (array.astype("f8").reshape(-1) for array in (a, b))
    nans = numpy.isnan(first), numpy.isnan(second)
    same = (first == second) | (nans[0] & nans[1])
    with numpy.errstate(all="ignore"):
        scale = numpy.maximum(abs(first), abs(second))
        absolute = numpy.where(same, 0, abs(first - second))
        relative = numpy.where(numpy.isfinite(absolute), absolute / scale,
                               abs(first / scale - second / scale))
        relative = numpy.where(numpy.isfinite(scale), relative, numpy.inf)
        relative = numpy.where(same, 0, relative)
        allowed = same | (numpy.isfinite(scale) & (absolute <= tolerance[0] + tolerance[1] * scale))
    some_nan = nans[0] | nans[1]
    largest = [numpy.max(numbers, initial=0, where=~some_nan) for numbers in (absolute, relative)]
    if allowed.all():
        return None, largest
    badness = numpy.where(allowed, -1, numpy.where(some_nan, numpy.inf, absolute))
    at = int(numpy.argmax(badness))
    line = {"kind": "values", "tensor": name, "part": part, "count": len(first),
            "differing": int((~allowed).sum()), "nan_only_a": int((nans[0] & ~nans[1]).sum()),
            "nan_only_b": int((nans[1] & ~nans[0]).sum()), "max_abs": finite(largest[0]),
            "max_rel": finite(largest[1]), "at": [int(i) for i in numpy.unravel_index(at, a.shape)],
            "a": finite(first[at]), "b": finite(second[at])}
    return line, largest


def expected_diff(entries_a, entries_b, tolerance):
    """Returns the lines that the program should print, without the files' names."""
    lines, largest, tensors, values = [], [0.0, 0.0], 0, 0
    others = {entry.name: entry for entry in entries_b}
    for a in entries_a:
        name = a.name
        if name not in others:
            lines.append({"kind": "only", "tensor": name, "in": "a"})
            continue
        b = others.pop(name)
        tensors += 1
        arrays, diffs = (a.data, b.data), (a.diff, b.diff)
        if None not in (a.layer, b.layer) and a.kind != b.kind:
            lines.append({"kind": "type", "tensor": name, "a": a.kind, "b": b.kind})
        if not same_shape(a, b):
            shapes = map(shape_text, arrays)
            lines.append({"kind": "shape", "tensor": name, **dict(zip("ab", shapes))})
        if arrays[0].dtype != arrays[1].dtype:
            dtypes = ({4: "f32", 8: "f64"}[array.dtype.itemsize] for array in arrays)
            lines.append({"kind": "dtype", "tensor": name, **dict(zip("ab", dtypes))})
        if (diffs[0] is None) != (diffs[1] is None):
            lines.append({"kind": "only_diff", "tensor": name, "in": "b" if diffs[0] is None else "a"})
        if arrays[0].size != arrays[1].size or not arrays[0].size:
            continue
        parts = [("data", arrays)]
        if a.diff is not None and b.diff is not None:
            parts.append(("diff", diffs))
        for part, pair in parts:
            line, most = compared_values(name, part, *pair, tolerance)
            values += pair[0].size
            largest = [max(pair) for pair in zip(largest, most)]
            lines += [line] if line else []
    lines += [{"kind": "only", "tensor": name, "in": "b"} for name in others]
    return lines + [{"kind": "summary", "schema": 1, "equal": not lines, "tensors": tensors,
                     "values": values, "differences": len(lines), "max_abs": finite(largest[0]),
                     "max_rel": finite(largest[1])}]


def expected_findings(message, entries, file_format):
    """Returns kind, layer, blob, part, count and place of each finding, in any order."""
    found = []
    for entry in entries:
        for part, array in (("data", entry.data), ("diff", entry.diff)):
            if array is None:
                continue
            with numpy.errstate(over="ignore"):
                beyond = numpy.isinf(array.astype("f4")) & ~numpy.isinf(array)
            for kind, mask in (("nan", numpy.isnan(array)), ("infinite", numpy.isinf(array)),
                               ("beyond-float", beyond)):
                if mask.any():
                    at = numpy.unravel_index(int(numpy.argmax(mask.reshape(-1))), array.shape)
                    found.append((kind, entry.layer, entry.number, part, int(mask.sum()), list(map(int, at))))
    if not entries:
        found.append(("no-values", None, None, None, None, None))
    if file_format == "caffemodel":
        found += [("unsafe-name", None, None, None, None, None)] * ("\x1b" in message.name)
        names = [name for name, _, blobs in layers_of(message) if blobs]
        twice = {name for name in names if names.count(name) > 1}
        found += [("duplicate-name", name, None, None, None, None) for name in twice]
    return sorted(found, key=repr)


def changed_copies(message, file_format, seed):
    """Yields copies of a message, each with a few changes of one kind."""
    rng = random.Random(seed)
    for change in (change_values, change_specials, change_shape, change_dtype, drop_blob,
                   drop_diffs, rename):
        copy = type(message).FromString(message.SerializeToString())
        blobs = [blob for *_, blob in blobs_of(copy, file_format)]
        if blobs and change(copy, blobs, rng, file_format):
            yield change.__name__, copy


def payload_of(blob):
    return blob.double_data if len(blob.double_data) else blob.data


def change_values(_, blobs, rng, __):
    for blob in blobs:
        payload = payload_of(blob)
        for _ in range(min(5, len(payload))):
            index = rng.randrange(len(payload))
            payload[index] = payload[index] * (1 + rng.choice((1e-7, 1e-3, 0.1))) + rng.choice((0, 1e-5))
    return True


def change_specials(_, blobs, rng, __):
    for value in (math.nan, math.inf, -math.inf, -0.0):
        payload = payload_of(rng.choice(blobs))
        if len(payload):
            payload[rng.randrange(len(payload))] = value
    return True


def change_shape(_, blobs, rng, __):
    blob = rng.choice(blobs)
    dims = list(array_of(blob).shape)
    for name in LEGACY:
        blob.ClearField(name)
    blob.shape.dim[:] = rng.choice((without_ones(dims), dims[::-1]))
    return True


def change_dtype(_, blobs, rng, __):
    blob = rng.choice(blobs)
    if len(blob.double_data) or len(blob.double_diff):
        return False
    blob.double_data.extend(blob.data)
    blob.double_diff.extend(blob.diff)
    blob.ClearField("data")
    blob.ClearField("diff")
    return True


def drop_blob(message, _, __, file_format):
    if file_format == "blob":
        return False
    holder = message.history if file_format == "solverstate" else layers_of(message)[-1][2]
    if holder:
        del holder[-1]
    return bool(holder)


def drop_diffs(_, blobs, __, ___):
    had = any(len(blob.diff) for blob in blobs)
    for blob in blobs:
        blob.ClearField("diff")
    return had


def rename(message, _, rng, file_format):
    if file_format != "caffemodel" or not message.layer:
        return False
    rng.choice(message.layer).name = "another name"
    rng.choice(message.layer).type = "AnotherType"
    return True


# The lines that have been compared, by command and kind.
compared = collections.Counter()


def lines_of(cli, command, *arguments):
    """Runs a command; returns its status and lines. Each line must follow its schema."""
    run = cli(command, "--json", *arguments)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    for line in lines:
        validator(command).validate(line)
        compared[command, line["kind"]] += 1
    return run.returncode, lines


def check_diff(cli, a, b, entries, change="itself"):
    for absolute, relative in TOLERANCES:
        options = ["--tolerance", str(absolute), "--rtol", str(relative)]
        status, lines = lines_of(cli, "diff", *options, a, b)
        wanted = expected_diff(*entries, (absolute, relative))
        wanted[-1].update(a=str(a), b=str(b))
        assert (status, lines) == (len(wanted) > 1, wanted), (change, options)


def check_verify(cli, path, message, entries, file_format):
    status, lines = lines_of(cli, "verify", path)
    keys = ("kind", "layer", "blob", "part", "count", "at")
    found = sorted((tuple(line[key] for key in keys) for line in lines), key=repr)
    wanted = expected_findings(message, entries, file_format)
    assert (status, found) == (bool(wanted), wanted)


def test_diff_and_verify(cli, messages, file, request, tmp_path):
    entries = entries_of(file.message, file.format)
    check_verify(cli, file.path, file.message, entries, file.format)
    check_diff(cli, file.path, file.path, (entries, entries))
    seed = len(request.node.callspec.id)
    for change, copy in changed_copies(file.message, file.format, seed):
        other = tmp_path / change
        other.write_bytes(copy.SerializeToString())
        changed = entries_of(read_message(messages, other, file.format), file.format)
        check_verify(cli, other, copy, changed, file.format)
        check_diff(cli, file.path, other, (entries, changed), change)


def test_every_kind_of_line_was_compared():
    """Runs after the other tests of this file."""
    diff = ("only", "only_diff", "type", "shape", "dtype", "values", "summary")
    verify = ("nan", "infinite", "beyond-float", "duplicate-name", "unsafe-name", "no-values")
    kinds = {*(("diff", kind) for kind in diff), *(("verify", kind) for kind in verify)}
    assert not kinds - compared.keys()
