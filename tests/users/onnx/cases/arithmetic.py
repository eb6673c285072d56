"""Layers that combine blobs, or a blob and weights, value by value; and reductions."""

import functools
import math

from .activation import any_shape, axis_of, some


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


TABLE = {
    "Scale": (60, functools.partial(scale_or_bias, kind="Scale")),
    "Bias": (40, functools.partial(scale_or_bias, kind="Bias")),
    "Eltwise": (60, eltwise),
    "Reduction": (40, reduction),
    "ArgMax": (40, arg_max),
}
