"""Nets and options that are refused, and the words that the refusal must have."""

import numpy


from nets import Net


def images(shape=(1, 3, 4, 4)):
    net = Net()
    net.input("data", numpy.zeros(shape, numpy.float32))
    return net


def rectified(*shape):
    net = images(shape)
    net.layer("ReLU", "data", "out")
    return net


def with_layer(kind, *blobs, **parameters):
    net = images()
    net.layer(kind, "data", "out", [numpy.zeros(shape, numpy.float32) for shape in blobs], name="the_layer",
              **parameters)
    return net


def convolution(*blobs, **more):
    return with_layer("Convolution", *blobs, convolution_param={"num_output": 2, "kernel_size": 3, **more})


def inner_product(*blobs):
    return with_layer("InnerProduct", *blobs, inner_product_param={"num_output": 2})


def several():
    net = with_layer("Python", python_param={"module": "m", "layer": "L"})
    net.layer("Unheard", "out", "second", name="another")
    return net


def rows():
    weights, biases = (2, 3, 3, 3), (2,)
    layer = "layer 'the_layer'"
    yield "no weights", convolution(weight_filler={"type": "xavier"}), [], [
        layer, "Convolution", "the model has no weights for it, and its filler is random"]
    yield "no bias", convolution(weights), [], [layer, "1 blobs", "needs 2"]
    yield "a bias too many", convolution(weights, biases, bias_term=False), [], [layer, "2 blobs", "needs 1"]
    yield "weights of another shape", convolution((2, 4, 3, 3), biases), [], [
        layer, "[2, 4, 3, 3]", "[2, 3, 3, 3]"]
    yield "fewer weights than num_output", convolution((1, 3, 3, 3), (1,)), [], [
        layer, "[1, 3, 3, 3]", "[2, 3, 3, 3]"]
    yield "a bias of another shape", convolution(weights, (3,)), [], [layer, "[3]", "[2]"]
    yield "as many weights in another order", inner_product((48, 2), biases), [], [layer, "[48, 2]", "[2, 48]"]
    yield "a Python layer", with_layer("Python", python_param={"module": "m"}), [], [layer, "Python"]
    yield "all at once", several(), [], [layer, "Python", "'another'", "Unheard"]
    yield "a blob that is none", rectified(1, 3, 4, 4), ["--outputs", "nowhere"], ["nowhere"]
    yield "an input as an output", rectified(1, 3, 4, 4), ["--outputs", "data"], ["'data'", "input"]
    yield "two channels swapped", rectified(1, 2, 4, 4), ["--swap-rb"], ["2 channels"]
    yield "a mean of two channels", rectified(1, 3, 4, 4), ["--mean", "1,2"], ["[2, 1, 1]", "[1, 3, 4, 4]"]
    yield "a batch of none", rectified(1, 3, 4, 4), ["--batch", "0"], ["0"]
    yield "an input that is none", rectified(1, 3, 4, 4), ["--input", "other=1x3x4x4"], ["other"]
    for option, value in (("--mean", "1,2,3"), ("--scale", "2"), ("--swap-rb", None)):
        words = [option] if value is None else [option, value]
        yield f"{option} of no image", rectified(3, 4, 4), words, ["'data'", "[3, 4, 4]"]
    for option, value in (("--mean", "1,nan,3"), ("--scale", "inf")):
        yield f"{option} {value}", rectified(1, 3, 4, 4), [option, value], ["not finite"]
    yield "no elements", rectified(1, 3, 0, 4), [], ["without elements", "[1, 3, 0, 4]"]
