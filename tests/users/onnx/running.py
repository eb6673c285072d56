"""A converted net in onnxruntime, beside Caffe's answers."""

import numpy
import onnx
import onnxruntime

from comparing import array_problem, detections_problem

OPSET = 17
SILENT = 4  # a failure is an exception, too


class Wrong(Exception):
    """Why a converted net is not Caffe's."""


def check_model(model):
    """That it is valid; the sizes that it promises for its outputs, with None for any. The model is
    bytes, or the path of a file."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # of several classes
        raise Wrong(f"onnx.checker: {first_line(error)}") from error
    loaded = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
    versions = {opset.domain: opset.version for opset in loaded.opset_import}
    if versions.get("", versions.get("ai.onnx")) != OPSET:
        raise Wrong(f"opsets {versions}, not {OPSET}")
    return {output.name: [size.dim_value if size.HasField("dim_value") else None
                          for size in output.type.tensor_type.shape.dim] for output in loaded.graph.output}


def run_model(model, inputs, by_place=False):
    """The outputs by name."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = SILENT
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        wanted = [each.name for each in session.get_inputs()]
        if by_place and len(wanted) == len(inputs):
            inputs = dict(zip(wanted, inputs.values()))
        unknown = sorted(set(wanted) - set(inputs))
        if unknown:
            raise Wrong(f"inputs {unknown} are none of Caffe's {sorted(inputs)}")
        arrays = session.run(None, {name: inputs[name] for name in wanted})
    except Wrong:
        raise
    except Exception as error:  # onnxruntime's own, of several classes
        raise Wrong(f"onnxruntime: {first_line(error)}") from error
    return {output.name: array for output, array in zip(session.get_outputs(), arrays)}


def input_names(model):
    return [each.name for each in onnx.load_from_string(model).graph.input]


def check_outputs(found, promised, wanted, detections, names_differ):
    """All outputs, by name, against Caffe's."""
    if names_differ and len(found) == len(wanted):
        promised = promised and dict(zip(wanted, promised.values()))
        found = dict(zip(wanted, found.values()))
    if set(found) != set(wanted):
        raise Wrong(f"outputs {sorted(found)}, Caffe's are {sorted(wanted)}")
    for name, array in wanted.items():
        if found[name].dtype != numpy.float32:
            raise Wrong(f"{name}: {found[name].dtype}, not float32")
        problem = (detections_problem if name in detections else array_problem)(found[name], array)
        if problem:
            raise Wrong(f"{name}: {problem}")
        if promised is None:
            continue
        sizes = promised[name]
        if name in detections:  # how many there are, no graph can know
            sizes = [real if size is None else size for size, real in zip(sizes, array.shape)]
        if sizes != list(array.shape):
            raise Wrong(f"{name}: the graph promises {promised[name]}, Caffe's shape is {list(array.shape)}")


def check(net, model, wanted, peer=False):
    """Raises Wrong unless the converted net gives Caffe's outputs. A peer's net may be of another
    opset, and its inputs and outputs may have other names, in Caffe's order, and no shapes."""
    if not peer:
        check_outputs(run_model(model, net.inputs), check_model(model), wanted, net.detections,
                      net.names_differ)
        return
    found = run_model(model, net.inputs, set(net.inputs).isdisjoint(input_names(model)))
    check_outputs(found, None, wanted, net.detections, set(found) != set(wanted))


def first_line(error):
    lines = [line for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0][:200]
