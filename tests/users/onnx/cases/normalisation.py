"""Layers that divide by a sum over their inputs."""

import numpy

from .activation import any_shape, in_place_or_not, some


def softmax_axis(draw, shape):
    if draw.chance(50):
        return {}
    axis = draw.below(len(shape))
    return {"softmax_param": {"axis": draw.choice((axis, axis - len(shape)))}}


def softmax(draw, net):
    shape = any_shape(draw, 2)
    in_place_or_not(draw, net, "Softmax", draw.numbers(shape, 2.0), "prob", **softmax_axis(draw, shape))


def softmax_with_loss(draw, net):
    """Draws a loss that the converter treats as a softmax, with a label or without."""
    shape = any_shape(draw, 2)
    net.losses.add("SoftmaxWithLoss")
    net.names_differ = True
    net.input("data", draw.numbers(shape, 2.0))
    bottoms = ["data"]
    if draw.chance(50):
        bottoms.append(net.input("label", draw.integers([shape[0], 1], 2)))
    net.layer("SoftmaxWithLoss", bottoms, "loss", **softmax_axis(draw, shape))


def lrn_across(draw, net):
    parameters = some(draw, local_size=(1, 3, 5, 7), alpha=(0.0001, 0.5, 1, 2), beta=(0.75, 0.5, 1.25),
                      k=(1, 2, 0.5))
    net.input("data", draw.numbers([draw.between(1, 2), draw.between(1, 9), *draw.shape(2, 4)]))
    if draw.chance(20):
        parameters["norm_region"] = "ACROSS_CHANNELS"
    net.layer("LRN", "data", "norm", lrn_param=parameters)


def lrn_within(draw, net):
    """Draws an LRN within channels, where Caffe ignores k."""
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
    """Draws a BatchNorm that uses the batch's mean and variance also in phase TEST."""
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
    "Softmax": (40, softmax),
    "SoftmaxWithLoss": (20, softmax_with_loss),
    "LRN": (40, lrn_across),
    "LRNWithinChannel": (40, lrn_within),
    "BatchNorm": (60, batch_norm),
    "BatchNormOfBatch": (10, batch_norm_of_batch),
    "Normalize": (60, normalize),
    "MVN": (40, mvn),
}
