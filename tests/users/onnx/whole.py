"""Whole nets that people use, with random weights, and Caffe's stored answers."""

import collections
import math
import os
import pathlib
import re
import sys

import numpy

import nets
from comparing import Wanted, load_answers, sampled, save_answers
from nets import Draw

ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = pathlib.Path(os.environ.get("SYNCBLOB_TEST_DATA", ROOT / "../shared/data")) / "nets"

# Adapts a prototxt to the tests' Caffe, which has other names for some layers and fields.
SPELLINGS = ((r'"NormalizeBBox"', '"Normalize"'), (r"\bnormalize_bbox_param\b", "norm_param"),
             (r"(?m)^    (nms_threshold: \S+)\n    (top_k: \S+)$", r"    nms_param { \1 \2 }"),
             (r"\b(label_map_file|name_size_file|output_directory): *\"[^\"]*\"", ""))
TRAINED = {f"{net}, trained": (net, model) for net, model in (
    ("caffe__examples_cifar10_cifar10_full", "cifar10_full_everpeace_iter70000"),
    ("caffe__examples_cifar10_cifar10_quick", "cifar10_quick_skywang666_iter4000"),
    ("mtcnn_kpzhang93_det1", "mtcnn_kpzhang93_det1"), ("mtcnn_kpzhang93_det2", "mtcnn_kpzhang93_det2"),
    ("mtcnn_kpzhang93_det3", "mtcnn_kpzhang93_det3"))}
TEXTBOX = "opencv_contrib__text_textbox"
LARGE = ("caffe__examples_net_surgery_bvlc_caffenet_full_conv", "caffe__examples_siamese_mnist_siamese",
         "caffe__models_bvlc_alexnet_deploy", "caffe__models_bvlc_googlenet_deploy",
         "caffe__models_bvlc_reference_caffenet_deploy", "caffe__models_bvlc_reference_rcnn_ilsvrc13_deploy",
         "caffe__models_finetune_flickr_style_deploy", "deep-residual-networks__prototxt_ResNet_101_deploy",
         "deep-residual-networks__prototxt_ResNet_152_deploy", "hed__deploy",
         TEXTBOX, "nvidia_caffe__VGGNet_coco_SSD_300x300", "opencv_contrib__VGG_VOC0712_SSD_300x300",
         "opencv_contrib__ssd_ilsvrc15_300x300")
# The tests' Caffe cannot run these nets. Each row has the reason, and words of the converter's refusal.
NO_ANSWER = {
    "mobilenet-ssd__template_MobileNetSSD_deploy_template": (
        "a template with words instead of numbers", "line 2397", "'cls3x'"),
    "py-faster-rcnn__VGG16_end2end_test": ("a Python layer and ROIPooling", "'proposal' (Python)"),
}
NO_WEIGHTS = nets.field(1, b"net")  # a caffemodel

# TextBoxes' PriorBox layers have two centres in each place, which the tests' Caffe lacks. Caffe reads boxes that
# this file computes as OpenCV does.
IMAGE = 700
PLACES = {"conv4_3_norm": 88, "fc7": 44, "conv6_2": 22, "conv7_2": 11, "conv8_2": 6, "pool6": 1}
BOX_LAYERS = re.compile(r'(?ms)^layer \{\n  name: "(\w+)_mbox_priorbox"\n  type: "PriorBox"\n.*?^\}\n')
INPUT = 'layer {{ name: "{0}" type: "Input" top: "{0}" input_param {{ shape {{ dim: 1 dim: 2 dim: {1} }} }} }}\n'


def numbers(name, text):
    return [float(number) for number in re.findall(rf"\b{name}: *(\S+)", text)]


def boxes(text):
    least, most = numbers("min_size", text), numbers("max_size", text)
    yield from [(size, size) for size in least]
    yield from [(size, size) for size in numpy.sqrt([a * b for a, b in zip(least, most)])]
    for ratio in numpy.sqrt(numbers("aspect_ratio", text)):
        yield least[0] * ratio, least[0] / ratio


def priors(name, text):
    places = PLACES[name]
    centres = list(zip(numbers("offset_w", text), numbers("offset_h", text)))
    corners = [[(column + x) * IMAGE / places - width / 2, (row + y) * IMAGE / places - height / 2,
                (column + x) * IMAGE / places + width / 2, (row + y) * IMAGE / places + height / 2]
               for row in range(places) for column in range(places)
               for width, height in boxes(text) for x, y in centres]
    clipped = numpy.clip(numpy.float32(corners) / numpy.float32(IMAGE), 0, 1).reshape(-1)
    return numpy.stack([clipped, numpy.tile(numbers("variance", text), len(corners))])[None].astype("<f4")


def box_inputs(text):
    return {f"{layer[1]}_mbox_priorbox": priors(layer[1], layer[0]) for layer in BOX_LAYERS.finditer(text)}


def with_box_inputs(text):
    return BOX_LAYERS.sub(lambda layer: INPUT.format(f"{layer[1]}_mbox_priorbox",
                                                 priors(layer[1], layer[0]).shape[2]), text)


def names():
    if not DATA.exists():
        print(f"skipped: whole nets: {DATA} is not there; SYNCBLOB_TEST_DATA names another folder")
        return []
    return sorted([path.stem for path in DATA.glob("*.prototxt")] + list(TRAINED))


def text_of(name):
    net, _ = TRAINED.get(name, (name, None))
    return (DATA / f"{net}.prototxt").read_text()


