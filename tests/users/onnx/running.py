"""Converts nets to ONNX and runs them in onnxruntime."""

import contextlib
import pathlib
import shlex
import subprocess
import tempfile

import numpy
import onnx
import onnxruntime

OPSET = 17
SILENT = 4     # a log level: failures raise exceptions, too
SECONDS = 600  # for one net, on a busy machine
LINES = 20
FILES = "{prototxt} {caffemodel} -o {onnx}"


class Refused(Exception):
    """A converter refused a net. The message is the converter's message."""


class Wrong(Exception):
    """A converted net differs from Caffe's net. The message is the reason."""


@contextlib.contextmanager
def temporary_folder():
    with tempfile.TemporaryDirectory() as name:
        yield pathlib.Path(name)


def by_command(command):
    """Replaces words such as {onnx} in the command with file names."""
    def convert(prototxt, model):
        with temporary_folder() as folder:
            files = {suffix: folder / f"net.{suffix}" for suffix in ("prototxt", "caffemodel", "onnx")}
            files["prototxt"].write_text(prototxt)
            files["caffemodel"].write_bytes(model)
            words = [word.format(**files) for word in shlex.split(command)]
            run = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False,
                                 timeout=SECONDS)
            if run.returncode != 0 or not files["onnx"].exists():
                raise Refused(reason(run))
            return files["onnx"].read_bytes()
    return convert


def reason(run):
    lines = [line.strip() for line in (run.stderr + run.stdout).splitlines() if line.strip()]
    if "Traceback" in run.stderr:
        lines = run.stderr.strip().splitlines()[-1:]
    return "; ".join(lines[:LINES]) or f"status {run.returncode}"


def check_model(model):
    """Returns the sizes that the model declares for its outputs. An unknown size is None. With full_check, onnx.checker
    infers all shapes and compares the inferred shapes with the declared shapes.
    """
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # onnx raises several classes
        raise Wrong(f"onnx.checker: {first_line(error)}") from error
    loaded = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
    versions = {opset.domain: opset.version for opset in loaded.opset_import}
    if versions.get("", versions.get("ai.onnx")) != OPSET:
        raise Wrong(f"opsets {versions}, not {OPSET}")
    return {output.name: [size.dim_value if size.HasField("dim_value") else None
                          for size in output.type.tensor_type.shape.dim] for output in loaded.graph.output}


def run_model(model, inputs):
    """If no input has the name of a model's input, assigns the inputs in order."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = SILENT
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        wanted = [each.name for each in session.get_inputs()]
        if set(inputs).isdisjoint(wanted) and len(wanted) == len(inputs):
            inputs = dict(zip(wanted, inputs.values()))
        arrays = session.run(None, {name: inputs[name] for name in wanted})
    except Exception as error:  # onnxruntime raises several classes; KeyError: an unknown input
        raise Wrong(f"onnxruntime: {first_line(error)}") from error
    return {output.name: array for output, array in zip(session.get_outputs(), arrays)}


def check_outputs(subject, found, promised=None):
    wanted = subject.wanted
    if subject.names_differ and len(found) == len(wanted):
        promised = promised and dict(zip(wanted, promised.values()))
        found = dict(zip(wanted, found.values()))
    if set(found) != set(wanted):
        raise Wrong(f"outputs {sorted(found)}, Caffe's are {sorted(wanted)}")
    for name, output in wanted.items():
        problem = output.problem(found[name]) or (promised and output.promise_problem(promised[name]))
        if found[name].dtype != numpy.float32:
            problem = f"{found[name].dtype}, not float32"
        if problem:
            raise Wrong(f"{name}: {problem}")


def check(subject, model):
    check_outputs(subject, run_model(model, subject.inputs), check_model(model))


def first_line(error):
    lines = [line for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0][:200]
