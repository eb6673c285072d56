"""Computes, in NumPy, layers of Caffe's forks that OpenCV's importer lacks, as the forks' sources do.
Sums are doubles."""

import numpy


def run(net):
    """Returns the outputs of a net of these layers: the blobs that no other layer reads."""
    blobs = dict(net.inputs)
    weights = {name: arrays for name, _, arrays in net.weights}
    for layer in net.messages:
        if layer["type"] == "Input":
            continue
        bottoms = [blobs[name] for name in layer["bottom"]]
        tops = LAYERS[layer["type"]](layer, bottoms, weights.get(layer["name"], []))
        blobs.update(zip(layer["top"], (top.astype(numpy.float32) for top in tops)))
    return {name: blobs[name] for name in output_names(net)}


def output_names(net):
    """Returns the names of the outputs in Caffe's order."""
    written = {}
    for layer in net.messages:
        for name in layer.get("bottom", []):
            written.pop(name, None)
        tops = layer["top"]
        written.update(dict.fromkeys([tops] if isinstance(tops, str) else tops))
    return list(written)


def parameters_of(layer, *names):
    return next((layer[name] for name in names if name in layer), {})


def pair(parameters, both, default, suffixes="hw"):
    """Returns height and width from one field for both, or from one field for each."""
    names = [f"{both.replace('_size', '')}_{suffix}" for suffix in suffixes]
    return [parameters.get(name, parameters.get(both, default)) for name in names]


def power(layer, bottoms, _):
    p = layer.get("power_param", {})
    return [bottoms[0] * numpy.float32(p.get("scale", 1)) + numpy.float32(p.get("shift", 0))]


