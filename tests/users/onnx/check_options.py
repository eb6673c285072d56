#!/usr/bin/env python3
"""Tests what the options of "syncblob convert" for ONNX do, and what it refuses.

    check_options.py FOLDER [ROW...]

FOLDER has the program, "syncblob", and the example of its crate, "examples/to_onnx".
"""

import argparse
import itertools
import pathlib
import subprocess
import sys

import numpy
import onnx

import cases
import converting
import huge
import refusals
import whole
from answers import Answers
from check_layers import MAY_BE_REFUSED
from comparing import LAYER_TOLERANCE, array_problem, detections_problem
from drawing import Draw
from nets import Net, blob_message
from running import Wrong, check_model, run_model

OF_EACH_ROW = 4       # cases of a layer's row that an option is tried with
HALVES = 1e-2         # of an output's largest value: the tolerance where a net computes with halves
# Rows whose outputs are decisions, which halves may take otherwise.
DECISIONS = ("ArgMax", "DetectionOutput", "DetectionOutputInverted", "SSDHead", "Threshold", "PoolingMask")
FULL_PRECISION = ("Embed", "Normalize", "NormalizeBBox")  # in a file of halves, too
# Rows whose inputs have no batch in their first axis, or one that Caffe's shapes fix.
NO_BATCH = ("BatchReindex", "DetectionOutput", "DetectionOutputInverted", "PSROIPooling", "ROIPooling")
FIXED_BATCH = ("LSTM", "RNN", "Reshape", "Scale", "Bias", "ArgMax", "Parameter")
NETS = ("caffe__examples_cifar10_cifar10_quick", "mobilenet-ssd__deploy", "mtcnn_kpzhang93_det1, trained",
        "mtcnn_kpzhang93_det2, trained", "mtcnn_kpzhang93_det3, trained", "squeezenet__SqueezeNet_v1.1_deploy")


class Program:
    """The command, with options."""

    def __init__(self, folder):
        self.folder = folder

    def convert(self, net, *options):
        words = " ".join(map(str, options))
        command = f"{self.folder}/syncblob convert {{prototxt}} {{caffemodel}} -o {{onnx}} {words}"
        return converting.by_command(command)(net.text(), net.model())


def cases_of_layers(left_out):
    for row in cases.TABLES:
        if row not in left_out:
            answers = Answers.read(row).cases
            for index in range(min(OF_EACH_ROW, len(answers))):
                yield row, cases.Case(row, index), answers[index][1]


def compare(found, wanted, detections=(), tolerance=LAYER_TOLERANCE):
    """Raises Wrong unless outputs are as wanted."""
    if set(found) != set(wanted):
        raise Wrong(f"outputs {sorted(found)}, not {sorted(wanted)}")
    for name, array in wanted.items():
        if found[name].dtype != numpy.float32:
            raise Wrong(f"{name}: {found[name].dtype}, not float32")
        problem = detections_problem if name in detections else array_problem
        why = problem(found[name], array, tolerance)
        if why:
            raise Wrong(f"{name}: {why.replace('Caffe', 'the other')}")


# --- precision ------------------------------------------------------------------------------------


def halves(program):
    for row, case, wanted in cases_of_layers((*MAY_BE_REFUSED, *DECISIONS)):
        yield case.name, lambda row=row, net=case.net, wanted=wanted: check_halves(program, row, net, wanted)


def check_halves(program, row, net, wanted):
    model = program.convert(net, "--fp16")
    check_model(model)
    kinds = {tensor.data_type for tensor in onnx.load_from_string(model).graph.initializer}
    if net.weights and row not in FULL_PRECISION and onnx.TensorProto.FLOAT16 not in kinds:
        raise Wrong("no weights are halves")
    found = run_model(model, net.inputs)
    if net.names_differ or net.losses:
        wanted = dict(zip(found, wanted.values()))
    compare(found, wanted, tolerance=HALVES)


# --- batches ----------------------------------------------------------------------------------------


def batches(program):
    for row, case, _ in cases_of_layers((*MAY_BE_REFUSED, *NO_BATCH)):
        yield case.name, lambda row=row, case=case: check_batch(program, case.net, row in FIXED_BATCH)
    for name, net in multiples():
        yield name, lambda net=net: check_batch(program, net, False)
    kept = whole.Kept.read()
    for name in NETS if whole.DATA.exists() else ():
        yield name, lambda name=name: check_batch(program, WholeNet(name, kept), False)


def multiples():
    """Nets with axes that are several batches long: a runtime that takes them for one reuses memory
    that is too small."""
    for kind, bottoms, parameters in (("Concat", ["a", "a"], {"concat_param": {"axis": 0}}),
                                      ("Tile", "a", {"tile_param": {"axis": 0, "tiles": 2}})):
        net = Net()
        net.input("data", Draw("multiples", 0).numbers([2, 4]))
        net.layer("ReLU", "data", "a")
        net.layer(kind, bottoms, "b", **parameters)
        net.layer("TanH", "b", "out")
        yield kind, net
    yield "heads", heads()


