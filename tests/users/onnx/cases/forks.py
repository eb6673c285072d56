"""Layers of Caffe's forks, which Caffe itself lacks."""

import numpy

from .values import any_shape, in_place_or_not, some
from .windows import parameters_of


def roi_pooling(draw, net):
    height, width = draw.shape(2, 12)
    images, scale = draw.between(1, 3), draw.choice((1, 0.5, 0.25, 0.0625))
    net.input("data", draw.numbers([images, draw.between(1, 3), height, width]))
    net.input("rois", regions(draw, images, height / scale, width / scale))
    net.layer("ROIPooling", ["data", "rois"], "pool", roi_pooling_param={
        "pooled_h": draw.between(1, 4), "pooled_w": draw.between(1, 4), "spatial_scale": scale})


def regions(draw, images, height, width, axes=(2, 2, 4)):
    """A row is an image number and two corners. Corners may lie outside the image, or be inverted."""
    count = draw.between(1, 6)
    corners = draw.uniform([count, 4], -0.1, 1.1) * numpy.float32([width, height, width, height])
    grid = draw.choice((None, 0.5, 1))
    if grid:
        corners = numpy.round(corners / numpy.float32(grid)) * numpy.float32(grid)
    if draw.chance(70):
        corners = numpy.concatenate([numpy.minimum(corners[:, :2], corners[:, 2:]),
                                     numpy.maximum(corners[:, :2], corners[:, 2:])], 1)
    rows = numpy.concatenate([draw.integers([count, 1], images), corners], 1)
    return rows.reshape([count, 5] + [1] * (draw.choice(axes) - 2))


def psroi_pooling(draw, net):
    bins, outputs = draw.between(1, 4), draw.between(1, 3)
    height, width = draw.shape(2, 10)
    images, scale = draw.between(1, 3), draw.choice((1, 0.5, 0.25, 0.0625))
    net.input("data", draw.numbers([images, outputs * bins * bins, height, width]))
    net.input("rois", regions(draw, images, height / scale, width / scale))
    net.layer("PSROIPooling", ["data", "rois"], "pool", psroi_pooling_param={
        "output_dim": outputs, "group_size": bins, "spatial_scale": scale})


def upsample(draw, net):
    net.layer("Upsample", draw.numbers(draw.shape(4)), "up", upsample_param=some(draw, scale=(1, 2, 3, 4)))


def pool_with_mask(draw, net, scales, sides):
    net.layer("Pooling", draw.numbers([draw.between(1, 3), draw.between(1, 3), *sides]), ("pool", "mask"),
              pooling_param=parameters_of(draw, scales, (0, 0), scales))
    return net.layer("Power", "pool", "other", power_param={"scale": -2, "shift": 1})


def upsample_switches(draw, net):
    scales = [draw.between(2, 3) for _ in range(2)]
    whole = [draw.between(1, 4) for _ in range(2)]
    pads = [draw.below(2) if scale == 2 else 0 for scale in scales]
    sides = [scale * number - pad for scale, number, pad in zip(scales, whole, pads)]
    parameters = {f"pad_out_{axis}": True for axis, pad in zip("hw", pads) if pad}
    if draw.chance(30) and min(sides) > 1:
        parameters = {"upsample_h": sides[0], "upsample_w": sides[1]}
    elif scales[0] != scales[1]:
        parameters.update(scale_h=scales[0], scale_w=scales[1])
    elif scales[0] != 2 or draw.chance(50):
        parameters["scale"] = scales[0]
    if draw.chance(25):  # several values have one place, as after pooling overlapping windows
        shape = [draw.between(1, 3), draw.between(1, 3), *whole]
        values = net.input("data", draw.numbers(shape))
        net.input("mask", draw.integers(shape, sides[0] * sides[1]))
    else:
        values = pool_with_mask(draw, net, scales, sides)
    net.layer("Upsample", [values, "mask"], "up", upsample_param=parameters)


