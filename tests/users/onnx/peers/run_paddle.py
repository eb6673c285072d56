"""Converts a net with X2Paddle and runs it in Paddle: run_paddle.py FOLDER. Reads net.prototxt,
net.caffemodel and inputs.npz in the folder; writes outputs.npz."""

import pathlib
import sys

import numpy
import paddle
from x2paddle.convert import caffe2paddle


def main():
    folder = pathlib.Path(sys.argv[1])
    made = folder / "paddle"
    caffe2paddle(str(folder / "net.prototxt"), str(folder / "net.caffemodel"), str(made), None,
                 disable_feedback=True)
    sys.path.insert(0, str(made))
    import x2paddle_code
    with numpy.load(folder / "inputs.npz") as inputs:
        outputs = x2paddle_code.main(*map(paddle.to_tensor, inputs.values()))
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    numpy.savez(folder / "outputs.npz", **{f"output_{i}": each.numpy() for i, each in enumerate(outputs)})


if __name__ == "__main__":
    main()
