"""Makes a net's model, or runs a net in onnxruntime: net.py make NAME MODEL; net.py run ONNX"""
import pathlib
import sys

import numpy
import onnxruntime

sys.path.append(str(pathlib.Path(__file__).parents[1] / "onnx"))
import whole  # noqa: E402


def make(name, model):
    """Makes a model with the weights of tests/users/onnx."""
    kept = whole.Kept.read()
    pathlib.Path(model).write_bytes(whole.model_of(name, kept.shapes(name), kept.factors(name)))


def run(net):
    """Runs the net once, on random values."""
    session = onnxruntime.InferenceSession(net, providers=["CPUExecutionProvider"])
    random = numpy.random.default_rng(45)
    feeds = {each.name: random.standard_normal([dim if isinstance(dim, int) else 1 for dim in each.shape], "float32")
             for each in session.get_inputs()}
    outputs = session.run(None, feeds)
    assert all(numpy.isfinite(output).all() for output in outputs)
    names = [each.name for each in session.get_outputs()]
    print(", ".join(f"{name} {'x'.join(map(str, output.shape))}" for name, output in zip(names, outputs)))


{"make": make, "run": run}[sys.argv[1]](*sys.argv[2:])