def pooling_mask(layer, bottoms, _):
    """Pools adjacent windows, which do not overlap; the last window may be truncated."""
    (data,), kernel = bottoms, pair(layer["pooling_param"], "kernel_size", None)
    rows, columns = (-(-size // step) for size, step in zip(data.shape[2:], kernel))
    missing = [(0, number * step - size) for number, step, size in zip((rows, columns), kernel, data.shape[2:])]
    padded = numpy.pad(data, [(0, 0), (0, 0), *missing], constant_values=-numpy.inf)
    windows = padded.reshape(*data.shape[:2], rows, kernel[0], columns, kernel[1]).swapaxes(3, 4)
    windows = windows.reshape(*data.shape[:2], rows, columns, -1)
    row, column = numpy.divmod(windows.argmax(-1), kernel[1])
    row, column = row + numpy.arange(rows)[:, None] * kernel[0], column + numpy.arange(columns) * kernel[1]
    return windows.max(-1), row * data.shape[3] + column


def scatter(values, places, sides):
    top = numpy.zeros([*values.shape[:2], sides[0] * sides[1]], numpy.float32)
    flat = values.shape[:2] + (-1,)
    numpy.put_along_axis(top, places.astype(int).reshape(flat), values.reshape(flat), 2)
    return [top.reshape([*values.shape[:2], *sides])]


def upsample(layer, bottoms, _):
    p = parameters_of(layer, "upsample_param")
    if len(bottoms) == 1:
        return [bottoms[0].repeat(p.get("scale", 1), 2).repeat(p.get("scale", 1), 3)]
    if "upsample_h" in p:
        return scatter(*bottoms, (p["upsample_h"], p["upsample_w"]))
    sides = [size * scale - p.get(f"pad_out_{axis}", 0)
             for axis, size, scale in zip("hw", bottoms[0].shape[2:], pair(p, "scale", 2))]
    return scatter(*bottoms, sides)


def unpooling(layer, bottoms, _):
    return scatter(*bottoms, pair(layer["unpooling_param"], "unpool_size", None))


def normalized(data, eps, mean=None, variance=None):
    data = data.astype(numpy.float64)
    if mean is None:
        mean, variance = data.mean((0, 2, 3), keepdims=True), data.var((0, 2, 3), keepdims=True)
    return (data - mean) / numpy.sqrt(variance + eps)


def normalize(layer, bottoms, blobs):
    p = parameters_of(layer, "norm_param", "normalize_bbox_param")
    data, (factor,) = bottoms[0].astype(numpy.float64), blobs
    axes = (1, 2, 3) if p.get("across_spatial", True) else 1
    norm = numpy.sqrt((data * data).sum(axes, keepdims=True) + p.get("eps", 1e-10))
    return [data / norm * (factor if factor.ndim == 0 else factor.reshape([-1, 1, 1]))]


def bn(layer, bottoms, blobs):
    (data,), p, (scale, shift, *stored) = bottoms, parameters_of(layer, "bn_param"), blobs
    if p.get("bn_mode") == "INFERENCE":
        normal = data.astype(numpy.float64)
    elif not stored:
        normal = normalized(data, 1e-9)
    elif "var_eps" in p:
        normal = normalized(data, p["var_eps"], *(stored if p.get("moving_average") else []))
    else:
        normal = normalized(data, p.get("eps", 1e-5), *stored)
    return [normal * scale + shift]


def convolution(data, weights, bias, strides, pads, dilations):
    """Convolves over any number of axes; each output channel reads all input channels."""
    axes, kernel = range(2, data.ndim), weights.shape[2:]
    data = numpy.pad(data.astype(numpy.float64), [(0, 0), (0, 0), *zip(pads, pads)])
    spans = [dilation * (length - 1) + 1 for dilation, length in zip(dilations, kernel)]
    windows = numpy.lib.stride_tricks.sliding_window_view(data, spans, tuple(axes))
    windows = windows[(..., *(slice(None, None, step) for step in (*strides, *dilations)))]
    summed = (1, *range(data.ndim, windows.ndim)), (1, *axes)
    return numpy.moveaxis(numpy.tensordot(windows, weights, summed) + bias, -1, 1)


def bias_of(blobs):
    return blobs[1].reshape(-1) if len(blobs) > 1 else numpy.zeros(len(blobs[0]))


def depthwise(layer, bottoms, blobs):
    (data,), p = bottoms, layer["convolution_param"]
    dilations = [p.get("dilation", 1)] * 2
    bias = bias_of(blobs)
    return [numpy.concatenate([
        convolution(data[:, [channel]], blobs[0][[channel]], bias[[channel]],
                    pair(p, "stride", 1), pair(p, "pad", 0), dilations)
        for channel in range(data.shape[1])], 1)]


def c3d_convolution(layer, bottoms, blobs):
    p = parameters_of(layer, "convolution_param", "convolution3d_param")
    strides, pads = ([p.get(f"temporal_{name}", default), *[p.get(name, default)] * 2]
                     for name, default in (("stride", 1), ("pad", 0)))
    return [convolution(bottoms[0], blobs[0], bias_of(blobs), strides, pads, [1] * 3)]


def c3d_pooling(layer, bottoms, _):
    (data,), p = bottoms, parameters_of(layer, "pooling_param", "pooling3d_param")
    kernels = [p["kernel_depth"], *[p["kernel_size"]] * 2]
    strides = [p.get("temporal_stride", 1), *[p.get("stride", 1)] * 2]
    pads = [0, *[p.get("pad", 0)] * 2]
    sizes = data.shape[2:]
    numbers = [-(-(size + 2 * pad - kernel) // stride) + 1
               for size, pad, kernel, stride in zip(sizes, pads, kernels, strides)]
    top = numpy.empty([*data.shape[:2], *numbers])
    for at in numpy.ndindex(*numbers):
        begins = [place * stride - pad for place, stride, pad in zip(at, strides, pads)]
        ends = [min(begin + kernel, size + pad)
                for begin, kernel, size, pad in zip(begins, kernels, sizes, pads)]
        part = data[(..., *(slice(max(begin, 0), end) for begin, end in zip(begins, ends)))]
        if p.get("pool") == "AVE":
            area = numpy.prod([end - begin for begin, end in zip(begins, ends)])
            top[(..., *at)] = part.sum((2, 3, 4), dtype=numpy.float64) / area
        else:
            top[(..., *at)] = part.max((2, 3, 4))
    return [top]


def interp(layer, bottoms, _):
    """Interpolates linearly; the values at the corners stay the same."""
    (data,), p = bottoms, layer["interp_param"]
    before, behind = (-p.get(name, 0) for name in ("pad_beg", "pad_end"))
    data = data[:, :, before:data.shape[2] - behind, before:data.shape[3] - behind].astype(numpy.float64)
    for axis in (2, 3):
        size = data.shape[axis]
        steps = (size - 1) // p["shrink_factor"] * p.get("zoom_factor", 1)
        places = numpy.arange(steps + 1) * ((size - 1) / max(steps, 1))
        low = numpy.floor(places + 1e-9).astype(int)
        part = (places - low).reshape([-1 if axis == each else 1 for each in range(4)])
        high = numpy.minimum(low + 1, size - 1)
        data = data.take(low, axis) * (1 - part) + data.take(high, axis) * part
    return [data]


def axpy(_, bottoms, __):
    scale, x, y = bottoms
    return [scale * x + y]


def reorg(layer, bottoms, _):
    """Computes Darknet's reorg, which indexes the bottom as if it had the top's sizes."""
    (data,), p = bottoms, layer["reorg_param"]
    stride, (number, channels, height, width) = p["stride"], data.shape
    few = channels // (stride * stride)
    if p.get("reverse", False):
        top = data.reshape(number, stride, stride, few, height, width).transpose(0, 3, 4, 1, 5, 2)
        return [top.reshape(number, few, height * stride, width * stride)]
    top = data.reshape(number, few, height, stride, width, stride).transpose(0, 3, 5, 1, 2, 4)
    return [top.reshape(number, channels * stride * stride, height // stride, width // stride)]


GATES = {
    "Clip": lambda x, p: numpy.clip(x, p["min"], p["max"]),
    "HardSigmoid": lambda x, p: numpy.clip(p.get("alpha", 0.2) * x + p.get("beta", 0.5), 0, 1),
    "HardSwish": lambda x, _: x * numpy.clip(x / 6 + 0.5, 0, 1),
    "Mish": lambda x, _: x * numpy.tanh(numpy.log1p(numpy.exp(x))),
    "ReLU6": lambda x, _: numpy.clip(x, 0, 6),
    "SpatialDropout": lambda x, _: x,
    "Swish": lambda x, p: x / (1 + numpy.exp(-p.get("beta", 1) * x)),
}


def gate(layer, bottoms, _):
    parameters = parameters_of(layer, f"{layer['type'].lower()}_param")
    return [GATES[layer["type"]](bottoms[0].astype(numpy.float64), parameters)]


def transpose(layer, bottoms, _):
    return [bottoms[0].transpose(layer["transpose_param"]["dim"])]


def reverse(layer, bottoms, _):
    return [numpy.flip(bottoms[0], parameters_of(layer, "reverse_param").get("axis", 0))]


def continuation_indicator(layer, *_):
    p = layer["continuation_indicator_param"]
    top = numpy.ones([p["time_step"], p["batch_size"]])
    top[0] = 0
    return [top]


LAYERS = {
    **dict.fromkeys(GATES, gate),
    "Axpy": axpy,
    "BN": bn,
    "ContinuationIndicator": continuation_indicator,
    "Convolution3D": c3d_convolution,
    "DepthwiseConvolution": depthwise,
    "Interp": interp,
    "Normalize": normalize,
    "NormalizeBBox": normalize,
    "Pooling": pooling_mask,
    "Pooling3D": c3d_pooling,
    "Power": power,
    "Reorg": reorg,
    "Reverse": reverse,
    "Transpose": transpose,
    "Unpooling": unpooling,
    "Upsample": upsample,
}
