#!/usr/bin/env python3
"""Tests that check.py finds wrong nets, whose constant outputs are Caffe's answers with a planted error."""

import sys

import numpy
import onnx
from onnx import helper, numpy_helper

import cases
import running
from check import result
from comparing import detections_problem


def constant_net(outputs, detections=(), opset=running.OPSET, sizes=None, inputs=()):
    sizes = {**dict.fromkeys(detections, [1, 1, "rows", 7]), **(sizes or {})}
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Constant", [], [name], value=numpy_helper.from_array(numpy.array(array, order="C")))
             for name, array in outputs.items()]
    graph = helper.make_graph(nodes, "constants", [info(name, onnx.TensorProto.FLOAT, [1]) for name in inputs], [
        info(name, helper.np_dtype_to_tensor_dtype(array.dtype), sizes.get(name, array.shape))
        for name, array in outputs.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


def changed(amount, at=0):
    def change(array):
        array.reshape(-1)[at] += amount * abs(array).max()
        return array
    return change


# Each row has the planted error, the case, the change of the case's first answer, and the expected status.
PLANTED = (
    ("nothing", "Convolution/000", lambda array: array, "right"),
    ("nothing", "DetectionOutput", lambda rows: rows, "right"),
    ("a value that is 3e-5 off", "Convolution/000", changed(3e-5), "wrong"),
    ("a value that is 3e-6 off", "Convolution/000", changed(3e-6), "right"),
    ("not a number", "Sigmoid/000", changed(numpy.nan), "wrong"),
    ("infinity", "Sigmoid/000", changed(numpy.inf), "wrong"),
    ("an axis more", "Pooling/000", lambda array: array[None], "wrong"),
    ("a row less", "Pooling/000", lambda array: array[..., :-1, :], "wrong"),
    ("doubles", "ReLU/000", lambda array: array.astype(numpy.float64), "wrong"),
    ("a detection less", "DetectionOutput", lambda rows: rows[:, :, 1:], "wrong"),
    ("two detections swapped", "DetectionOutput",
     lambda rows: rows[:, :, [1, 0, *range(2, rows.shape[2])]], "wrong"),
    ("another label", "DetectionOutput", changed(1, 1), "wrong"),
    ("a box that is 3e-5 off", "DetectionOutput", changed(3e-5, 4), "wrong"))


def case_named(name):
    """If `name` is a row, returns a case whose first two detections have one label."""
    row, _, index = name.partition("/")
    if index:
        return cases.answered(row)[int(index)]
    many = (case for case in cases.answered(row) if case.wanted["detections"].shape[2] > 3)
    return next(case for case in many if not numpy.diff(case.wanted["detections"].values[0, 0, :2, :2], axis=0).any())


def planted_nets():
    for what, name, change, status in PLANTED:
        case = case_named(name)
        outputs = {each: output.values.copy() for each, output in case.wanted.items()}
        first = next(iter(outputs))
        outputs[first] = change(outputs[first])
        yield what, case, constant_net(outputs, case.detections), status
    case = case_named("Reshape/000")
    (name, output), = case.wanted.items()
    right = {name: output.values}
    for what, net in (("another opset", constant_net(right, opset=13)),
                      ("another name", constant_net({f"{name}2": output.values})),
                      ("a size that is not promised", constant_net(right, sizes={name: ["any"] * len(output.shape)})),
                      ("an operator that is none", constant_net(right).replace(b"Constant", b"Kunstant")),
                      ("an input that is none", constant_net(right, inputs=["another", "more"]))):
        yield what, case, net, "wrong"


def checks():
    for what, case, net, status in planted_nets():
        found = result(case, lambda *_, net=net: net)
        yield found.status == status, f"{what}: {found.status}, not {status}: {found.message}"
    found = result(case, running.by_command("sh -c 'echo no words for it >&2; exit 3'"))
    yield (found.status, found.message) == ("refused", "no words for it"), f"a refusal: {found}"
    # Detections may change places only if their scores are equal.
    rows = numpy.float32([[0, 1, .9, .1, .1, .2, .2], [0, 1, .5, .3, .3, .4, .4],
                          [0, 1, .5, .5, .5, .6, .6], [0, 2, .5, .7, .7, .8, .8]])[None, None]
    for order, right in (((0, 1, 2, 3), True), ((0, 2, 1, 3), True), ((1, 0, 2, 3), False), ((0, 3, 1, 2), False)):
        found = detections_problem(rows[:, :, list(order)], rows) is None
        yield found == right, f"rows {order} are {'accepted' if found else 'refused'}"


if __name__ == "__main__":
    all_checks = list(checks())
    failures = [message for passed, message in all_checks if not passed]
    print(*failures, f"{len(all_checks) - len(failures)} passed, {len(failures)} failed", sep="\n")
    sys.exit(bool(failures))
