"""Layers that compute values from the values of blobs, with or without weights."""

import functools
import math

import numpy


def in_place_or_not(draw, net, kind, values, top, **parameters):
    net.input("data", values)
    way = draw.choice(("plain", "plain", "in place", "above"))
    if way == "plain":
        net.layer(kind, "data", top, **parameters)
        return
    net.layer("Power", "data", "middle")
    net.layer(kind, "middle", "middle" if way == "in place" else top, **parameters)


def any_shape(draw, least_axes=1, most_axes=5):
    return draw.shape(draw.between(least_axes, most_axes), 6)


def axis_of(draw, axis, axes, default=1, percent=30, old=None):
    """`old` is an older field, in which an axis must not be negative."""
    if axis == default and not draw.chance(percent):
        return {}
    if old and draw.chance(30):
        return {old: axis}
    return {"axis": draw.choice((axis, axis - axes))}


def some(draw, **options):
    return {name: draw.choice(values) for name, values in options.items() if draw.chance(70)}


def function(kind, deviation=1.0, **options):
    def draw_case(draw, net):
        parameters = some(draw, **options)
        in_place_or_not(draw, net, kind, draw.numbers(any_shape(draw), deviation), kind.lower(),
                        **{f"{kind.lower()}_param": parameters})
    return draw_case


def prelu(draw, net):
    shape = any_shape(draw, 2, 4)
    shared = draw.chance(40)
    slopes = draw.numbers([] if shared else [shape[1]], 0.5)
    net.layer("Power", draw.numbers(shape), "middle")
    net.layer("PReLU", "middle", draw.choice(("prelu", "middle")), [slopes],
              prelu_param={"channel_shared": True} if shared else {})


def elu(draw, net):
    in_place_or_not(draw, net, "ELU", draw.numbers(any_shape(draw)), "elu",
                    elu_param=some(draw, alpha=(0.5, 1.7, 0, -0.3)))


def absval(draw, net):
    """Caffe does not run AbsVal in place."""
    net.layer("AbsVal", draw.numbers(any_shape(draw)), "absval")


def power(draw, net):
    parameters = some(draw, power=(1, 2, 3, 0, 0.5, -1, -0.75, 1.5), scale=(1, 0.5, -2, 0, 3),
                      shift=(0, 1, -0.5, 2.5))
    values = draw.numbers(any_shape(draw))
    if parameters.get("power", 1) not in (0, 1, 2, 3):  # a fractional or negative power requires a positive base
        parameters["scale"] = abs(parameters.get("scale", 1))
        parameters["shift"] = abs(parameters.get("shift", 0))
        if not parameters["scale"]:
            parameters["shift"] += 1
        values = abs(values) + 0.25
    in_place_or_not(draw, net, "Power", values, "power", power_param=parameters)


def log(draw, net):
    parameters = some(draw, base=(2, 10, 0.5, -1), scale=(0.5, 3), shift=(1, 0.25))
    in_place_or_not(draw, net, "Log", draw.uniform(any_shape(draw), 0.25, 8), "log",
                    log_param=parameters)


def scale_or_bias(draw, net, kind):
    shape = draw.shape(draw.between(2, 4), 6)
    axes = len(shape)
    axis = 1 if draw.chance(50) else draw.below(axes)
    parameters = axis_of(draw, axis, axes)
    covered = draw.choice((1, 1, 1, 0, axes - axis, draw.between(1, axes - axis)))
    part = shape[axis:axis + covered]
    net.input("data", draw.numbers(shape))
    bottoms, blobs = ["data"], []
    if draw.chance(40):
        bottoms.append(net.input("other", draw.numbers(part)))
    else:
        blobs.append(draw.numbers(part))
        if covered != 1 or draw.chance(20):
            parameters["num_axes"] = -1 if covered == axes - axis and draw.chance(50) else covered
    if kind == "Scale" and draw.chance(50):
        parameters["bias_term"] = True
        blobs.append(draw.numbers(part))
    top = kind.lower()
    if draw.chance(40):
        bottoms[0] = net.layer("Power", "data", "middle")
        top = draw.choice((top, "middle"))
    net.layer(kind, bottoms, top, blobs, **{f"{kind.lower()}_param": parameters})


def eltwise(draw, net):
    shape = any_shape(draw)
    names = [net.input(f"data{i}", draw.numbers(shape)) for i in range(draw.between(2, 4))]
    if draw.chance(15):
        names.append(names[0])
    parameters = some(draw, operation=("PROD", "SUM", "SUM", "MAX"))
    if parameters.get("operation", "SUM") == "SUM" and draw.chance(60):
        parameters["coeff"] = [draw.choice((1, -1, 0.5, 2, 0)) for _ in names]
    net.layer("Eltwise", names, "together", eltwise_param=parameters)


def reduction(draw, net):
    shape = draw.shape(draw.between(1, 4))
    axis = draw.below(len(shape))
    parameters = some(draw, operation=("SUM", "ASUM", "SUMSQ", "MEAN"), coeff=(0.5, -2, 1))
    parameters.update(axis_of(draw, axis, len(shape), default=0))
    # The values are not centred at 0, because positive and negative values would cancel in sums.
    values = draw.uniform(shape, -0.5, 1.5) / math.sqrt(math.prod(shape[axis:]))
    net.layer("Reduction", values, "reduced", reduction_param=parameters)


