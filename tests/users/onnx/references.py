"""Computes layers of Caffe's forks as the forks' sources do, but with sums in doubles."""

import numpy


def run(net):
    """Runs the net. Returns the blobs that no layer reads."""
    values = dict(net.inputs)
    weights = {name: arrays for name, _, arrays in net.weights}
    for layer in net.messages:
        if layer["type"] == "Input":
            continue
        parameters = next((value for name, value in layer.items() if name.endswith("_param")), {})
        found = LAYERS[layer["type"]](parameters, weights.get(layer["name"], []),
                                      *(values[name] for name in layer["bottom"]))
        found = found if isinstance(found, tuple) else (found,)
        values.update(zip(layer["top"], (top.astype(numpy.float32) for top in found)))
    return {name: values[name] for name in output_names(net)}


def output_names(net):
    written = {}
    for layer in net.messages:
        for name in layer.get("bottom", []):
            written.pop(name, None)
        tops = layer["top"]
        written.update(dict.fromkeys([tops] if isinstance(tops, str) else tops))
    return list(written)


def pair(parameters, both, default):
    return [parameters.get(f"{both.replace('_size', '')}_{axis}", parameters.get(both, default)) for axis in "hw"]


def pooling_mask(p, _, data):
    """The windows do not overlap. The last window may be truncated."""
    kernel = pair(p, "kernel_size", None)
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
    return top.reshape([*values.shape[:2], *sides])


def upsample(p, _, data, places=None):
    if places is None:
        return data.repeat(p.get("scale", 1), 2).repeat(p.get("scale", 1), 3)
    sides = [p.get(f"upsample_{axis}", size * scale - p.get(f"pad_out_{axis}", 0))
             for axis, size, scale in zip("hw", data.shape[2:], pair(p, "scale", 2))]
    return scatter(data, places, sides)


def normalize(p, blobs, data):
    data, (factor,) = data.astype(numpy.float64), blobs
    axes = (1, 2, 3) if p.get("across_spatial", True) else 1
    norm = numpy.sqrt((data * data).sum(axes, keepdims=True) + p.get("eps", 1e-10))
    return data / norm * (factor if factor.ndim == 0 else factor.reshape([-1, 1, 1]))


def bn(p, blobs, data):
    data, (scale, shift, *stored) = data.astype(numpy.float64), blobs
    if p.get("bn_mode") == "INFERENCE":
        return data * scale + shift
    if not stored or ("var_eps" in p and not p.get("moving_average")):
        stored = data.mean((0, 2, 3), keepdims=True), data.var((0, 2, 3), keepdims=True)
    eps = p.get("var_eps", p.get("eps", 1e-5) if len(blobs) > 2 else 1e-9)
    return (data - stored[0]) / numpy.sqrt(stored[1] + eps) * scale + shift


def convolution(data, weights, bias, strides, pads, dilations):
    axes, kernel = range(2, data.ndim), weights.shape[2:]
    data = numpy.pad(data.astype(numpy.float64), [(0, 0), (0, 0), *zip(pads, pads)])
    spans = [dilation * (length - 1) + 1 for dilation, length in zip(dilations, kernel)]
    windows = numpy.lib.stride_tricks.sliding_window_view(data, spans, tuple(axes))
    windows = windows[(..., *(slice(None, None, step) for step in (*strides, *dilations)))]
    summed = (1, *range(data.ndim, windows.ndim)), (1, *axes)
    return numpy.moveaxis(numpy.tensordot(windows, weights, summed) + bias, -1, 1)


def bias_of(blobs):
    return blobs[1].reshape(-1) if len(blobs) > 1 else numpy.zeros(len(blobs[0]))


def depthwise(p, blobs, data):
    bias, windows = bias_of(blobs), (pair(p, "stride", 1), pair(p, "pad", 0), [p.get("dilation", 1)] * 2)
    return numpy.concatenate([convolution(data[:, [i]], blobs[0][[i]], bias[[i]], *windows)
                              for i in range(data.shape[1])], 1)


def volume(p, name, default):
    return [p.get(f"temporal_{name}", default), *[p.get(name, default)] * 2]


def c3d_convolution(p, blobs, data):
    return convolution(data, blobs[0], bias_of(blobs), volume(p, "stride", 1), volume(p, "pad", 0), [1] * 3)


