#!/usr/bin/env python3
"""Compares the outputs of Caffe's detectors in OpenCV 4 and in OpenCV 5, for which syncblob.opencv converts the nets:

    boxes.py run OUT.npz            stores the outputs of the installed OpenCV
    boxes.py compare FOUR.npz FIVE.npz
"""
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "onnx"))
import whole  # noqa: E402: of that folder
from comparing import Wanted, by_label  # noqa: E402: of that folder
from nets import Draw  # noqa: E402: of that folder

PICTURES = {"mtcnn_kpzhang93_det1, trained": [(1, 3, 12, 12), (1, 3, 45, 61), (3, 3, 40, 40)],
            "mtcnn_kpzhang93_det2, trained": [(1, 3, 24, 24), (5, 3, 24, 24)],
            "mtcnn_kpzhang93_det3, trained": [(1, 3, 48, 48), (5, 3, 48, 48)],
            "mobilenet-ssd__voc_MobileNetSSD_deploy": [(1, 3, 300, 300)],
            "mobilenet-ssd__deploy": [(1, 3, 300, 300)],
            "nvidia_caffe__VGGNet_coco_SSD_300x300": [(1, 3, 300, 300)]}
TOLERANCE = 1e-4  # relative to an output's largest value, but for detections at least to 1


def run(out):
    import cv2
    answers, kept = {"version": np.array(cv2.__version__)}, whole.Kept.read()
    for name, shapes in PICTURES.items():
        net = opened(cv2, whole.WholeNet(name, kept))
        names = sorted(net.getUnconnectedOutLayersNames())
        for number, shape in enumerate(shapes):
            net.setInput(Draw(name, number).numbers(shape))
            for output, answer in zip(names, net.forward(names)):
                answers[f"{name}/{number}/{output}"] = answer
    np.savez(out, **answers)


def opened(cv2, net):
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder, f"net.{suffix}") for suffix in ("prototxt", "caffemodel")]
        files[0].write_text(net.text())
        files[1].write_bytes(net.model())
        if hasattr(cv2.dnn, "readNetFromCaffe"):
            return cv2.dnn.readNetFromCaffe(*map(str, files))
        import syncblob
        return syncblob.opencv.readNetFromCaffe(*map(str, files))


def compare(first, second):
    with np.load(first) as four, np.load(second) as five:
        print(f"OpenCV {four['version']} and {five['version']}")
        if set(four) != set(five):
            print(f"outputs of only one version: {sorted(set(four) ^ set(five))}")
            return False
        return all([near(name, four[name], five[name]) for name in four if name != "version"])


def near(name, four, five):
    detections = four.ndim == 4 and four.shape[-1] == 7
    if detections:  # OpenCV 4 appends rows of zeros up to keep_top_k
        four, five = (by_label(found[..., found[0, 0, :, 2] > 0, :]) for found in (four, five))
    wanted = Wanted(four.shape, four, TOLERANCE, detections)
    problem = wanted.problem(five)
    print(f"{name}: {problem or f'{wanted.difference(five):.1e} apart'}")
    return not problem


if __name__ == "__main__":
    command, *files = sys.argv[1:]
    sys.exit(not {"run": lambda out: run(out) or True, "compare": compare}[command](*files))
