#!/usr/bin/env python3
"""Tests the options of "syncblob convert" that apply to ONNX.

    options.py SYNCBLOB [ROW...]

SYNCBLOB is the command. The row "huge" takes gigabytes, and runs only if an argument names the row.
"""

import itertools
import pathlib
import subprocess
import sys

import numpy
import onnx

import cases
import nets
import whole
from check import MAY_BE_REFUSED
from comparing import LAYER_TOLERANCE, Wanted
from nets import Draw
from running import FILES, Refused, Wrong, by_command, check_model, check_outputs, run_model, temporary_folder

OF_EACH_ROW = 4
HALVES = 1e-2         # tolerance of a net that computes in halves, relative to the largest value
# The outputs of these rows are decisions, which may differ if the net computes in halves.
DECISIONS = ("ArgMax", "DetectionOutput", "DetectionOutputInverted", "Threshold", "PoolingMask")
FULL_PRECISION = ("Embed", "Normalize", "NormalizeBBox")  # rows whose weights --fp16 keeps as floats
# NO_BATCH: the inputs do not begin with a batch axis. FIXED_BATCH: the net's shapes fix the batch size.
NO_BATCH = ("BatchReindex", "DetectionOutput", "DetectionOutputInverted", "PSROIPooling", "ROIPooling")
FIXED_BATCH = ("LSTM", "RNN", "Reshape", "Scale", "Bias", "ArgMax", "Parameter")
NETS = ("caffe__examples_cifar10_cifar10_quick", "mobilenet-ssd__deploy", "mtcnn_kpzhang93_det1, trained",
        "mtcnn_kpzhang93_det2, trained", "mtcnn_kpzhang93_det3, trained", "squeezenet__SqueezeNet_v1.1_deploy")
WIDTH = 22820  # a layer with WIDTH² weights is too large for an ONNX file
STEP = 997     # every STEP-th row has one nonzero weight, on the diagonal


def convert(program, net, *options):
    return by_command(f"{program} convert {FILES} {' '.join(map(str, options))}")(net.text(), net.model())


def cases_of_layers(left_out):
    for row in cases.TABLES:
        if row not in left_out:
            yield from ((row, case) for case in cases.answered(row, OF_EACH_ROW))


def compare(found, wanted, net, tolerance=LAYER_TOLERANCE):
    net.wanted = {name: Wanted(array.shape, array, tolerance, name in net.detections)
                  for name, array in wanted.items()}
    check_outputs(net, found)


def halves(program):
    for row, case in cases_of_layers((*MAY_BE_REFUSED, *DECISIONS)):
        yield case.name, lambda row=row, case=case: check_halves(program, row, case)


def check_halves(program, row, case):
    model = convert(program, case, "--fp16")
    check_model(model)
    kinds = {tensor.data_type for tensor in onnx.load_from_string(model).graph.initializer}
    if case.net.weights and row not in FULL_PRECISION and onnx.TensorProto.FLOAT16 not in kinds:
        raise Wrong("no weights are halves")
    for output in case.wanted.values():
        output.tolerance = HALVES
    check_outputs(case, run_model(model, case.inputs))


def batches(program):
    for row, case in cases_of_layers((*MAY_BE_REFUSED, *NO_BATCH)):
        yield case.name, lambda row=row, case=case: check_batch(program, case, row in FIXED_BATCH)
    for name, net in multiples():
        yield name, lambda net=net: check_batch(program, net, False)
    kept = whole.Kept.read()
    for name in NETS if whole.DATA.exists() else ():
        yield name, lambda name=name: check_batch(program, whole.WholeNet(name, kept), False)


def multiples():
    """If an axis is a multiple of the batch size, a runtime could mistake the axis for the batch."""
    for kind, bottoms, parameters in (("Concat", ["a", "a"], {"concat_param": {"axis": 0}}),
                                      ("Tile", "a", {"tile_param": {"axis": 0, "tiles": 2}})):
        net = nets.Net()
        net.layer("ReLU", Draw("multiples", 0).numbers([2, 4]), "a")
        net.layer(kind, bottoms, "b", **parameters)
        net.layer("TanH", "b", "out")
        yield kind, net
    yield "heads", heads()


def heads():
    net = nets.Net()
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


