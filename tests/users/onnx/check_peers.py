#!/usr/bin/env python3
"""Converts whole nets by syncblob and by other programs, runs them and compares their outputs with Caffe's.

    check_peers.py ENVIRONMENTS SYNCBLOB [--peer NAME]... [NET]...

ENVIRONMENTS is a folder that has a Python environment for each of the programs (tests/steps/onnx.sh makes
them), or a file NAME.why, which says why there is none; SYNCBLOB is our command. An output is right within
its tolerance (check_nets.py), near within 2e-3 of its largest value. The names and the shapes of a peer's
outputs may be any: its values count. The run fails if a net is right in a peer, and neither right nor near
in syncblob.
"""

import argparse
import collections
import os
import pathlib
import subprocess
import sys

import numpy
import onnx

import converting
import whole
from comparing import array_problem, detections_problem
from running import Wrong, input_names, run_model

NEAR = 2e-3  # of an output's largest value
OLDEST, NEWEST = 7, 17  # opsets: onnxruntime runs none before; what has an older one is made a newer one
SECONDS = 900
SCRIPTS = pathlib.Path(__file__).resolve().parent / "peers"

Answer = collections.namedtuple("Answer", "status message")

# The environment of each peer, and its commands, each a program of the environment or a script here. They
# leave net.onnx or outputs.npz in the folder.
CONVERT = ("@syncblob", "convert", "net.prototxt", "net.caffemodel", "-o", "net.onnx", "--force")
OURS = "syncblob"
PEERS = {
    OURS: (None, [CONVERT]),
    "CV 5 classic": ("opencv5", [CONVERT, ("run_opencv.py", ".", "classic")]),
    "CV 5 new": ("opencv5", [CONVERT, ("run_opencv.py", ".", "new")]),
    "OpenCV 4": ("opencv4", [("run_opencv.py", ".", "caffe")]),
    "caffe2onnx": ("caffe2onnx", [("-m", "caffe2onnx.convert", "--prototxt", "net.prototxt", "--caffemodel",
                                   "net.caffemodel", "--onnx", "net.onnx")]),
    "caffe-onnx": ("caffe-onnx", [("-m", "src.cli", "net.prototxt", "net.caffemodel", "net", ".")]),
    "X2Paddle": ("x2paddle", [("run_paddle.py", ".")]),
    "MNN": ("mnn", [("run_mnn.py", ".")]),
    "mmdnn": ("mmdnn", [("run_mmdnn.py", ".")]),
}


class Refused(Exception):
    """Why a program has no outputs for a net, in its words."""


def words_of(command, python, syncblob):
    first, *rest = command
    if first == "@syncblob":
        return [syncblob, *rest]
    return [python, "-B", SCRIPTS / first if first.endswith(".py") else first, *rest]


def run(command, folder):
    limited = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, cwd=folder, text=True, errors="replace", capture_output=True,
                              check=False, timeout=SECONDS, env=limited)
    except subprocess.TimeoutExpired as error:
        raise Refused(f"nothing in {SECONDS} s") from error
    if done.returncode != 0:
        raise Refused(converting.reason(done))


def outputs_of(peer, folder, environments, syncblob):
    """The outputs by name, as far as the peer has any."""
    environment, commands = PEERS[peer]
    python = environment and environments / environment / "bin/python"
    for name in ("net.onnx", "outputs.npz"):
        (folder / name).unlink(missing_ok=True)
    for command in commands:
        run(words_of(command, python, syncblob), folder)
    with numpy.load(folder / "inputs.npz") as file:
        inputs = dict(file)
    if (folder / "outputs.npz").exists():
        with numpy.load(folder / "outputs.npz") as file:
            return dict(file)
    if not (folder / "net.onnx").exists():
        raise Refused("it ends without an error, and without a model")
    model = in_new_opset((folder / "net.onnx").read_bytes())
    return run_model(model, as_declared(model, inputs), set(inputs).isdisjoint(input_names(model)))


def in_new_opset(model):
    loaded = onnx.load_from_string(model)
    if any(opset.version >= OLDEST for opset in loaded.opset_import):
        return model
    try:
        return onnx.version_converter.convert_version(loaded, NEWEST).SerializeToString()
    except Exception as error:  # of several classes
        raise Refused(f"onnx.version_converter: {error}") from error


def as_declared(model, inputs):
    """The inputs, channels last where the model has them so."""
    sizes = [[size.dim_value for size in each.type.tensor_type.shape.dim]
             for each in onnx.load_from_string(model).graph.input]
    moved = {name: numpy.moveaxis(array, 1, -1) for name, array in inputs.items() if array.ndim == 4}
    return {name: moved[name] if name in moved and list(moved[name].shape) in sizes else array
            for name, array in inputs.items()}


