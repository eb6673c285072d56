"""Layers that sum or pool over windows, or over whole blobs."""

import functools
import math

from .values import axis_of


def window(draw, axes, largest_kernel=4, dilations=(1, 1, 1, 2, 3)):
    return [(draw.between(1, largest_kernel), draw.choice((0, 0, 1, 2, 3)), draw.choice((1, 1, 2, 3)),
             draw.choice(dilations)) for _ in range(axes)]


def extent(kernel, dilation):
    return dilation * (kernel - 1) + 1


def spell(draw, axes, windows, fields):
    parameters = {}
    for number, (word, long_word, default) in enumerate(fields):
        values = [each[number] for each in windows]
        ways = ["list"]
        if len(set(values)) == 1:
            ways += ["one", "one"]
            if default == values[0]:
                ways += ["none", "none"]
        if axes == 2 and word != "dilation":
            ways += ["long", "long"]
        way = draw.choice(ways)
        if way == "long":
            parameters[f"{long_word}_h"], parameters[f"{long_word}_w"] = values
        elif way != "none":
            parameters[word] = values if way == "list" else values[0]
    return parameters


FIELDS = (("kernel_size", "kernel", None), ("pad", "pad", 0), ("stride", "stride", 1),
          ("dilation", None, 1))


def channels(draw):
    group = draw.choice((1, 1, 1, 2, 3, 4))
    if group > 1 and draw.chance(40):
        return group, 1, draw.between(1, 2)  # depthwise convolution: one input channel for each group
    return group, draw.between(1, 4), draw.between(1, 4)


def add_bias(draw, parameters, blobs, percent=30):
    if draw.chance(percent):
        parameters["bias_term"] = False
    else:
        blobs.append(draw.numbers([parameters["num_output"]]))


def convolution_of(draw, net, axes, bottoms=1):
    group, before, after = channels(draw)
    windows = window(draw, axes, 4 if axes < 3 else 3)
    sizes = [max(1, extent(kernel, dilation) - 2 * pad) + draw.between(0, 6)
             for kernel, pad, _, dilation in windows]
    parameters = {"num_output": group * after, **spell(draw, axes, windows, FIELDS)}
    if group > 1:
        parameters["group"] = group
    weight = [group * after, before, *(kernel for kernel, *_ in windows)]
    blobs = [draw.numbers(weight, 1 / math.sqrt(math.prod(weight[1:])))]
    add_bias(draw, parameters, blobs)
    shape = [draw.between(1, 3), group * before, *sizes]
    names = [net.input(f"data{i}", draw.numbers(shape)) for i in range(bottoms)]
    net.layer("Convolution", names, [f"conv{i}" for i in range(bottoms)], blobs,
              convolution_param=parameters)


def convolution(draw, net):
    convolution_of(draw, net, 2, draw.choice((1,) * 15 + (2,)))


def convolution_axis(draw, net):
    """All axes before the channel axis are batch axes."""
    batch, (height, width) = draw.shape(2, 3), draw.shape(2, 6)
    before, after = draw.between(1, 3), draw.between(1, 3)
    net.layer("Convolution", draw.numbers([*batch, before, height, width]), "conv",
              [draw.numbers([after, before, 1, 1]), draw.numbers([after])],
              convolution_param={"num_output": after, "kernel_size": 1, "axis": draw.choice((2, -3))})


def shared_convolution(draw, net):
    """Both layers use the first layer's weights, because the weights have the same names."""
    shape = [draw.between(1, 2), 2, 5, 5]
    weight, bias = draw.numbers([2, 2, 3, 3], 0.25), draw.numbers([2])
    for side in ("left", "right"):
        net.input(side, draw.numbers(shape))
    for side in ("left", "right"):
        net.layer("Convolution", side, f"{side}_conv", [weight, bias] if side == "left" else (),
                  param=[{"name": "w"}, {"name": "b"}],
                  convolution_param={"num_output": 2, "kernel_size": 3})