def arg_max(draw, net):
    shape = draw.shape(draw.between(2, 4), 6)
    parameters = some(draw, out_max_val=(True, False))
    most = math.prod(shape[1:])
    if draw.chance(60):
        axis = draw.below(len(shape))
        parameters["axis"] = draw.choice((axis, axis - len(shape)))
        most = shape[axis]
    if draw.chance(60):
        parameters["top_k"] = draw.between(1, most)
    net.layer("ArgMax", draw.numbers(shape), "best", argmax_param=parameters)


def softmax_axis(draw, shape):
    if draw.chance(50):
        return {}
    axis = draw.below(len(shape))
    return {"softmax_param": {"axis": draw.choice((axis, axis - len(shape)))}}


def softmax(draw, net):
    shape = any_shape(draw, 2)
    in_place_or_not(draw, net, "Softmax", draw.numbers(shape, 2.0), "prob", **softmax_axis(draw, shape))


def lrn_across(draw, net):
    parameters = some(draw, local_size=(1, 3, 5, 7), alpha=(0.0001, 0.5, 1, 2), beta=(0.75, 0.5, 1.25),
                      k=(1, 2, 0.5))
    net.input("data", draw.numbers([draw.between(1, 2), draw.between(1, 9), *draw.shape(2, 4)]))
    if draw.chance(20):
        parameters["norm_region"] = "ACROSS_CHANNELS"
    net.layer("LRN", "data", "norm", lrn_param=parameters)


def lrn_within(draw, net):
    """Caffe ignores the k of an LRN within channels."""
    parameters = some(draw, local_size=(1, 3, 5), alpha=(0.0001, 0.5, 1, 2), beta=(0.75, 0.5, 1.25),
                      k=(1, 2))
    net.layer("LRN", draw.numbers([draw.between(1, 2), draw.between(1, 3), *draw.shape(2, 6)]), "norm",
              lrn_param={"norm_region": "WITHIN_CHANNEL", **parameters})


def batch_norm_of(draw, net, parameters, factor):
    shape = any_shape(draw, 2)
    channels = [shape[1]]
    scale = numpy.float32(factor or 1)
    mean, variance = scale * draw.numbers(channels, 0.5), scale * draw.uniform(channels, 0.5, 2)
    net.layer("Power", draw.numbers(shape), "middle")
    net.layer("BatchNorm", "middle", draw.choice(("norm", "middle")),
              [mean, variance, numpy.float32([factor])],
              batch_norm_param=parameters)


def batch_norm(draw, net):
    parameters = some(draw, eps=(1e-05, 0.001, 2e-05), use_global_stats=(True,))
    batch_norm_of(draw, net, parameters, draw.choice((1, 1, 1, 0.5, 999.982, 0)))


def batch_norm_of_batch(draw, net):
    """The layer uses the batch's mean and variance also in phase TEST."""
    batch_norm_of(draw, net, {"use_global_stats": False, **some(draw, eps=(0.001, 0.01))}, 1)


def normalize(draw, net):
    channels = draw.between(1, 6)
    shared = draw.chance(50)
    parameters = some(draw, across_spatial=(True, False, False), eps=(1e-10, 0.001))
    if not shared or draw.chance(50):
        parameters["channel_shared"] = shared
    parameters = {**parameters, **some(draw, scale_filler=({"type": "constant", "value": 20},))}
    net.layer("Normalize", draw.numbers([draw.between(1, 3), channels, *draw.shape(2)]), "norm",
              [draw.uniform([] if shared else [channels], 0.5, 4)], norm_param=parameters)


def mvn(draw, net):
    parameters = some(draw, normalize_variance=(True, False), across_channels=(True, False),
                      eps=(1e-09, 0.001))
    sizes = [draw.between(1, 3), draw.between(1, 3), draw.between(2, 5), draw.between(2, 5)]
    net.layer("MVN", draw.numbers(sizes), "norm", mvn_param=parameters)


TABLE = {
    "ReLU": (40, function("ReLU", negative_slope=(0.1, 0.25, 0, 1.5, -0.5))),
    "PReLU": (40, prelu),
    "ELU": (40, elu),
    "Sigmoid": (40, function("Sigmoid", 2.0)),
    "TanH": (40, function("TanH", 1.5)),
    "AbsVal": (40, absval),
    "BNLL": (40, function("BNLL", 3.0)),
    "Power": (60, power),
    "Exp": (40, function("Exp", base=(2, 10, 0.5, -1), scale=(0.5, -1, 0), shift=(1, -0.5))),
    "Log": (40, log),
    "Threshold": (40, function("Threshold", threshold=(0.5, -0.5, 0, 1))),
    "Dropout": (40, function("Dropout", dropout_ratio=(0.2, 0.5, 0.9))),
    "Scale": (60, functools.partial(scale_or_bias, kind="Scale")),
    "Bias": (40, functools.partial(scale_or_bias, kind="Bias")),
    "Eltwise": (60, eltwise),
    "Reduction": (40, reduction),
    "ArgMax": (40, arg_max),
    "Softmax": (40, softmax),
    "LRN": (40, lrn_across),
    "LRNWithinChannel": (40, lrn_within),
    "BatchNorm": (60, batch_norm),
    "BatchNormOfBatch": (10, batch_norm_of_batch),
    "Normalize": (60, normalize),
    "MVN": (40, mvn),
}