def c3d_pooling(p, _, data):
    kernels, strides = [p["kernel_depth"], *[p["kernel_size"]] * 2], volume(p, "stride", 1)
    pads, sizes = [0, *[p.get("pad", 0)] * 2], data.shape[2:]
    numbers = [-(-(size + 2 * pad - kernel) // stride) + 1
               for size, pad, kernel, stride in zip(sizes, pads, kernels, strides)]
    top = numpy.empty([*data.shape[:2], *numbers])
    for at in numpy.ndindex(*numbers):
        begins = [place * stride - pad for place, stride, pad in zip(at, strides, pads)]
        ends = [min(begin + kernel, size + pad)
                for begin, kernel, size, pad in zip(begins, kernels, sizes, pads)]
        part = data[(..., *(slice(max(begin, 0), end) for begin, end in zip(begins, ends)))]
        area = numpy.prod([end - begin for begin, end in zip(begins, ends)])
        top[(..., *at)] = part.sum((2, 3, 4), dtype=numpy.float64) / area if p.get("pool") == "AVE" \
            else part.max((2, 3, 4))
    return top


def interp(p, _, data):
    """Interpolates linearly between the corners, whose values do not change."""
    before, behind = (-p.get(name, 0) for name in ("pad_beg", "pad_end"))
    data = data[:, :, before:data.shape[2] - behind, before:data.shape[3] - behind].astype(numpy.float64)
    for axis in (2, 3):
        size = data.shape[axis]
        steps = (size - 1) // p["shrink_factor"] * p.get("zoom_factor", 1)
        places = numpy.arange(steps + 1) * ((size - 1) / max(steps, 1))
        low = numpy.floor(places + 1e-9).astype(int)
        part = (places - low).reshape([-1 if axis == each else 1 for each in range(4)])
        data = data.take(low, axis) * (1 - part) + data.take(numpy.minimum(low + 1, size - 1), axis) * part
    return data


def reorg(p, _, data):
    """Darknet's reorg indexes the bottom as if the bottom had the top's sizes."""
    stride, (number, channels, height, width) = p["stride"], data.shape
    few = channels // (stride * stride)
    if p.get("reverse", False):
        top = data.reshape(number, stride, stride, few, height, width).transpose(0, 3, 4, 1, 5, 2)
        return top.reshape(number, few, height * stride, width * stride)
    top = data.reshape(number, few, height, stride, width, stride).transpose(0, 3, 5, 1, 2, 4)
    return top.reshape(number, channels * stride * stride, height // stride, width // stride)


def indicator(p, _):
    return (numpy.arange(p["time_step"]) > 0)[:, None].repeat(p["batch_size"], 1)


def gate(formula):
    return lambda p, _, x: formula(x.astype(numpy.float64), p)


LAYERS = {
    "Axpy": lambda _, __, scale, x, y: scale * x + y,
    "BN": bn,
    "Clip": gate(lambda x, p: numpy.clip(x, p["min"], p["max"])),
    "ContinuationIndicator": indicator,
    "Convolution3D": c3d_convolution,
    "DepthwiseConvolution": depthwise,
    "HardSigmoid": gate(lambda x, p: numpy.clip(p.get("alpha", 0.2) * x + p.get("beta", 0.5), 0, 1)),
    "HardSwish": gate(lambda x, _: x * numpy.clip(x / 6 + 0.5, 0, 1)),
    "Interp": interp,
    "Mish": gate(lambda x, _: x * numpy.tanh(numpy.log1p(numpy.exp(x)))),
    "Normalize": normalize,
    "NormalizeBBox": normalize,
    "Pooling": pooling_mask,
    "Pooling3D": c3d_pooling,
    "Power": lambda p, _, x: x * numpy.float32(p.get("scale", 1)) + numpy.float32(p.get("shift", 0)),
    "ReLU6": gate(lambda x, _: numpy.clip(x, 0, 6)),
    "Reorg": reorg,
    "Reverse": lambda p, _, data: numpy.flip(data, p.get("axis", 0)),
    "SpatialDropout": lambda _, __, data: data,
    "Swish": gate(lambda x, p: x / (1 + numpy.exp(-p.get("beta", 1) * x))),
    "Transpose": lambda p, _, data: data.transpose(p["dim"]),
    "Unpooling": lambda p, _, data, places: scatter(data, places, pair(p, "unpool_size", None)),
    "Upsample": upsample,
}
