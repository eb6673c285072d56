"""Layers that move values, and connections of layers. Inputs are 1, 2, 3..., so that each value shows its origin."""

import math

from nets import counted

from .values import axis_of


def reshape(draw, net):
    shape = draw.shape(draw.between(1, 4))
    axes = len(shape)
    parameters = {}
    begin, end = 0, axes
    if draw.chance(40):
        begin = draw.between(0, axes)
        parameters["axis"] = draw.choice((begin, begin - axes - 1))
        if draw.chance(60):
            end = draw.between(begin, axes)
            parameters["num_axes"] = end - begin
    dims = new_dims(draw, shape[begin:end])
    parameters = {"shape": {"dim": dims}, **parameters}
    net.layer("Reshape", counted(shape), "reshaped", reshape_param=parameters)


def new_dims(draw, old):
    """The new sizes have the same product as the old sizes. 0 stands for an unchanged size, -1 for an inferred size."""
    left, dims = math.prod(old), []
    while left > 1 and len(dims) < 3:
        divisor = draw.choice([n for n in range(1, left + 1) if left % n == 0])
        dims.append(divisor)
        left //= divisor
    dims.append(left)
    zeros = [i for i, size in enumerate(dims) if i < len(old) and old[i] == size]
    dims = [0 if i in zeros and draw.chance(50) else size for i, size in enumerate(dims)]
    if draw.chance(60):
        dims[draw.below(len(dims))] = -1
    return dims


def flatten(draw, net):
    shape = draw.shape(draw.between(2, 5), 4)
    axes = len(shape)
    parameters = {}
    begin = 1
    if draw.chance(60):
        begin = draw.below(axes)
        parameters["axis"] = draw.choice((begin, begin - axes))
    if draw.chance(60):
        end = draw.between(begin, axes - 1)
        parameters["end_axis"] = draw.choice((end, end - axes))
    net.layer("Flatten", counted(shape), "flat", flatten_param=parameters)


def permute(draw, net):
    axes = draw.between(2, 5)
    order = draw.sample(range(axes))
    if draw.chance(40):  # axes that are not listed follow in order
        order = order[:draw.between(1, axes)]
    net.layer("Permute", counted(draw.shape(axes, 4)), "permuted", permute_param={"order": order})


def slice_layer(draw, net):
    shape = draw.shape(draw.between(2, 4), 6)
    axes = len(shape)
    axis = 1 if draw.chance(50) else draw.below(axes)
    tops = draw.between(1, 4)
    parameters = axis_of(draw, axis, axes, old="slice_dim")
    if draw.chance(50):
        shape[axis] = tops * draw.between(1, 3)
    else:
        shape[axis] = max(shape[axis], tops)
        parameters["slice_point"] = sorted(draw.sample(range(1, shape[axis]))[:tops - 1])
    net.layer("Slice", counted(shape), [f"part{i}" for i in range(tops)], slice_param=parameters)


def concat(draw, net):
    shape = draw.shape(draw.between(2, 4), 4)
    axes = len(shape)
    axis = 1 if draw.chance(50) else draw.below(axes)
    parameters = axis_of(draw, axis, axes, old="concat_dim")
    names, begin = [], 0
    for number in range(draw.between(1, 4)):
        shape[axis] = draw.between(1, 4)
        names.append(net.input(f"part{number}", counted(shape) + begin))
        begin += math.prod(shape)
    if draw.chance(20):
        names.append(names[0])
    net.layer("Concat", names, "whole", concat_param=parameters)


def crop(draw, net):
    shape = draw.shape(4, 6)
    axis = draw.choice((2, 2, 0, 1, 3))
    offsets = [draw.below(size) for size in shape[axis:]]
    parameters = axis_of(draw, axis, 4, default=2)
    way = draw.choice(("none", "one", "all"))
    if way == "none":
        offsets = [0] * len(offsets)
    elif way == "one":
        offsets = [min(offsets)] * len(offsets)
        parameters["offset"] = offsets[0]
    else:
        parameters["offset"] = offsets
    reference = draw.shape(axis) + [draw.between(1, size - offset)
                                    for size, offset in zip(shape[axis:], offsets)]
    net.input("data", counted(shape))
    net.input("reference", counted(reference))
    net.layer("Crop", ["data", "reference"], "cropped", crop_param=parameters)


