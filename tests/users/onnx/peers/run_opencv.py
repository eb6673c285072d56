"""Runs a net in OpenCV: run_opencv.py FOLDER caffe|classic|new. Reads net.prototxt and
net.caffemodel, or net.onnx, and inputs.npz and outputs.txt (the outputs' names) in the folder;
writes outputs.npz.

OpenCV 4 reads Caffe's files; OpenCV 5 reads ONNX, with its classic or its new engine.
"""

import pathlib
import sys

import cv2
import numpy

ENGINES = {"classic": "ENGINE_CLASSIC", "new": "ENGINE_NEW"}


def read(folder, how):
    if how == "caffe":
        return cv2.dnn.readNetFromCaffe(str(folder / "net.prototxt"), str(folder / "net.caffemodel"))
    return cv2.dnn.readNetFromONNX(str(folder / "net.onnx"), getattr(cv2.dnn, ENGINES[how]))


def run(folder, how):
    net = read(folder, how)
    with numpy.load(folder / "inputs.npz") as inputs:
        for name, array in inputs.items():
            net.setInput(array, name)
    names = names_of_outputs(net, folder)
    numpy.savez(folder / "outputs.npz", **dict(zip(names, net.forward(names))))


def names_of_outputs(net, folder):
    """Returns the wanted outputs' names if the net has them, else the unconnected outputs' names.
    OpenCV omits an unread top if another top of its layer is read."""
    names = (folder / "outputs.txt").read_text().split("\n")
    try:
        net.forward(names)
        return names
    except cv2.error:
        return net.getUnconnectedOutLayersNames()


if __name__ == "__main__":
    run(pathlib.Path(sys.argv[1]), sys.argv[2])