def problem(kept, name, output, found, tolerance):
    """Why the values are not Caffe's, or None; the shape may be another."""
    size, shape, _ = kept.index[name]["outputs"][output]
    if whole.is_detections(name, shape):
        return detections_problem(by_label(found), kept.values[name, output].reshape(shape), tolerance)
    if found.size != numpy.prod(shape):
        return f"shape {list(found.shape)}, Caffe's is {shape}"
    if found.ndim == len(shape) == 4 and list(numpy.moveaxis(found, -1, 1).shape) == shape:
        found = numpy.moveaxis(found, -1, 1)
    sample = whole.sampled(found)
    return array_problem(sample.reshape(size), kept.values[name, output], tolerance)


def by_label(rows):
    """Rows of detections in Caffe's order: OpenCV 4 has the best of all first."""
    if rows.shape[-1] != 7:
        return rows
    rows = rows.reshape(-1, 7)
    return rows[numpy.lexsort((-rows[:, 2], rows[:, 1], rows[:, 0]))][None, None]


def best_problem(kept, name, output, found, tolerance):
    """Of the output of this name, or of the one that is most like it."""
    if output in found:
        return problem(kept, name, output, found[output], tolerance)
    problems = [problem(kept, name, output, each, tolerance) for each in found.values()]
    return "no outputs" if not problems else None if None in problems else problems[0]


def judge(kept, name, found):
    wanted = kept.index[name]["outputs"]
    for status, tolerance in (("right", None), ("near", NEAR)):
        problems = {output: best_problem(kept, name, output, found, tolerance or wanted[output][2])
                    for output in wanted}
        bad = {output: each for output, each in problems.items() if each}
        if not bad:
            return Answer(status, "")
    return Answer("wrong", "; ".join(f"{output}: {each}" for output, each in bad.items()))


def answer(peer, kept, name, folder, environments, syncblob):
    environment = PEERS[peer][0]
    if environment and (environments / f"{environment}.why").exists():
        return Answer("absent", (environments / f"{environment}.why").read_text().strip())
    try:
        return judge(kept, name, outputs_of(peer, folder, environments, syncblob))
    except (Refused, Wrong) as error:  # Wrong: a model that onnxruntime does not run
        return Answer("refused", str(error))


def write_files(kept, name, folder):
    (folder / "net.prototxt").write_text(whole.text_of(name))
    (folder / "net.caffemodel").write_bytes(kept.model(name))
    inputs = whole.input_arrays(name, kept.shapes(name))
    if name == whole.TEXTBOX:  # Caffe gets the prior boxes as inputs
        inputs = {"data": inputs["data"]}
    numpy.savez(folder / "inputs.npz", **inputs)
    (folder / "outputs.txt").write_text("\n".join(kept.index[name]["outputs"]))


def answers_of(name, peers, kept, environments, syncblob):
    with converting.temporary_folder() as folder:
        write_files(kept, name, folder)
        return {peer: answer(peer, kept, name, folder, environments, syncblob) for peer in peers}


def print_net(name, answers):
    print(f"{name:<60}" + "".join(f" {each.status:>12}" for each in answers.values()), flush=True)


def print_messages(name, answers):
    for peer, each in answers.items():
        if each.message:
            print(f"    {peer}: {each.status}: {' '.join(each.message.split())[:200]}", flush=True)


def is_behind(answers):
    """Whether a peer gets a net right that is wrong here."""
    others = (each.status for peer, each in answers.items() if PEERS[peer][0] and CONVERT not in PEERS[peer][1])
    return "right" in others and answers[OURS].status not in ("right", "near")


def print_sums(peers, results):
    print(f"\n{'':<20}" + "".join(f" {status:>8}" for status in ("right", "near", "wrong", "refused")))
    for peer in peers:
        counts = collections.Counter(answers[peer].status for answers in results.values())
        print(f"{peer:<20}" + "".join(f" {counts[status]:>8}" for status in ("right", "near", "wrong", "refused")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environments", type=pathlib.Path)
    parser.add_argument("syncblob", type=pathlib.Path)
    parser.add_argument("--peer", action="append", choices=PEERS)
    parser.add_argument("nets", nargs="*", metavar="NET")
    arguments = parser.parse_intermixed_args()
    peers = [peer for peer in PEERS if peer == OURS or not arguments.peer or peer in arguments.peer]
    kept = whole.Kept.read()
    results = {}
    print(f"{'':<60}" + "".join(f" {peer:>12}" for peer in peers))
    for name in arguments.nets or whole.names():
        if name in whole.NO_ANSWER:
            print(f"{name:<60} not compared: {whole.NO_ANSWER[name]}")
            continue
        results[name] = answers_of(name, peers, kept, arguments.environments.resolve(),
                                   arguments.syncblob.resolve())
        print_net(name, results[name])
        print_messages(name, results[name])
    print_sums(peers, results)
    behind = [name for name, answers in results.items() if is_behind(answers)]
    print("".join(f"a peer is right: {name}\n" for name in behind), end="")
    print(f"{len(results) - len(behind)} passed, {len(behind)} failed")
    sys.exit(1 if behind else 0)


if __name__ == "__main__":
    main()