def unpooling(draw, net):
    scales = [draw.between(1, 3) for _ in range(2)]
    sides = [scale * draw.between(1, 4) for scale in scales]
    values = pool_with_mask(draw, net, scales, sides)
    size = {"unpool_h": sides[0], "unpool_w": sides[1]}
    if sides[0] == sides[1] and draw.chance(70):
        size = {"unpool_size": sides[0]}
    net.layer("Unpooling", [values, "mask"], "up", unpooling_param={
        "unpool": "MAX", **parameters_of(draw, scales, (0, 0), scales), **size})


def scale_and_shift(draw, channels):
    return [draw.numbers([1, channels, 1, 1]) for _ in range(2)]


def bn(draw, net, parameters, blobs, least_batch=1):
    """With the batch's variance, BN needs several images to keep the variance above 0."""
    shape = [draw.between(least_batch, 3), blobs[0].size, *draw.shape(2)]
    in_place_or_not(draw, net, "BN", draw.numbers(shape), "norm", blobs=blobs,
                    bn_param=parameters)


def bn_inference(draw, net):
    parameters = some(draw, scale_filler=({"type": "constant", "value": 1},))
    bn(draw, net, {"bn_mode": "INFERENCE", **parameters}, scale_and_shift(draw, draw.between(1, 5)))


def bn_learn(draw, net):
    bn(draw, net, some(draw, bn_mode=("LEARN",)), scale_and_shift(draw, draw.between(1, 5)), 2)


def statistics(draw, channels):
    shape = [1, channels, 1, 1]
    return [draw.numbers(shape, draw.choice((0.5, 0.5, 40))), draw.uniform(shape, 0.5, 2)]


def bn_slope(draw, net):
    channels = draw.between(1, 5)
    parameters = some(draw, eps=(0.001, 1e-05), momentum=(0.95,), slope_filler=({"type": "constant"},))
    bn(draw, net, {"frozen": True, **parameters},
       scale_and_shift(draw, channels) + statistics(draw, channels))


def bn_moving_average(draw, net):
    channels = draw.between(1, 5)
    parameters = {"var_eps": draw.choice((0.001, 1e-05)), **some(draw, decay=(0.1,), axis=(1,))}
    blobs = scale_and_shift(draw, channels) + statistics(draw, channels)
    if draw.chance(50):
        bn(draw, net, {"moving_average": True, **parameters}, blobs)
    else:
        bn(draw, net, parameters, blobs, 2)


def batch_norm_scaled(draw, net):
    shape = [draw.between(1, 3), draw.between(1, 5), *draw.shape(2)]
    channels = [shape[1]]
    blobs = [draw.numbers(channels, draw.choice((0.5, 0.5, 40))), draw.uniform(channels, 0.5, 2),
             numpy.float32([1]), draw.numbers(channels), draw.numbers(channels)]
    net.layer("Power", draw.numbers(shape), "middle")
    net.layer("BatchNorm", "middle", draw.choice(("norm", "middle")), blobs, batch_norm_param={
        "scale_bias": True, **some(draw, eps=(1e-05, 0.001), moving_average_fraction=(0.9,))})


def depthwise(kind):
    def draw_one(draw, net):
        channels = draw.between(1, 5)
        kernels = [draw.between(1, 3) for _ in range(2)]
        parameters = parameters_of(draw, kernels, [draw.below(3) for _ in range(2)],
                                   [draw.between(1, 3) for _ in range(2)])
        parameters.update(some(draw, dilation=(1, 2), bias_term=(True, False)))
        if kind == "DepthwiseConvolution":
            parameters["group"] = channels
        blobs = [draw.numbers([channels, 1, *kernels])]
        if parameters.get("bias_term", True):
            blobs.append(draw.numbers([channels]))
        net.input("data", draw.numbers([draw.between(1, 3), channels, *[draw.between(5, 9) for _ in range(2)]]))
        net.layer(kind, "data", "conv", blobs, convolution_param={"num_output": channels, **parameters})
    return draw_one


def c3d_field(draw, name):
    """The field has different names in the versions 1.0 and 1.1 of C3D."""
    return draw.choice((f"{name}_param", f"{name}3d_param"))


