#!/usr/bin/env python3
"""Caffe's detectors in OpenCV 4, which imports them, and in OpenCV 5, by syncblob.opencv:

    boxes.py make FOLDER            nets, weights and pictures; needs syncblob
    boxes.py run FOLDER OUT.npz     what the installed OpenCV answers
    boxes.py compare FOUR.npz FIVE.npz
"""
import os
import pathlib
import shutil
import sys

import numpy as np

DATA = pathlib.Path(os.environ.get("SYNCBLOB_TEST_DATA") or
                    pathlib.Path(__file__).resolve().parents[4] / "shared/data")
# Real weights, and sizes of pictures: the first one runs on each picture of a pyramid.
CASCADE = {"mtcnn_kpzhang93_det1": [(1, 12, 12), (1, 45, 61), (3, 40, 40)],
           "mtcnn_kpzhang93_det2": [(1, 24, 24), (5, 24, 24)],
           "mtcnn_kpzhang93_det3": [(1, 48, 48), (5, 48, 48)]}
# Weights at random.
DETECTORS = ("mobilenet-ssd__voc_MobileNetSSD_deploy", "mobilenet-ssd__deploy",
             "nvidia_caffe__VGGNet_coco_SSD_300x300")
TOLERANCE = 1e-4  # of scores, of boxes' sides as parts of the picture, and of the cascade's numbers


def make(folder):
    for name, sizes in CASCADE.items():
        shutil.copy(DATA / "nets" / f"{name}.prototxt", folder)
        shutil.copy(DATA / f"{name}.caffemodel", folder)
        random = np.random.default_rng(1)
        np.savez(folder / f"{name}.npz", *(random.standard_normal((n, 3, h, w)).astype("float32")
                                           for n, h, w in sizes))
    for name in DETECTORS:
        shutil.copy(DATA / "nets" / f"{name}.prototxt", folder)
        net = make_weights(folder / f"{name}.prototxt", folder / f"{name}.caffemodel")
        shape = net.shapes[net.inputs[0]]
        np.savez(folder / f"{name}.npz", picture(shape))


def picture(shape):
    """Soft patches, as pixels without their mean over 128."""
    random = np.random.default_rng(2)
    small = random.standard_normal((*shape[:2], shape[2] // 20 + 1, shape[3] // 20 + 1))
    large = small.repeat(20, 2).repeat(20, 3)[:, :, :shape[2], :shape[3]]
    return large.astype("float32")


def make_weights(prototxt, path):
    """Weights that keep the deviation of what goes through them, as a net needs to tell anything."""
    import syncblob
    random = np.random.default_rng(3)
    net, model = syncblob.Net(prototxt), syncblob.Model(prototxt.stem)
    for layer in net.layers:
        inputs = net.shapes[layer.bottoms[0]][1] if layer.bottoms else 0
        blobs = blobs_of(layer, inputs, random)
        if blobs:
            model.add_layer(layer.name, layer.type, blobs)
    model.save(path)
    return net


def blobs_of(layer, inputs, random):
    parameters = layer.params.get("convolution_param", {})
    floats = lambda shape: random.standard_normal(shape).astype("float32")  # noqa: E731
    if layer.type == "Convolution":
        sides = parameters.get("kernel_size") or [parameters["kernel_h"], parameters["kernel_w"]]
        shape = (parameters["num_output"], inputs // parameters.get("group", 1), *(sides * 2)[:2])
        weights = floats(shape) * np.float32((2 / np.prod(shape[1:])) ** 0.5)
        bias = [floats(shape[0]) * np.float32(0.1)] if parameters.get("bias_term", True) else []
        return [weights, *bias]
    if layer.type == "BatchNorm":
        return [np.zeros(inputs, "float32"), np.ones(inputs, "float32"), np.ones(1, "float32")]
    if layer.type == "Scale":
        return [np.ones(inputs, "float32"), floats(inputs) * np.float32(0.1)]
    if layer.type == "Normalize":
        return [np.full(inputs, 20, "float32")]
    return []


def run(folder, out):
    import cv2
    answers, read = {"version": np.array(cv2.__version__)}, reader(cv2)
    for prototxt in sorted(folder.glob("*.prototxt")):
        net = read(str(prototxt), str(prototxt.with_suffix(".caffemodel")))
        names = sorted(net.getUnconnectedOutLayersNames())
        with np.load(prototxt.with_suffix(".npz")) as pictures:
            for number, pixels in enumerate(pictures.values()):
                net.setInput(pixels)
                for name, answer in zip(names, net.forward(names)):
                    answers[f"{prototxt.stem}/{number}/{name}"] = answer
    np.savez(out, **answers)


def reader(cv2):
    if hasattr(cv2.dnn, "readNetFromCaffe"):
        return cv2.dnn.readNetFromCaffe
    import syncblob
    return syncblob.opencv.readNetFromCaffe


def compare(first, second):
    """How far the answers are apart; true if they are near enough."""
    with np.load(first) as four, np.load(second) as five:
        print(f"OpenCV {four['version']} beside {five['version']}")
        if set(four) != set(five):
            print(f"other outputs: {sorted(set(four) ^ set(five))}")
            return False
        return all([near(name, four[name], five[name]) for name in four if name != "version"])


def near(name, four, five):
    if four.ndim == 4 and four.shape[-1] == 7:
        four, five = rows(four), rows(five)
    if four.shape != five.shape:
        print(f"{name}: shapes {four.shape} and {five.shape}")
        return False
    apart = float(abs(four - five).max()) if four.size else 0.0
    print(f"{name}: {'x'.join(map(str, four.shape))}, at most {apart:.1e} apart")
    return apart <= TOLERANCE


def rows(answer):
    """Detections in Caffe's order, by label. OpenCV 4 has them by score, and behind them rows of
    zeros, as many as keep_top_k is more than there are."""
    found = answer.reshape(-1, 7)
    found = found[found[:, 2] > 0]
    return found[np.lexsort((-found[:, 2], found[:, 1], found[:, 0]))]


def main():
    command, first, *rest = sys.argv[1:]
    if command == "make":
        make(pathlib.Path(first))
        return 0
    if command == "run":
        run(pathlib.Path(first), *rest)
        return 0
    return 0 if compare(first, *rest) else 1


if __name__ == "__main__":
    sys.exit(main())