def tile(draw, net):
    shape = draw.shape(draw.between(2, 4), 4)
    axis = draw.below(len(shape))
    parameters = {"tiles": draw.between(1, 4), **axis_of(draw, axis, len(shape))}
    net.layer("Tile", counted(shape), "tiled", tile_param=parameters)


def split(draw, net):
    net.layer("Split", counted(draw.shape(draw.between(1, 4))), [f"copy{i}" for i in range(draw.between(1, 4))])


def batch_reindex(draw, net):
    shape = draw.shape(draw.between(1, 4))
    net.input("data", counted(shape))
    net.input("index", draw.integers([draw.between(1, 6)], shape[0]))
    net.layer("BatchReindex", ["data", "index"], "reindexed")


def input_layer(draw, net):
    shape = draw.shape(4)
    way = draw.choice(("input_dim", "input_shape", "layer", "two tops", "parameter twice"))
    net.inputs["data"] = draw.numbers(shape)
    if way == "input_dim":
        net.head = {"input": "data", "input_dim": shape}
    elif way == "input_shape":
        net.head = {"input": "data", "input_shape": {"dim": shape}}
    elif way == "layer":
        net.messages.append({"name": "in", "type": "Input", "top": "data",
                             "input_param": {"shape": {"dim": shape}}})
    else:
        net.inputs["other"] = draw.numbers(shape)
        shapes = [{"dim": shape}] * (2 if way == "parameter twice" else 1)
        net.messages.append({"name": "in", "type": "Input", "top": ["data", "other"],
                             "input_param": {"shape": shapes}})
        net.layer("Power", "other", "other_out", power_param={"scale": 3})
    net.layer("Power", "data", "out", power_param={"shift": 1})


def in_place_on_input(draw, net):
    """In ONNX the output of an in-place layer cannot have the input's name."""
    net.names_differ = True
    net.layer("ReLU", draw.numbers(draw.shape(4)), "data")
    if draw.chance(50):
        net.layer("Power", "data", "data", power_param={"scale": 2})


def chain_in_place(draw, net):
    net.layer("Power", draw.numbers(draw.shape(4)), "x", power_param={"scale": 2})
    for kind in draw.sample(("ReLU", "TanH", "Sigmoid", "Dropout"))[:draw.between(1, 4)]:
        net.layer(kind, "x", "x")
    for number in range(draw.between(0, 2)):
        net.layer("Power", "x", f"y{number}", power_param={"shift": number + 1})


def shared(draw, net):
    net.layer("Power", draw.numbers(draw.shape(4)), "x")
    net.layer("TanH", "x", "a")
    net.layer("Eltwise", ["x", "a"], "b", eltwise_param={"operation": draw.choice(("SUM", "PROD", "MAX"))})
    if draw.chance(50):
        net.layer("Silence", ["data", "x"], [])
    if draw.chance(50):
        net.layer("Eltwise", ["b", "b"], "c")


def phases(draw, net):
    net.layer("Power", counted(draw.shape(3)), "x", name="for_train", include={"phase": "TRAIN"},
              power_param={"scale": 7})
    rule = draw.choice(({"include": {"phase": "TEST"}}, {"exclude": {"phase": "TRAIN"}}))
    net.layer("Power", "data", "x", name="for_test", **rule, power_param={"scale": 2})
    net.layer("Power", "x", "y", power_param={"shift": 1})


def parameter(draw, net):
    shape = draw.shape(draw.between(1, 4))
    net.input("data", draw.numbers(shape))
    net.layer("Parameter", [], "weight", [draw.numbers(shape)], parameter_param={"shape": {"dim": shape}})
    net.layer("Eltwise", ["data", "weight"], "out")


TABLE = {
    "Reshape": (60, reshape),
    "Flatten": (40, flatten),
    "Permute": (40, permute),
    "Slice": (40, slice_layer),
    "Concat": (40, concat),
    "Crop": (40, crop),
    "Tile": (40, tile),
    "Split": (10, split),
    "BatchReindex": (40, batch_reindex),
    "Input": (40, input_layer),
    "InPlaceOnInput": (10, in_place_on_input),
    "InPlace": (40, chain_in_place),
    "SharedBlob": (40, shared),
    "Phases": (10, phases),
    "Parameter": (40, parameter),
}