def c3d_convolution(draw, net):
    channels, outputs = draw.between(1, 3), draw.between(1, 2) * 2
    kernel, depth = draw.between(1, 3), draw.between(1, 3)
    parameters = {"num_output": outputs, "kernel_size": kernel, "kernel_depth": depth,
                  **some(draw, stride=(1, 2), temporal_stride=(1, 2), pad=(0, 1, 2), temporal_pad=(0, 1),
                         bias_term=(True, False), filter_group=(1, 2))}
    blobs = [draw.numbers([outputs, channels, depth, kernel, kernel])]
    if parameters.get("bias_term", True):
        blobs.append(draw.numbers([1, 1, 1, 1, outputs]))
    shape = [draw.between(1, 2), channels, *[draw.between(3, 6) for _ in range(3)]]
    net.layer("Convolution3D", draw.numbers(shape), "conv", blobs, **{c3d_field(draw, "convolution"): parameters})


def c3d_pooling(draw, net):
    kernel, depth, pad = draw.between(1, 4), draw.between(1, 3), 0
    parameters = {"kernel_size": kernel, "kernel_depth": depth}
    strides = [draw.between(1, depth), draw.between(1, kernel)]
    for name, stride in zip(("temporal_stride", "stride"), strides):
        if stride > 1 or draw.chance(50):
            parameters[name] = stride
    sizes = [draw.between(depth, depth + 4), *[draw.between(kernel, kernel + 5) for _ in range(2)]]
    if draw.chance(60):
        parameters["pool"] = "AVE"
        pad = draw.below(kernel)
        # If the last window began after the image, the window's divisor would be negative.
        while any(begins_behind(size, kernel, strides[1], pad) for size in sizes[1:]):
            pad -= 1
    if pad:
        parameters["pad"] = pad
    net.layer("Pooling3D", draw.numbers([draw.between(1, 2), draw.between(1, 2), *sizes]), "pool",
              **{c3d_field(draw, "pooling"): parameters})


