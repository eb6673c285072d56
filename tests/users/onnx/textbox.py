"""TextBoxes' net. Its PriorBox layers have two centres in each place. The Caffe of the tests lacks such
layers, so this module computes the boxes as OpenCV does, and Caffe reads the boxes as inputs."""

import re

import numpy

IMAGE = 700
PLACES = {"conv4_3_norm": 88, "fc7": 44, "conv6_2": 22, "conv7_2": 11, "conv8_2": 6, "pool6": 1}
LAYERS = re.compile(r'(?ms)^layer \{\n  name: "(\w+)_mbox_priorbox"\n  type: "PriorBox"\n.*?^\}\n')
INPUT = 'layer {{ name: "{0}" type: "Input" top: "{0}" input_param {{ shape {{ dim: 1 dim: 2 dim: {1} }} }} }}\n'


def numbers(name, text):
    return [float(number) for number in re.findall(rf"\b{name}: *(\S+)", text)]


def boxes(text):
    """Yields the boxes' widths and heights."""
    least, most = numbers("min_size", text), numbers("max_size", text)
    yield from [(size, size) for size in least]
    yield from [(size, size) for size in numpy.sqrt([a * b for a, b in zip(least, most)])]
    for ratio in numpy.sqrt(numbers("aspect_ratio", text)):
        yield least[0] * ratio, least[0] / ratio


def priors(name, text):
    """Returns the box for each place, size and centre, followed by the boxes' variances."""
    places = PLACES[name]
    centres = list(zip(numbers("offset_w", text), numbers("offset_h", text)))
    corners = [[(column + x) * IMAGE / places - width / 2, (row + y) * IMAGE / places - height / 2,
                (column + x) * IMAGE / places + width / 2, (row + y) * IMAGE / places + height / 2]
               for row in range(places) for column in range(places)
               for width, height in boxes(text) for x, y in centres]
    clipped = numpy.clip(numpy.float32(corners) / numpy.float32(IMAGE), 0, 1).reshape(-1)
    return numpy.stack([clipped, numpy.tile(numbers("variance", text), len(corners))])[None].astype("<f4")


def inputs_of(text):
    """Returns the layers' boxes, by the names of their tops."""
    return {f"{layer[1]}_mbox_priorbox": priors(layer[1], layer[0]) for layer in LAYERS.finditer(text)}


def with_inputs(text):
    """Returns the net's text with these layers replaced by inputs."""
    return LAYERS.sub(lambda layer: INPUT.format(f"{layer[1]}_mbox_priorbox",
                                                 priors(layer[1], layer[0]).shape[2]), text)
