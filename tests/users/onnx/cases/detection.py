"""The layers of SSD's detectors."""

import numpy

from nets import counted
from .values import some


def prior_parameters(draw):
    """Always sets "clip", because the default of "clip" differs between versions of Caffe."""
    count = draw.choice((1, 1, 1, 2, 3))
    least = [draw.choice((4, 7, 7.5, 10.9, 30, 60.25)) for _ in range(count)]
    parameters = {"min_size": least}
    if draw.chance(60):
        parameters["max_size"] = [size + draw.choice((1, 5.5, 20)) for size in least]
    if draw.chance(70):
        ratios = [draw.choice((1, 2, 3, 0.5, 1.5, 0.3333)) for _ in range(draw.between(1, 3))]
        parameters["aspect_ratio"] = ratios
    parameters.update(some(draw, flip=(True, False), offset=(0.5, 0, 0.25)))
    parameters["clip"] = draw.chance(50)
    if draw.chance(70):
        parameters["variance"] = draw.choice(([0.1, 0.1, 0.2, 0.2], [0.1], [0.05, 0.1, 0.15, 0.2]))
    parameters.update(draw.choice(({}, {}, {"img_size": 48}, {"img_h": 40, "img_w": 56})))
    parameters.update(draw.choice(({}, {}, {"step": 8}, {"step": 7.5}, {"step_h": 6, "step_w": 9.25})))
    return parameters


def prior_box(draw, net):
    net.input("features", counted([draw.between(1, 2), 1, *draw.shape(2, 4)]))
    net.input("image", counted([1, 1, draw.between(20, 70), draw.between(20, 70)]))
    net.layer("PriorBox", ["features", "image"], "priors", prior_box_param=prior_parameters(draw))


def boxes(draw, count):
    """Each row is xmin, ymin, xmax, ymax."""
    centre, size = draw.uniform([count, 2], 0.25, 0.75), draw.uniform([count, 2], 0.1, 0.45)
    return numpy.concatenate([centre - size / 2, centre + size / 2], axis=1)


def detection_inputs(draw, net, share, deviation=0.5):
    batch, priors, classes = draw.between(1, 3), draw.between(1, 16), draw.between(2, 5)
    variance = draw.choice(([0.1, 0.1, 0.2, 0.2], [0.25, 0.2, 0.15, 0.1]))
    sides = 1 if share else classes
    return classes, [
        net.input("location", draw.numbers([batch, priors * sides * 4], deviation)),
        net.input("confidence", draw.uniform([batch, priors * classes])),
        net.input("priors", numpy.stack([boxes(draw, priors).reshape(-1),
                                         numpy.tile(numpy.float32(variance), priors)])[None])]


def detection_parameters(draw, classes, share):
    nms = some(draw, nms_threshold=(0.45, 0.3, 0.2, 0.6), top_k=(1, 3, 5, 400))
    parameters = {"num_classes": classes, "nms_param": nms}
    if not share or draw.chance(40):
        parameters["share_location"] = share
    # Shared locations have the label -1. If the background had this label, Caffe would skip all locations.
    backgrounds = (0, 0, classes - 1, classes + 3) + (() if share else (-1,))
    parameters.update(some(draw, background_label_id=backgrounds, keep_top_k=(-1, 1, 4, 8, 200),
                           confidence_threshold=(0.01, 0.3, 0.6, 0.98),
                           variance_encoded_in_target=(True, False),
                           code_type=("CENTER_SIZE", "CENTER_SIZE", "CORNER", "CORNER_SIZE")))
    return parameters


def detect(net, bottoms, parameters):
    net.layer("DetectionOutput", bottoms, "detections", detection_output_param=parameters)
    net.detections.add("detections")


def detection_output(draw, net):
    share = draw.chance(65)
    classes, bottoms = detection_inputs(draw, net, share)
    parameters = detection_parameters(draw, classes, share)
    whole_steps = parameters.get("variance_encoded_in_target", False)
    if whole_steps and parameters.get("code_type", "CORNER") != "CENTER_SIZE":
        net.inputs["location"] *= numpy.float32(0.1)  # otherwise most boxes are inverted
    detect(net, bottoms, parameters)


def inverted(draw, net):
    classes, bottoms = detection_inputs(draw, net, True, 3.0)
    detect(net, bottoms, {"num_classes": classes, "nms_param": {"nms_threshold": 0.3}, "code_type": "CORNER",
                          "confidence_threshold": 0.2})


def eta(draw, net):
    """The threshold decreases after each box that non-maximum suppression keeps."""
    classes, bottoms = detection_inputs(draw, net, True, 0.2)
    detect(net, bottoms, {
        "num_classes": classes, "nms_param": {"nms_threshold": 0.8, "eta": draw.choice((0.5, 0.9))},
        "code_type": "CENTER_SIZE"})


TABLE = {
    "PriorBox": (80, prior_box),
    "DetectionOutput": (140, detection_output),
    "DetectionOutputInverted": (10, inverted),
    "DetectionOutputEta": (10, eta),
}