def begins_behind(size, kernel, stride, pad):
    return -(-(size + 2 * pad - kernel) // stride) * stride >= size + pad


def normalize_bbox(draw, net):
    channels, shared = draw.between(1, 6), draw.chance(50)
    parameters = {"channel_shared": shared,
                  **some(draw, across_spatial=(True, False, False), eps=(1e-10, 0.001))}
    net.input("data", draw.numbers([draw.between(1, 3), channels, *draw.shape(2)]))
    field = draw.choice(("norm_param", "normalize_bbox_param"))
    net.layer(draw.choice(("NormalizeBBox", "Normalize")), "data", "norm",
              [draw.uniform([] if shared else [channels], 0.5, 4)], **{field: parameters})


def prior_box_offsets(draw, net):
    net.input("data", draw.numbers([1, 1, *draw.shape(2, 4)]))
    net.input("image", draw.numbers([1, 1, draw.between(30, 60), draw.between(30, 60)]))
    least = draw.between(4, 20)
    offsets = draw.between(1, 2)
    parameters = {"min_size": least, "flip": draw.chance(50), "clip": draw.chance(50),
                  "offset_h": [draw.choice((0.5, 1, 0.25)) for _ in range(offsets)],
                  "offset_w": [draw.choice((0.5, 0, 0.75)) for _ in range(offsets)],
                  "variance": [0.1, 0.1, 0.2, 0.2]}
    parameters.update(some(draw, max_size=(least + 7,), aspect_ratio=([2], [2, 5]), step=(8,)))
    net.layer("PriorBox", ["data", "image"], "boxes", prior_box_param=parameters)


def interp(draw, net):
    net.input("data", draw.numbers([draw.between(1, 2), draw.between(1, 3), *draw.shape(2, 7)]))
    parameters = draw.choice(({"zoom_factor": draw.between(1, 4)},
                              {"height": draw.between(1, 9), "width": draw.between(1, 9)}))
    net.layer("Interp", "data", "interp", interp_param=parameters)


def interp_border(draw, net):
    """OpenCV's importer lacks these options of Interp."""
    sides = [draw.between(4, 9) for _ in range(2)]
    net.input("data", draw.numbers([1, draw.between(1, 3), *sides]))
    parameters = {"shrink_factor": draw.between(1, 3),
                  **some(draw, zoom_factor=(1, 2, 3), pad_beg=(0, -1), pad_end=(0, -1, -2))}
    net.layer("Interp", "data", "interp", interp_param=parameters)


def axpy(draw, net):
    shape = [draw.between(1, 2), draw.between(1, 4), *draw.shape(2)]
    net.input("scale", draw.numbers(shape[:2] + [1, 1]))
    for name in "xy":
        net.input(name, draw.numbers(shape))
    net.layer("Axpy", ["scale", "x", "y"], "sum")


def reorg(draw, net):
    stride = draw.between(1, 3)
    shape = [draw.between(1, 2), stride * stride * draw.between(1, 2),
             *[stride * draw.between(1, 3) for _ in range(2)]]
    parameters = {"stride": stride, **some(draw, reverse=(False, True))}
    net.layer("Reorg", draw.numbers(shape), "reorg", reorg_param=parameters)


def shuffle_channel(draw, net):
    group = draw.between(1, 4)
    shape = [draw.between(1, 2), group * draw.between(1, 4), *draw.shape(2)]
    net.layer("ShuffleChannel", draw.numbers(shape), "shuffled", shuffle_channel_param={"group": group})


def gate(draw, net):
    values = draw.numbers([draw.between(4, 6), *any_shape(draw, 1, 4)], 2)
    kind = draw.choice(("ReLU6", "Swish", "Mish", "HardSigmoid", "HardSwish", "Clip", "SpatialDropout"))
    if kind == "Clip":
        return in_place_or_not(draw, net, kind, values, "gate",
                               clip_param={"min": draw.choice((-1, 0)), "max": draw.choice((0.5, 3))})
    fields = {"Swish": ("swish_param", {"beta": (1, 0.5, 2)}),
              "HardSigmoid": ("hardsigmoid_param", {"alpha": (0.2, 0.5), "beta": (0.5, 0.25)})}
    field, options = fields.get(kind, ("relu6_param", {}))
    return in_place_or_not(draw, net, kind, values, "gate",
                           **{field: some(draw, **options)})


def text_layer(draw, net):
    shape = draw.shape(draw.between(2, 4))
    order = draw.sample(range(len(shape)))
    net.layer("Transpose", draw.numbers(shape), "transposed", transpose_param={"dim": order})
    axis = draw.below(len(shape))
    net.layer("Reverse", "data", "reversed", reverse_param={"axis": axis} if axis else {})
    net.layer("ContinuationIndicator", [], "cont", name="cont", continuation_indicator_param={
        "time_step": draw.between(1, 5), "batch_size": draw.between(1, 3)})


OF_OPENCV = {
    "BatchNormScaled": (40, batch_norm_scaled),
    "ConvolutionDepthwise": (40, depthwise("ConvolutionDepthwise")),
    "Interp": (40, interp),
    "PSROIPooling": (60, psroi_pooling),
    "PriorBoxOffsets": (40, prior_box_offsets),
    "ROIPooling": (60, roi_pooling),
    "ShuffleChannel": (40, shuffle_channel),
}
OF_FORMULAS = {
    "Axpy": (40, axpy),
    "BNInference": (40, bn_inference),
    "BNLearn": (40, bn_learn),
    "BNMovingAverage": (40, bn_moving_average),
    "BNSlope": (40, bn_slope),
    "C3DConvolution": (40, c3d_convolution),
    "C3DPooling": (60, c3d_pooling),
    "DepthwiseConvolution": (40, depthwise("DepthwiseConvolution")),
    "Gates": (60, gate),
    "InterpBorder": (40, interp_border),
    "NormalizeBBox": (40, normalize_bbox),
    "Reorg": (40, reorg),
    "TextLayers": (40, text_layer),
    "Unpooling": (40, unpooling),
    "Upsample": (40, upsample),
    "UpsampleSwitches": (40, upsample_switches),
}
TABLE = {**OF_OPENCV, **OF_FORMULAS}
