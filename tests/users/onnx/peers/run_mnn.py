"""Converts and runs a net with MNN: run_mnn.py FOLDER. Reads net.prototxt, net.caffemodel and
inputs.npz in the folder; writes net.mnn and outputs.npz.

Calls the converter's module instead of MNN's command, because the command installs packages and
sends reports to MNN's makers.
"""

import pathlib
import sys

import numpy
import _tools
import MNN


def convert(folder):
    _tools.mnnconvert(["mnnconvert", "-f", "CAFFE", "--modelFile", str(folder / "net.caffemodel"),
                       "--prototxt", str(folder / "net.prototxt"),
                       "--MNNModel", str(folder / "net.mnn"), "--bizCode", "net"])


def tensor(array):
    return MNN.Tensor(array.shape, MNN.Halide_Type_Float, array, MNN.Tensor_DimensionType_Caffe)


def values(output):
    host = tensor(numpy.zeros(output.getShape(), numpy.float32))
    output.copyToHostTensor(host)
    return numpy.array(host.getNumpyData()).reshape(output.getShape())


def run(folder):
    net = MNN.Interpreter(str(folder / "net.mnn"))
    session = net.createSession({"numThread": 1, "precision": "high"})
    wanted = net.getSessionInputAll(session)
    with numpy.load(folder / "inputs.npz") as inputs:
        arrays = dict(inputs)
    for name, each in wanted.items():
        net.resizeTensor(each, arrays[name].shape)
    net.resizeSession(session)
    for name, each in wanted.items():
        each.copyFrom(tensor(arrays[name]))
    net.runSession(session)
    outputs = {name: values(each) for name, each in net.getSessionOutputAll(session).items()}
    numpy.savez(folder / "outputs.npz", **outputs)


if __name__ == "__main__":
    convert(pathlib.Path(sys.argv[1]))
    run(pathlib.Path(sys.argv[1]))