def deconvolution(draw, net):
    group, before, after = channels(draw)
    windows = window(draw, 2)
    sizes = [draw.between(1, 5) for _ in windows]
    for number, (kernel, pad, stride, dilation) in enumerate(windows):
        while stride * (sizes[number] - 1) + extent(kernel, dilation) - 2 * pad < 1:
            sizes[number] += 1
    parameters = {"num_output": group * after, **spell(draw, 2, windows, FIELDS)}
    if group > 1:
        parameters["group"] = group
    weight = [group * before, after, *(kernel for kernel, *_ in windows)]
    strides = math.prod(stride for *_, stride, _ in windows)
    blobs = [draw.numbers(weight, 1 / math.sqrt(max(1, before * math.prod(weight[2:]) / strides)))]
    add_bias(draw, parameters, blobs)
    net.layer("Deconvolution", draw.numbers([draw.between(1, 3), group * before, *sizes]), "deconv", blobs,
              convolution_param=parameters)


def inner_product(draw, net):
    shape = draw.shape(draw.between(2, 4), 7)
    axis = draw.choice((1, 1, 1, *range(1, len(shape))))
    inner, outputs = math.prod(shape[axis:]), draw.between(1, 12)
    parameters = {"num_output": outputs, **axis_of(draw, axis, len(shape), percent=20)}
    weight = [outputs, inner]
    if draw.chance(30):
        parameters["transpose"] = True
        weight.reverse()
    blobs = [draw.numbers(weight, 1 / math.sqrt(inner))]
    add_bias(draw, parameters, blobs)
    net.layer("InnerProduct", draw.numbers(shape), "ip", blobs, inner_product_param=parameters)


def embed(draw, net):
    words, outputs = draw.between(2, 9), draw.between(1, 6)
    parameters = {"num_output": outputs, "input_dim": words}
    blobs = [draw.numbers([words, outputs])]
    add_bias(draw, parameters, blobs, 40)
    net.layer("Embed", draw.integers(draw.shape(draw.between(1, 3)), words), "embed", blobs, embed_param=parameters)


def im2col(draw, net):
    windows = window(draw, 2)
    sizes = [max(1, extent(kernel, dilation) - 2 * pad) + draw.between(0, 3)
             for kernel, pad, _, dilation in windows]
    net.layer("Im2col", draw.numbers([draw.between(1, 2), draw.between(1, 2), *sizes]), "columns",
              convolution_param=spell(draw, 2, windows, FIELDS))


def recurrent(draw, net, kind, weights_of):
    """The input "cont" marks where each sequence begins."""
    steps, outputs = draw.between(1, 5), draw.between(1, 4)
    shape = [steps, draw.between(1, 3), draw.between(1, 4)]
    net.input("data", draw.numbers(shape))
    begins = draw.integers(shape[:2], 4) != 0
    begins[0] &= draw.chance(50)
    net.input("cont", begins)
    bottoms, static = ["data", "cont"], 0
    if draw.chance(30):
        static = draw.between(1, 4)
        bottoms.append(net.input("static", draw.numbers([shape[1], static])))
    net.layer(kind, bottoms, "out", weights_of(draw, shape[2], outputs, static),
              recurrent_param={"num_output": outputs})


def matrix(draw, rows, columns):
    return draw.numbers([rows, columns], columns ** -0.5)


def lstm_weights(draw, inputs, outputs, static):
    gates = 4 * outputs
    return [matrix(draw, gates, inputs), draw.numbers([gates]),
            *([matrix(draw, gates, static)] if static else []), matrix(draw, gates, outputs)]


def rnn_weights(draw, inputs, outputs, static):
    return [matrix(draw, outputs, inputs), draw.numbers([outputs]),
            *([matrix(draw, outputs, static)] if static else []), matrix(draw, outputs, outputs),
            matrix(draw, outputs, outputs), draw.numbers([outputs])]


def parameters_of(draw, kernels, pads, strides):
    parameters = {}
    for word, values, default in (("kernel", kernels, None), ("pad", pads, 0), ("stride", strides, 1)):
        same = values[0] == values[1]
        if same and values[0] == default and draw.chance(50):
            continue
        if same and draw.chance(60):
            parameters["kernel_size" if word == "kernel" else word] = values[0]
        else:
            parameters[f"{word}_h"], parameters[f"{word}_w"] = values
    return parameters