def text_for_caffe(name):
    text = with_box_inputs(text_of(name)) if name == TEXTBOX else text_of(name)
    for pattern, word in SPELLINGS:
        text = re.sub(pattern, word, text)
    return text


# `inputs` is {name: shape}. `layers` has the name, type and shapes of the blobs of each layer with weights.
Shapes = collections.namedtuple("Shapes", "inputs layers")


def input_arrays(name, shapes):
    draw = Draw(f"{name}, inputs", 0)
    boxes = box_inputs(text_of(name)) if name == TEXTBOX else {}
    return {each: boxes[each] if each in boxes else draw.numbers(shape)
            for each, shape in shapes.inputs.items()}


def first_weights(kind, shapes, draw):
    """Draws weights, which weights_of multiplies by a factor."""
    if kind == "BatchNorm":
        return [draw.numbers(shapes[0], 0.1), draw.uniform(shapes[1], 0.5, 1.5), numpy.ones(1, "f4")]
    if kind in ("Normalize", "PReLU", "Scale"):
        first = draw.uniform(shapes[0], *((0, 0.5) if kind == "PReLU" else (0.5, 1.5)))
    else:
        first = draw.numbers(shapes[0], max(1, math.prod(shapes[0][1:])) ** -0.5)
    return [first, *(draw.numbers(shape, 0.1) for shape in shapes[1:])]


def weights_of(name, shapes, factors):
    layers = []
    for number, (layer, kind, blobs) in enumerate(shapes.layers):
        arrays = first_weights(kind, blobs, Draw(name, number))
        factor = numpy.float32(factors.get(layer, 1))
        arrays[0] *= factor
        if kind == "BatchNorm":
            arrays[1] *= factor * factor
        layers.append((layer, kind, arrays))
    return layers


def model_of(name, shapes, factors):
    if name in TRAINED:
        return (DATA.parent / f"{TRAINED[name][1]}.caffemodel").read_bytes()
    layers = weights_of(name, shapes, factors)
    return NO_WEIGHTS + b"".join(nets.field(100, nets.layer_message(*layer)) for layer in layers)


def messages_of(proto):
    sys.path.append(str(ROOT / "tests/users/golden"))
    from caffe_messages import Messages, read_descriptor
    return Messages(read_descriptor(proto))


def model_with_net(messages, net):
    """protobuf merges concatenated messages, so the weights are appended to the layers' messages."""
    from google.protobuf import text_format  # not every environment has protobuf
    message = text_format.Parse(text_for_caffe(net.name), messages.NetParameter())
    weights = {layer: arrays for layer, _, arrays in net.weights()}
    parts = []
    for number, layers, blobs in ((100, message.layer, 7), (2, message.layers, 6)):
        parts += [nets.field(number, layer.SerializeToString() + b"".join(
            nets.field(blobs, nets.blob_message(array)) for array in weights.get(layer.name, ())))
            for layer in layers]
    message.ClearField("layer")
    message.ClearField("layers")
    return message.SerializeToString() + b"".join(parts)


def is_detections(name, shape):
    return len(shape) == 4 and shape[3] == 7 and '"DetectionOutput"' in text_of(name)


class Kept:
    """Stores the shapes and factors of each net, and the shape, tolerance and values of each output."""

    def __init__(self, index, values):
        self.index, self.values = index, values

    @classmethod
    def read(cls):
        index, flat = load_answers("nets")
        values, at = {}, 0
        for name, net in index.items():
            for output, (size, _, _) in net["outputs"].items():
                values[name, output] = flat[at:at + size]
                at += size
        return cls(index, values)

    def shapes(self, name):
        return Shapes(self.index[name]["inputs"], self.index[name]["layers"])

    def factors(self, name):
        """A layer's factor makes the standard deviation of the layer's outputs 1. A new net has no factors."""
        net = self.index.get(name, {"layers": (), "factors": ()})
        return {layer[0]: factor for layer, factor in zip(net["layers"], net["factors"])}

    def wanted(self, name):
        outputs = self.index[name]["outputs"] if name in self.index else {}
        return {output: Wanted(shape, self.values[name, output], tolerance, is_detections(name, shape))
                for output, (_, shape, tolerance) in outputs.items()}

    def put(self, name, shapes, factors, outputs, tolerances):
        self.index[name] = {
            "inputs": shapes.inputs, "layers": shapes.layers,
            "factors": [factors.get(layer[0], 1) for layer in shapes.layers],
            "outputs": {output: [sampled(array).size, list(array.shape), tolerances[output]]
                        for output, array in outputs.items()}}
        for output, array in outputs.items():
            self.values[name, output] = sampled(array)

    def write(self):
        index = {name: self.index[name] for name in sorted(self.index)}
        save_answers("nets", index, [self.values[name, output] for name, net in index.items()
                                     for output in net["outputs"]])


class WholeNet:
    """WholeNet has the attributes of cases.Case."""

    names_differ = False
    detections = ("detection_out",)

    def __init__(self, name, kept):
        self.name, self.kept, self.wanted = name, kept, kept.wanted(name)
        self.inputs = input_arrays(name, kept.shapes(name)) if self.wanted else {}

    def text(self):
        return text_of(self.name)

    def weights(self):
        return weights_of(self.name, self.kept.shapes(self.name), self.kept.factors(self.name))

    def model(self):
        if not self.wanted:
            return NO_WEIGHTS
        return model_of(self.name, self.kept.shapes(self.name), self.kept.factors(self.name))