def check_batch(program, net, may_be_refused):
    try:
        model = convert(program, net, "--batch", "n")
    except Refused:
        if may_be_refused:
            return
        raise
    check_model(model)
    batch = next(iter(net.inputs.values())).shape[:1]
    for size in (1, 3):
        inputs = {name: of_size(array, size) if array.ndim and array.shape[:1] == batch else array
                  for name, array in net.inputs.items()}
        compare(run_model(model, inputs), run_model(convert(program, net, "--batch", size), inputs), net)


def of_size(array, size):
    items = [array[at % len(array)] * numpy.float32(1 - at / 8) for at in range(size)]
    return numpy.stack(items)


def preprocessing(program):
    draw = Draw("preprocessing", 0)
    pixels, image = draw.integers([2, 3, 4, 5], 256), draw.integers([3, 4, 5], 256)
    channels = numpy.float32([104, 117, -0.5]).reshape(-1, 1, 1)
    for mean, scale, swap in itertools.product((0, channels, image), (None, "0.017", "-2"), (False, True)):
        wanted = ((pixels[:, ::-1] if swap else pixels) - mean) * numpy.float32(scale or 1)
        words = ([] if scale is None else ["--scale", scale]) + (["--swap-rb"] if swap else [])
        yield (f"a mean of {numpy.shape(mean)}; {' '.join(words)}",
               lambda mean=mean, words=words, wanted=wanted: check_pixels(program, pixels, mean, words, wanted))


def check_pixels(program, pixels, mean, words, wanted):
    net = nets.Net()
    net.layer("Power", pixels, "out", power_param={"shift": 1})
    with temporary_folder() as folder:
        if numpy.size(mean) == 3:
            words = [*words, "--mean", ",".join(map(str, mean.reshape(-1)))]
        elif numpy.size(mean) > 3:
            (folder / "mean.binaryproto").write_bytes(nets.blob_message(mean[None]))
            words = [*words, "--mean", folder / "mean.binaryproto"]
        model = convert(program, net, *words)
    check_model(model)
    compare(run_model(model, {"data": pixels}), {"out": wanted + 1}, net)


def huge(program):
    yield "2 GiB", lambda: check_huge(program)


def check_huge(program):
    net = nets.Net()
    net.layer("InnerProduct", numpy.ones((1, WIDTH), "f4"), "out", name="fc",
              inner_product_param={"num_output": WIDTH, "bias_term": False})
    with temporary_folder() as folder:
        names = [folder / name for name in ("net.prototxt", "net.caffemodel", "net.onnx")]
        names[0].write_text(net.text())
        write_huge(names[1])
        subprocess.run([program, "convert", *names[:2], "-o", names[2]], check=True)
        if not (folder / "net.onnx.data").exists():
            raise Wrong("there is no second file")
        check_model(str(names[2]))
        wanted = numpy.zeros((1, WIDTH), "f4")
        wanted[0, ::STEP] = numpy.arange(0, WIDTH, STEP) + 1
        compare(run_model(str(names[2]), net.inputs), {"out": wanted}, net)


def write_huge(path):
    """Writes the weight ROW + 1 on the diagonal of each STEP-th row. The file is sparse."""
    def key(number, size):
        return nets.varint(number << 3 | 2) + nets.varint(size)
    size = 4 * WIDTH * WIDTH
    data, dims = key(5, size), nets.field(7, nets.field(1, 2 * nets.varint(WIDTH)))
    blob = key(7, len(data) + size + len(dims)) + data
    names = nets.field(1, b"fc") + nets.field(2, b"InnerProduct")
    layer = key(100, len(names) + len(blob) + size + len(dims)) + names + blob
    with path.open("wb") as file:
        file.write(layer)
        for row in range(0, WIDTH, STEP):
            file.seek(len(layer) + 4 * row * (WIDTH + 1))
            file.write(numpy.float32(row + 1).tobytes())
        file.seek(len(layer) + size)
        file.write(dims)


ROWS = {"fp16": halves, "batch": batches, "preprocessing": preprocessing, "huge": huge}


def main():
    program, *rows = sys.argv[1:]
    passed = failed = 0
    for row in rows or list(ROWS)[:-1]:
        for name, check in ROWS[row](pathlib.Path(program).resolve()):
            try:
                check()
                passed += 1
            except (Wrong, Refused) as error:
                failed += 1
                print(f"FAILED {row}: {name}: {error}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
