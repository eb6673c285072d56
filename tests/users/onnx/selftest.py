#!/usr/bin/env python3
"""Tests that check.py finds wrong nets, with nets whose outputs are constants.

A net whose outputs are Caffe's answers must be right in every case; with an error planted in its
answers, its shapes or its graph, the net must be wrong.
"""

import sys

import numpy
import onnx
from onnx import helper, numpy_helper

import cases
import running
import whole
from check import result
from comparing import detections_problem, largest, sampled


def constant_net(outputs, detections=(), opset=running.OPSET, sizes=None, inputs=()):
    """Returns a net whose outputs are these arrays for all inputs."""
    sizes = {**dict.fromkeys(detections, [1, 1, "rows", 7]), **(sizes or {})}
    nodes, infos = [], []
    for name, array in outputs.items():
        value = numpy_helper.from_array(numpy.array(array, order="C"))
        nodes.append(helper.make_node("Constant", [], [name], value=value))
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype),
                                                   sizes.get(name, array.shape)))
    inputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in inputs]
    graph = helper.make_graph(nodes, "constants", inputs, infos)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def answers(case):
    return {name: output.values.copy() for name, output in case.wanted.items()}


def check_all_right():
    """Tests that a net whose outputs are a case's stored answers is right in the case."""
    for row in cases.TABLES:
        for case in cases.answered(row):
            outcome = result(case, lambda *_, case=case: constant_net(answers(case), case.detections))
            yield outcome.status == "right", f"{case.name} is {outcome.status}: {outcome.message}"


def add(array, amount, at=0):
    array.reshape(-1)[at] += amount * abs(array).max()
    return array


def set_first(array, value):
    array.reshape(-1)[0] = value
    return array


# The planted error, the case, the function that changes the case's first answer, and the expected status.
PLANTED = (
    ("a value that is 3e-5 off", "Convolution/000", lambda array: add(array, 3e-5), "wrong"),
    ("a value that is 3e-6 off", "Convolution/000", lambda array: add(array, 3e-6), "right"),
    ("not a number", "Sigmoid/000", lambda array: set_first(array, numpy.nan), "wrong"),
    ("infinity", "Sigmoid/000", lambda array: set_first(array, numpy.inf), "wrong"),
    ("an axis more", "Pooling/000", lambda array: array[None], "wrong"),
    ("a row less", "Pooling/000", lambda array: array[..., :-1, :], "wrong"),
    ("doubles", "ReLU/000", lambda array: array.astype(numpy.float64), "wrong"),
    ("a detection less", "DetectionOutput", lambda rows: rows[:, :, 1:], "wrong"),
    ("two detections swapped", "DetectionOutput",
     lambda rows: rows[:, :, [1, 0, *range(2, rows.shape[2])]], "wrong"),
    ("another label", "DetectionOutput", lambda rows: add(rows, 1, 1), "wrong"),
    ("a box that is 3e-5 off", "DetectionOutput", lambda rows: add(rows, 3e-5, 4), "wrong"))


def case_named(name):
    """Returns the case with this name. If the name has no index, returns the row's first case with
    more than three detections, of which the first two have the same label."""
    row, _, index = name.partition("/")
    if index:
        return cases.answered(row)[int(index)]
    many = (case for case in cases.answered(row) if case.wanted["detections"].shape[2] > 3)
    return next(case for case in many if not numpy.diff(case.wanted["detections"].values[0, 0, :2, :2], axis=0).any())


def check_planted():
    """Tests each planted error separately."""
    for what, name, change, status in PLANTED:
        case = case_named(name)
        outputs = answers(case)
        first = next(iter(outputs))
        net = constant_net({**outputs, first: change(outputs[first])}, case.detections)
        outcome = result(case, lambda *_, net=net: net)
        yield outcome.status == status, f"{what}: {outcome.status}, not {status}: {outcome.message}"
    case = case_named("Reshape/000")
    wanted = answers(case)
    (name, array), = wanted.items()
    for what, net in (("another opset", constant_net(wanted, opset=13)),
                      ("another name", constant_net({f"{name}2": array})),
                      ("a size that is not promised", constant_net(wanted, sizes={name: ["any"] * array.ndim})),
                      ("an operator that is none", constant_net(wanted).replace(b"Constant", b"Kunstant")),
                      ("an input that is none", constant_net(wanted, inputs=["another", "more"]))):
        outcome = result(case, lambda *_, net=net: net)
        yield outcome.status == "wrong", f"{what}: {outcome.status}, not wrong"
    outcome = result(case, running.by_command("sh -c 'echo no words for it >&2; exit 3'"))
    yield (outcome.status, outcome.message) == ("refused", "no words for it"), f"a refusal: {outcome}"


def check_ties():
    """Tests that detections may change places only if their scores are equal."""
    rows = numpy.float32([[0, 1, .9, .1, .1, .2, .2], [0, 1, .5, .3, .3, .4, .4],
                          [0, 1, .5, .5, .5, .6, .6], [0, 2, .5, .7, .7, .8, .8]])[None, None]
    for order, right in (((0, 1, 2, 3), True), ((0, 2, 1, 3), True), ((1, 0, 2, 3), False), ((0, 3, 1, 2), False)):
        found = detections_problem(rows[:, :, list(order)], rows) is None
        yield found == right, f"rows {order} are {'accepted' if found else 'refused'}"


def check_whole():
    """Tests that the stored values of whole nets vary enough to distinguish answers, and that the
    comparison does distinguish them."""
    kept = whole.Kept.read()
    for net in kept.index:
        for name, output in kept.wanted(net).items():
            values = output.values
            varies = numpy.isfinite(values).all() and values.std() > 0.05 * largest(values)
            yield varies, f"{net}: {name} is the same everywhere"
            size = max(1, largest(values.reshape(-1, 7)[:, 2:])) if output.detections else largest(values)
            for what, amount, right in (("nothing", 0, True), ("little", 0.5, True), ("much", 3, False)):
                found = numpy.zeros(output.shape, numpy.float32)
                sampled(found)[:] = values
                found.reshape(-1)[-1 if output.detections else 0] += amount * output.tolerance * size
                accepted = output.problem(found) is None
                yield accepted == right, f"{net}: {name}, {what} planted: {'accepted' if accepted else 'refused'}"


def main():
    checks = [*check_all_right(), *check_planted(), *check_ties(), *check_whole()]
    failures = [message for passed, message in checks if not passed]
    print("".join(f"{message}\n" for message in failures), end="")
    print(f"{len(checks) - len(failures)} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