def heads():
    """Scores of two maps, one row a place, as detectors of text have them."""
    net = Net()
    net.input("data", Draw("multiples", 1).numbers([1, 2, 8, 8]))
    net.layer("Pooling", "data", "pool", pooling_param={"kernel_size": 2, "stride": 2})
    for map_name in ("data", "pool"):
        rows = net.layer("Permute", map_name, f"{map_name}_p", permute_param={"order": [0, 2, 3, 1]})
        rows = net.layer("Reshape", rows, f"{map_name}_r", reshape_param={"shape": {"dim": [-1, 2]}})
        rows = net.layer("Softmax", rows, f"{map_name}_s")
        rows = net.layer("Power", rows, f"{map_name}_q", power_param={"scale": 2, "shift": 1})
        net.layer("Slice", rows, [f"{map_name}_0", f"{map_name}_1"], slice_param={"axis": 1})
    net.layer("Concat", ["data_1", "pool_1"], "out", concat_param={"axis": 0})
    return net


class WholeNet:
    """One of the nets of whole.py, as a Net is."""

    def __init__(self, name, kept):
        self.text, self.model = (lambda: whole.text_of(name)), (lambda: kept.model(name))
        self.inputs = whole.input_arrays(name, kept.shapes(name))
        self.detections = ["detection_out"]


def check_batch(program, net, may_be_refused):
    """A net whose batch has a name, beside those whose batch is 1 and 3."""
    try:
        model = program.convert(net, "--batch", "n")
    except converting.Refused:
        if may_be_refused:
            return
        raise
    check_model(model)
    batch = next(iter(net.inputs.values())).shape[:1]
    for size in (1, 3):
        inputs = {name: of_size(array, size) if array.ndim and array.shape[:1] == batch else array
                  for name, array in net.inputs.items()}
        fixed = program.convert(net, "--batch", size)
        compare(run_model(model, inputs), run_model(fixed, inputs), net.detections)


def of_size(array, size):
    """As many items, each another."""
    items = [array[at % len(array)] * numpy.float32(1 - at / 8) for at in range(size)]
    return numpy.stack(items)


# --- preprocessing ------------------------------------------------------------------------------------


def preprocessing(program):
    draw = Draw("preprocessing", 0)
    pixels = draw.integers([2, 3, 4, 5], 256)
    image = draw.integers([3, 4, 5], 256)
    means = {"none": (None, numpy.float32(0)), "a number a channel": ("104,117,-0.5", row_of(104, 117, -0.5)),
             "an image": (image, image)}
    for what, scale, swap in itertools.product(means, (None, "0.017", "-2"), (False, True)):
        given, mean = means[what]
        wanted = ((pixels[:, ::-1] if swap else pixels) - mean) * numpy.float32(scale or 1)
        words = ([] if scale is None else ["--scale", scale]) + (["--swap-rb"] if swap else [])
        yield (f"mean: {what}; {' '.join(words)}",
               lambda given=given, words=words, wanted=wanted: check_pixels(program, pixels, given, words, wanted))


def row_of(*numbers):
    return numpy.float32(numbers).reshape(-1, 1, 1)


def check_pixels(program, pixels, mean, words, wanted):
    net = Net()
    net.input("data", pixels)
    net.layer("Power", "data", "out", power_param={"shift": 1})
    with converting.temporary_folder() as folder:
        if isinstance(mean, numpy.ndarray):
            (folder / "mean.binaryproto").write_bytes(blob_message(mean[None]))
            mean = folder / "mean.binaryproto"
        model = program.convert(net, *words, *(["--mean", mean] if mean else []))
    check_model(model)
    compare(run_model(model, {"data": pixels}), {"out": wanted + 1})


# --- weights in a file beside the other ----------------------------------------------------------------


def external(program):
    wide = Net()
    wide.input("data", Draw("external", 0).numbers([1, 3, 8, 8]))
    wide.layer("Convolution", "data", "out", [Draw("external", 1).numbers([64, 3, 3, 3]), numpy.ones(64, "f4")],
               convolution_param={"num_output": 64, "kernel_size": 3})
    yield "a convolution", lambda: check_external(program, wide, 1)
    yield "small weights alone", lambda: check_external(program, cases.Case("LSTM", 0).net, 0)


def check_external(program, net, outside):
    """The weights that others map stand in the other file, those that they read at once do not."""
    wanted = run_model(program.convert(net), net.inputs)
    with converting.temporary_folder() as folder:
        names = [folder / name for name in ("net.prototxt", "net.caffemodel", "net.onnx")]
        names[0].write_text(net.text())
        names[1].write_bytes(net.model())
        subprocess.run([program.folder / "examples/to_onnx", *names, "net.weights"], check=True)
        path = str(names[2])
        check_model(path)
        tensors = onnx.load(path, load_external_data=False).graph.initializer
        places = [{entry.key: entry.value for entry in tensor.external_data} for tensor in tensors]
        places = [place for place in places if place]
        if len(places) != outside or any(place["location"] != "net.weights" for place in places):
            raise Wrong(f"{outside} of the tensors should be in the other file: {places}")
        compare(run_model(path, net.inputs), wanted)


