"""Converts or runs a net with a peer: run.py PEER [ARGUMENT]

Reads net.prototxt, net.caffemodel, net.onnx, inputs.npz and outputs.txt (the outputs' names) in the current
folder; writes net.onnx or outputs.npz.
"""

import pathlib
import subprocess
import sys

import numpy


def inputs():
    with numpy.load("inputs.npz") as file:
        return dict(file)


def mmdnn():
    programs = pathlib.Path(sys.executable).parent
    for words in ("mmtoir -f caffe -n net.prototxt -w net.caffemodel -o net",
                  "mmtocode -f onnx -n net.pb -w net.npy -o made.py -dw made.npy",
                  "mmtomodel -f onnx -in made.py -iw made.npy -o net.onnx"):
        name, *options = words.split()
        status = subprocess.run([sys.executable, programs / name, *options], check=False).returncode
        if status != 0:
            sys.exit(status)


def mnn():
    """Calls MNN's module, because MNN's command would install packages and send reports to MNN's makers."""
    import _tools
    import MNN

    def tensor(array):
        return MNN.Tensor(array.shape, MNN.Halide_Type_Float, array, MNN.Tensor_DimensionType_Caffe)

    def values(output):
        host = tensor(numpy.zeros(output.getShape(), numpy.float32))
        output.copyToHostTensor(host)
        return numpy.array(host.getNumpyData()).reshape(output.getShape())

    _tools.mnnconvert("mnnconvert -f CAFFE --modelFile net.caffemodel --prototxt net.prototxt "
                      "--MNNModel net.mnn --bizCode net".split())
    net = MNN.Interpreter("net.mnn")
    session = net.createSession({"numThread": 1, "precision": "high"})
    wanted, arrays = net.getSessionInputAll(session), inputs()
    for name, each in wanted.items():
        net.resizeTensor(each, arrays[name].shape)
    net.resizeSession(session)
    for name, each in wanted.items():
        each.copyFrom(tensor(arrays[name]))
    net.runSession(session)
    return {name: values(each) for name, each in net.getSessionOutputAll(session).items()}


def opencv(how):
    """OpenCV 4 reads Caffe's files (CAFFE). OpenCV 5 reads ONNX with its engine CLASSIC or NEW."""
    import cv2
    net = cv2.dnn.readNetFromCaffe("net.prototxt", "net.caffemodel") if how == "CAFFE" else \
        cv2.dnn.readNetFromONNX("net.onnx", getattr(cv2.dnn, f"ENGINE_{how}"))
    for name, array in inputs().items():
        net.setInput(array, name)
    names = pathlib.Path("outputs.txt").read_text().split("\n")
    try:
        net.forward(names)
    except cv2.error:  # OpenCV omits an unread top if another top of its layer is read
        names = net.getUnconnectedOutLayersNames()
    return dict(zip(names, net.forward(names)))


def x2paddle():
    import paddle
    from x2paddle.convert import caffe2paddle
    caffe2paddle("net.prototxt", "net.caffemodel", "paddle", None, disable_feedback=True)
    sys.path.insert(0, "paddle")
    import x2paddle_code
    outputs = x2paddle_code.main(*map(paddle.to_tensor, inputs().values()))
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return {f"output_{i}": each.numpy() for i, each in enumerate(outputs)}


if __name__ == "__main__":
    found = globals()[sys.argv[1]](*sys.argv[2:])
    if found:
        numpy.savez("outputs.npz", **found)