def pooling_windows(draw):
    axes = []
    for _ in range(2):
        kernel = draw.between(1, 5)
        pad = draw.choice((0, 0, draw.between(0, kernel - 1)))
        axes.append((kernel, pad, draw.between(1, min(4, kernel + pad)),
                     max(1, kernel - 2 * pad) + draw.between(0, 6)))
    return list(zip(*axes))


def has_empty_window(kernels, pads, strides, sizes):
    """If the last window begins after the image, Caffe clips the window only if the layer has pads."""
    steps = [-(-(size + 2 * pad - kernel) // stride) * stride
             for kernel, pad, stride, size in zip(kernels, pads, strides, sizes)]
    return not any(pads) and any(step >= size for step, size in zip(steps, sizes))


def draw_pooling(draw, net, tops=("pool",), method=None, empty=False, **extra):
    draw_windows = windows_beyond if empty else pooling_windows
    drawn = draw_windows(draw)
    while has_empty_window(*drawn) != empty:
        drawn = draw_windows(draw)
    method = method or draw.choice(("MAX", "AVE"))
    parameters = {**parameters_of(draw, *drawn[:3]), **extra}
    if method != "MAX" or draw.chance(70):
        parameters = {"pool": method, **parameters}
    net.layer("Pooling", draw.numbers([draw.between(1, 3), draw.between(1, 4), *drawn[3]]), tops,
              pooling_param=parameters)


def windows_beyond(draw):
    kernels, sizes = [draw.between(1, 2) for _ in range(2)], [draw.between(2, 8) for _ in range(2)]
    return kernels, [0, 0], [kernel + draw.between(1, 2) for kernel in kernels], sizes


def pooling(draw, net):
    if draw.chance(10):
        net.layer("Pooling", draw.numbers([draw.between(1, 2), draw.between(1, 3), *draw.shape(2, 7)]),
                  "pool", pooling_param={"pool": draw.choice(("MAX", "AVE")), "global_pooling": True})
    else:
        draw_pooling(draw, net)


def ceil_mode(draw, net):
    """The forks' field ceil_mode decides whether sizes are rounded up."""
    draw_pooling(draw, net, ceil_mode=draw.choice((False, False, True)))


def spp(draw, net):
    height = draw.between(1, 3)
    least = 2 ** (height - 1)
    sizes = [draw.between(least, least + 6) for _ in range(2)]
    # Caffe refuses a level whose pad is as large as its kernel.
    while any((-(-size // 2 ** level) * 2 ** level - size + 1) // 2 >= -(-size // 2 ** level)
              for size in sizes for level in range(height)):
        sizes = [draw.between(least, least + 6) for _ in range(2)]
    parameters = {"pyramid_height": height}
    if draw.chance(50):
        parameters["pool"] = "AVE" if draw.chance(70) else "MAX"
    net.layer("SPP", draw.numbers([draw.between(1, 2), draw.between(1, 2), *sizes]), "spp", spp_param=parameters)


TABLE = {
    "Convolution": (220, convolution),
    "Convolution1D": (20, functools.partial(convolution_of, axes=1)),
    "Convolution3D": (40, functools.partial(convolution_of, axes=3)),
    "ConvolutionAxis": (10, convolution_axis),
    "ConvolutionShared": (10, shared_convolution),
    "Deconvolution": (220, deconvolution),
    "InnerProduct": (60, inner_product),
    "Embed": (40, embed),
    "Im2col": (40, im2col),
    "LSTM": (40, functools.partial(recurrent, kind="LSTM", weights_of=lstm_weights)),
    "RNN": (40, functools.partial(recurrent, kind="RNN", weights_of=rnn_weights)),
    "Pooling": (240, pooling),
    "PoolingCeilMode": (30, ceil_mode),
    "PoolingEmptyWindow": (10, functools.partial(draw_pooling, empty=True)),
    # The second top has the index of each maximum within its plane of height x width.
    "PoolingMask": (20, functools.partial(draw_pooling, tops=("pool", "mask"), method="MAX")),
    "SPP": (40, spp),
}
