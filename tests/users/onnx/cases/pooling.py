"""Pooling layers, whose windows Caffe places by a special rule."""

import functools


def parameters_of(draw, kernels, pads, strides):
    """Returns the parameters, each written in one of its equivalent forms."""
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


def windows(draw):
    """Draws the kernels, pads, strides and sizes of both axes."""
    axes = []
    for _ in range(2):
        kernel = draw.between(1, 5)
        pad = draw.choice((0, 0, draw.between(0, kernel - 1)))
        axes.append((kernel, pad, draw.between(1, min(4, kernel + pad)),
                     max(1, kernel - 2 * pad) + draw.between(0, 6)))
    return list(zip(*axes))


def has_empty_window(kernels, pads, strides, sizes):
    """Returns whether the last window of an axis begins after the image: Caffe clips such a window
    only if the layer has pads."""
    steps = [-(-(size + 2 * pad - kernel) // stride) * stride
             for kernel, pad, stride, size in zip(kernels, pads, strides, sizes)]
    return not any(pads) and any(step >= size for step, size in zip(steps, sizes))


def draw_pooling(draw, net, tops=("pool",), method=None, empty=False, **extra):
    draw_windows = windows_beyond if empty else windows
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
    """Draws ceil_mode, a field of forks: if false, sizes are rounded down."""
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
    "Pooling": (240, pooling),
    "PoolingCeilMode": (30, ceil_mode),
    "PoolingEmptyWindow": (10, functools.partial(draw_pooling, empty=True)),
    # The second top has the index of each maximum within its plane of height x width.
    "PoolingMask": (20, functools.partial(draw_pooling, tops=("pool", "mask"), method="MAX")),
    "SPP": (40, spp),
}
