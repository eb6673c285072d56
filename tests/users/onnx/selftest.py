#!/usr/bin/env python3
"""Shows that check_layers.py finds a wrong net, by nets that answer with constants.

A net whose outputs are Caffe's answers must be right in every case; with an error planted into
its answers, its shapes or itself, it must be wrong.
"""

import sys

import numpy
import onnx
from onnx import helper, numpy_helper

import cases
import converting
import whole
from answers import Answers
from check_layers import check_case, check_row
from comparing import detections_problem, largest
from running import OPSET


def constant_net(outputs, detections=(), opset=OPSET, sizes=None):
    """A net that answers with arrays, whatever goes in."""
    sizes = {**dict.fromkeys(detections, [1, 1, "rows", 7]), **(sizes or {})}
    nodes, infos = [], []
    for name, array in outputs.items():
        value = numpy_helper.from_array(numpy.array(array, order="C"))
        nodes.append(helper.make_node("Constant", [], [name], value=value))
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype),
                                                   sizes.get(name, array.shape)))
    graph = helper.make_graph(nodes, "constants", [], infos)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def check_all_right():
    """Every row with its own answers."""
    for row in cases.TABLES:
        kept = Answers.read(row).cases
        nets = iter([constant_net(wanted, case.net.detections)
                     for case, (_, wanted) in zip(cases.cases_of(row), kept)])
        yield from (f"{result.name} is {result.status}: {result.message}"
                    for result in check_row(row, lambda *_: next(nets)) if result.status != "right")


def changed(outputs, change):
    outputs = {name: array.copy() for name, array in outputs.items()}
    name = next(iter(outputs))
    outputs[name] = change(outputs[name])
    return outputs


def add(array, amount, at=0):
    array.reshape(-1)[at] += amount * abs(array).max()
    return array


def set_first(array, value):
    array.reshape(-1)[0] = value
    return array


def swap_rows(rows):
    rows[0, 0, [0, 1]] = rows[0, 0, [1, 0]]
    return rows


def planted():
    """What is planted, into which case, and how the answers change."""
    yield "a value that is 3e-5 off", "Convolution/000", lambda array: add(array, 3e-5), "wrong"
    yield "a value that is 3e-6 off", "Convolution/000", lambda array: add(array, 3e-6), "right"
    yield "not a number", "Sigmoid/000", lambda array: set_first(array, numpy.nan), "wrong"
    yield "infinity", "Sigmoid/000", lambda array: set_first(array, numpy.inf), "wrong"
    yield "an axis more", "Pooling/000", lambda array: array[None], "wrong"
    yield "a row less", "Pooling/000", lambda array: array[..., :-1, :], "wrong"
    yield "doubles", "ReLU/000", lambda array: array.astype(numpy.float64), "wrong"
    yield "a detection less", many_rows(), lambda rows: rows[:, :, 1:], "wrong"
    yield "two detections swapped", many_rows(), swap_rows, "wrong"
    yield "another label", many_rows(), lambda rows: add(rows, 1, 1), "wrong"
    yield "a box that is 3e-5 off", many_rows(), lambda rows: add(rows, 3e-5, 4), "wrong"


def many_rows():
    """A case with two detections of one label."""
    for index, (_, outputs) in enumerate(Answers.read("DetectionOutput").cases):
        rows = outputs["detections"][0, 0]
        if len(rows) > 3 and (rows[0, :2] == rows[1, :2]).all():
            return f"DetectionOutput/{index:03}"
    raise AssertionError("no case has two")


def case_named(name):
    row, index = name.split("/")
    return cases.Case(row, int(index)), Answers.read(row).cases[int(index)][1]


def check_planted():
    """Each error by itself."""
    for what, name, change, status in planted():
        case, wanted = case_named(name)
        net = constant_net(changed(wanted, change), case.net.detections)
        result = check_case(case, wanted, lambda *_, net=net: net)
        if result.status != status:
            yield f"{what}: {result.status}, not {status}: {result.message}"
    case, wanted = case_named("Reshape/000")
    name = next(iter(wanted))
    any_size = {name: ["any"] * wanted[name].ndim}
    for what, net in (("another opset", constant_net(wanted, opset=13)),
                      ("another name", constant_net({f"{name}2": wanted[name]})),
                      ("a size that is not promised", constant_net(wanted, sizes=any_size)),
                      ("an operator that is none", constant_net(wanted).replace(b"Constant", b"Kunstant")),
                      ("an input that is none", with_input(constant_net(wanted)))):
        result = check_case(case, wanted, lambda *_, net=net: net)
        if result.status != "wrong":
            yield f"{what}: {result.status}, not wrong"
    result = check_case(case, wanted, converting.by_command("sh -c 'echo no words for it >&2; exit 3'"))
    if (result.status, result.message) != ("refused", "no words for it"):
        yield f"a refusal: {result}"


def with_input(net):
    model = onnx.load_from_string(net)
    model.graph.input.append(helper.make_tensor_value_info("another", onnx.TensorProto.FLOAT, [1]))
    return model.SerializeToString()


def check_ties():
    """Equal scores, in any order; no others."""
    rows = numpy.float32([[0, 1, .9, .1, .1, .2, .2], [0, 1, .5, .3, .3, .4, .4],
                          [0, 1, .5, .5, .5, .6, .6], [0, 2, .5, .7, .7, .8, .8]])[None, None]
    for order, right in (((0, 1, 2, 3), True), ((0, 2, 1, 3), True), ((1, 0, 2, 3), False),
                         ((0, 3, 1, 2), False)):
        if (detections_problem(rows[:, :, list(order)], rows) is None) != right:
            yield f"rows {order} are {'refused' if right else 'accepted'}"


def check_whole():
    """What is kept of whole nets: it tells answers apart, and so does the comparison."""
    kept = whole.Kept.read()
    for (name, output), values in kept.values.items():
        _, shape, tolerance = kept.index[name]["outputs"][output]
        if not (numpy.isfinite(values).all() and values.std() > 0.05 * largest(values)):
            yield f"{name}: {output} is the same everywhere"
        rows = whole.is_detections(name, shape)
        unit = tolerance * max(1, largest(values.reshape(-1, 7)[:, 2:])) if rows else tolerance * largest(values)
        for what, amount, right in (("nothing", 0, True), ("little", 0.5, True), ("much", 3, False)):
            found = numpy.zeros(shape, numpy.float32)
            whole.sampled(found)[:] = values
            found.reshape(-1)[-1 if rows else 0] += amount * unit
            if (kept.compare(name, output, found)[0] is None) != right:
                yield f"{name}: {output}, {what} planted: {'refused' if right else 'accepted'}"


def main():
    failures = [*check_all_right(), *check_planted(), *check_ties(), *check_whole()]
    for failure in failures:
        print(failure)
    tried = sum(count for count, _ in cases.TABLES.values()) + len(list(planted())) + 10
    tried += 4 * len(whole.Kept.read().values)
    print(f"{tried - len(failures)} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