def huge_net(program):
    yield "by the command", lambda: check_huge(program)


def check_huge(program):
    with converting.temporary_folder() as folder:
        names = [folder / name for name in ("net.prototxt", "net.caffemodel", "net.onnx")]
        names[0].write_text(huge.TEXT)
        huge.write_model(names[1])
        subprocess.run([program.folder / "syncblob", "convert", *names[:2], "-o", names[2]], check=True)
        if not (folder / "net.onnx.data").exists():
            raise Wrong("there is no second file")
        check_model(str(names[2]))
        compare(run_model(str(names[2]), {"data": numpy.ones((1, huge.WIDTH), "f4")}), huge.outputs())


# --- other options -----------------------------------------------------------------------------------


def branches():
    """A net of three outputs, and a layer that nothing converts."""
    net = Net()
    net.input("data", numpy.float32([[1, -2, 3]]))
    net.layer("Power", "data", "a", power_param={"scale": 2})
    net.layer("Python", "a", "b", python_param={"module": "m", "layer": "L"})
    net.layer("ReLU", "a", "c")
    net.layer("Power", "c", "d", power_param={"shift": 1})
    return net


def outputs(program):
    values = {"a": [[2, -4, 6]], "c": [[2, 0, 6]], "d": [[3, 1, 7]]}
    for names in (("a",), ("c",), ("d",), ("a", "d"), ("d", "c")):
        wanted = {name: numpy.float32(values[name]) for name in names}
        yield ",".join(names), lambda wanted=wanted: check_named(program, wanted)


def check_named(program, wanted):
    net = branches()
    model = program.convert(net, "--outputs", ",".join(wanted))
    check_model(model)
    found = run_model(model, net.inputs)
    if list(found) != list(wanted):
        raise Wrong(f"outputs {list(found)}, not {list(wanted)}")
    compare(found, wanted)


def input_shapes(program):
    """A net that does not say what goes in has it from the command."""
    for shape in ([1, 3, 4, 5], [2, 3, 6, 6]):
        net = Net()
        net.inputs["data"] = Draw("input", 0).numbers(shape)
        net.head = {"input": "data"}
        net.layer("Power", "data", "out", power_param={"shift": 1})
        sizes = "x".join(map(str, shape))
        yield sizes, lambda net=net, sizes=sizes: compare(
            run_model(program.convert(net, "--input", f"data={sizes}"), net.inputs),
            {"out": net.inputs["data"] + 1})


def spellings(program):
    """Old words for the same, by the graphs that they make."""
    for index in range(OF_EACH_ROW):
        net, old = cases.Case("DetectionOutput", index).net, cases.Case("DetectionOutput", index).net
        parameters = old.messages[-1]["detection_output_param"]
        parameters.update(parameters.pop("nms_param"))
        if len(parameters) == len(net.messages[-1]["detection_output_param"]) - 1:
            continue  # an empty nms_param: nothing says that there is one
        yield f"nms_param left out, {index}", lambda net=net, old=old: check_same(program, net, old)
    net, old = cases.Case("Normalize", 0).net, cases.Case("Normalize", 0).net
    layer = old.messages[-1]
    layer["type"], layer["normalize_bbox_param"] = "NormalizeBBox", layer.pop("norm_param", {})
    yield "NormalizeBBox", lambda: check_same(program, net, old)


def check_same(program, net, old):
    graphs = [onnx.load_from_string(program.convert(each)).graph for each in (net, old)]
    if graphs[0] != graphs[1]:
        raise Wrong("the graphs differ")


def refused(program):
    for what, net, options, words in refusals.rows():
        yield what, lambda net=net, options=options, words=words: check_refused(program, net, options, words)


def check_refused(program, net, options, words):
    try:
        program.convert(net, *options)
    except converting.Refused as error:
        missing = [word for word in words if word not in str(error)]
        if missing:
            raise Wrong(f"'{error}' does not speak of {missing}") from error
        return
    raise Wrong("it was converted")


ROWS = {"fp16": halves, "batch": batches, "preprocessing": preprocessing, "outputs": outputs,
        "input": input_shapes, "external": external, "spellings": spellings, "refused": refused}
FULL = {"huge": huge_net}  # what takes gigabytes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("rows", nargs="*", metavar="ROW", choices=[[], *ROWS, *FULL])
    arguments = parser.parse_args()
    program = Program(arguments.folder.resolve())
    passed = failed = 0
    for row in arguments.rows or ROWS:
        for name, check in {**ROWS, **FULL}[row](program):
            try:
                check()
                passed += 1
            except (Wrong, converting.Refused) as error:
                failed += 1
                print(f"FAILED {row}: {name}: {error}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
