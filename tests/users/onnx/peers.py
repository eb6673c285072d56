#!/usr/bin/env python3
"""Converts nets with syncblob and with other programs (peers), and compares the outputs with Caffe's.

    peers.py ENVIRONMENTS SYNCBLOB [--peer NAME]... [NET]...
    peers.py ENVIRONMENTS SYNCBLOB [--peer NAME]... --cases N [ROW]...

SYNCBLOB is our command. The folder ENVIRONMENTS (made by tests/release/users.sh) has a Python environment for
each program, or a file NAME.why with the reason why there is none. An output is right within its
tolerance, and near within 2e-3 of its largest value. The run fails if a net is right in a peer, and
neither right nor near in syncblob. The option --cases runs N cases of each row of the tables.
"""

import argparse
import collections
import os
import pathlib
import subprocess
import sys

import numpy
import onnx

import cases
import whole
from comparing import by_label
from running import Refused, Wrong, reason, run_model, temporary_folder

NEAR = 2e-3  # relative to an output's largest value
OF_LAYERS = 1e-4  # tolerance of layers, because peers may sum in another order
OLDEST, NEWEST = 7, 17  # opsets; onnxruntime does not run models older than OLDEST
SECONDS = 900
STATUSES = ("right", "near", "wrong", "refused")
SCRIPTS = pathlib.Path(__file__).resolve().parent / "peers"

Answer = collections.namedtuple("Answer", "status message")

# The environment of each peer, and the commands that write net.onnx or outputs.npz.
CONVERT = ("@syncblob", "convert", "net.prototxt", "net.caffemodel", "-o", "net.onnx", "--force")
OURS = "syncblob"
PEERS = {
    OURS: (None, [CONVERT]),
    "CV 5 classic": ("opencv-5", [CONVERT, ("run.py", "opencv", "CLASSIC")]),
    "CV 5 new": ("opencv-5", [CONVERT, ("run.py", "opencv", "NEW")]),
    "OpenCV 4": ("opencv-4", [("run.py", "opencv", "CAFFE")]),
    "caffe2onnx": ("caffe2onnx", [("-m", "caffe2onnx.convert", "--prototxt", "net.prototxt", "--caffemodel",
                                   "net.caffemodel", "--onnx", "net.onnx")]),
    "caffe-onnx": ("caffe-onnx", [("-m", "src.cli", "net.prototxt", "net.caffemodel", "net", ".")]),
    "X2Paddle": ("x2paddle", [("run.py", "x2paddle")]),
    "MNN": ("mnn", [("run.py", "mnn")]),
    "mmdnn": ("mmdnn", [("run.py", "mmdnn")]),
}


def run(command, folder, python, syncblob):
    first, *rest = command
    words = [syncblob, *rest] if first == "@syncblob" else [
        python, "-B", SCRIPTS / first if first.endswith(".py") else first, *rest]
    limited = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(words, cwd=folder, text=True, errors="replace", capture_output=True,
                              check=False, timeout=SECONDS, env=limited)
    except subprocess.TimeoutExpired as error:
        raise Refused(f"no result within {SECONDS} s") from error
    if done.returncode != 0:
        raise Refused(reason(done))


def outputs_of(peer, folder, arguments):
    environment, commands = PEERS[peer]
    python = environment and arguments.environments / environment / "bin/python"
    for name in ("net.onnx", "outputs.npz"):
        (folder / name).unlink(missing_ok=True)
    for command in commands:
        run(command, folder, python, arguments.syncblob)
    with numpy.load(folder / "inputs.npz") as file:
        inputs = dict(file)
    if (folder / "outputs.npz").exists():
        with numpy.load(folder / "outputs.npz") as file:
            return dict(file)
    if not (folder / "net.onnx").exists():
        raise Refused("it reports no error, but writes no model")
    model = onnx.load(folder / "net.onnx")
    if all(opset.version < OLDEST for opset in model.opset_import):
        try:
            model = onnx.version_converter.convert_version(model, NEWEST)
        except Exception as error:  # onnx raises several classes
            raise Refused(f"onnx.version_converter: {error}") from error
    return run_model(model.SerializeToString(), as_declared(model, inputs))


def as_declared(model, inputs):
    """Some models declare inputs with the channels last."""
    sizes = [[size.dim_value for size in each.type.tensor_type.shape.dim] for each in model.graph.input]
    def declared(array):
        moved = numpy.moveaxis(array, 1, -1) if array.ndim == 4 else array
        return moved if list(array.shape) not in sizes and list(moved.shape) in sizes else array
    return {name: declared(array) for name, array in inputs.items()}


def problem(wanted, found, tolerance):
    """Accepts outputs with other shapes of the same size."""
    if wanted.detections:
        return wanted.problem(by_label(found) if found.shape[-1] == 7 else found, tolerance)
    if found.size != numpy.prod(wanted.shape):
        return f"shape {list(found.shape)}, Caffe's is {wanted.shape}"
    if found.ndim == len(wanted.shape) == 4 and list(numpy.moveaxis(found, -1, 1).shape) == wanted.shape:
        found = numpy.moveaxis(found, -1, 1)
    return wanted.problem(found.reshape(wanted.shape), tolerance)


def best_problem(name, wanted, found, tolerance):
    """If no output is called `name`, accepts any right output."""
    if name in found:
        return problem(wanted, found[name], tolerance)
    problems = [problem(wanted, each, tolerance) for each in found.values()]
    return "no outputs" if not problems else None if None in problems else problems[0]


def judge(subject, found):
    for status, least in (("right", OF_LAYERS), ("near", NEAR)):
        bad = {name: best_problem(name, wanted, found, max(least, wanted.tolerance))
               for name, wanted in subject.wanted.items()}
        bad = {name: each for name, each in bad.items() if each}
        if not bad:
            return Answer(status, "")
    return Answer("wrong", "; ".join(f"{name}: {each}" for name, each in bad.items()))


def answer(peer, subject, folder, arguments):
    why = arguments.environments / f"{PEERS[peer][0]}.why"
    if why.exists():
        return Answer("absent", why.read_text().strip())
    try:
        return judge(subject, outputs_of(peer, folder, arguments))
    except (Refused, Wrong) as error:  # Wrong: onnxruntime does not run the model
        return Answer("refused", str(error))


def answers_of(subject, peers, arguments):
    with temporary_folder() as folder:
        (folder / "net.prototxt").write_text(subject.text())
        (folder / "net.caffemodel").write_bytes(subject.model())
        inputs = subject.inputs
        if subject.name == whole.TEXTBOX:  # only Caffe needs the prior boxes as inputs
            inputs = {"data": inputs["data"]}
        numpy.savez(folder / "inputs.npz", **inputs)
        (folder / "outputs.txt").write_text("\n".join(subject.wanted))
        return {peer: answer(peer, subject, folder, arguments) for peer in peers}


def print_messages(answers):
    for peer, each in answers:
        if each.message:
            print(f"    {peer}: {each.status}: {' '.join(each.message.split())[:200]}", flush=True)


def check_nets(peers, arguments):
    kept = whole.Kept.read()
    for name in arguments.names or whole.names():
        if name in whole.NO_ANSWER:
            print(f"{name:<60} not compared: {whole.NO_ANSWER[name][0]}")
            continue
        answers = answers_of(whole.WholeNet(name, kept), peers, arguments)
        print(f"{name:<60}" + "".join(f" {each.status:>12}" for each in answers.values()), flush=True)
        print_messages(answers.items())
        yield name, answers


def check_layers(peers, arguments):
    for row in arguments.names or cases.TABLES:
        of_row = cases.answered(row)
        chosen = of_row[::max(1, len(of_row) // arguments.cases)][:arguments.cases]
        results = {case.name: answers_of(case, peers, arguments) for case in chosen}
        results = {name: each for name, each in results.items() if each[OURS].status != "refused"}
        right = [sum(each[peer].status == "right" for each in results.values()) for peer in peers]
        print(f"{row:<60}" + "".join(f" {f'{count} of {len(results)}':>12}" for count in right), flush=True)
        reasons = {(peer, each[peer].status): (peer, each[peer]) for each in results.values() for peer in peers}
        print_messages(reasons.values())
        yield from results.items()


def is_behind(answers):
    others = (each.status for peer, each in answers.items() if PEERS[peer][0] and CONVERT not in PEERS[peer][1])
    return "right" in others and answers[OURS].status not in ("right", "near")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environments", type=lambda name: pathlib.Path(name).resolve())
    parser.add_argument("syncblob", type=lambda name: pathlib.Path(name).resolve())
    parser.add_argument("--peer", action="append", choices=PEERS)
    parser.add_argument("--cases", type=int, metavar="N")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_intermixed_args()
    peers = [peer for peer in PEERS if peer == OURS or not arguments.peer or peer in arguments.peer]
    print(f"{'':<60}" + "".join(f" {peer:>12}" for peer in peers))
    results = dict((check_layers if arguments.cases else check_nets)(peers, arguments))
    print(f"\n{'':<20}" + "".join(f" {status:>8}" for status in STATUSES))
    for peer in peers:
        counts = collections.Counter(answers[peer].status for answers in results.values())
        print(f"{peer:<20}" + "".join(f" {counts[status]:>8}" for status in STATUSES))
    behind = [name for name, answers in results.items() if is_behind(answers)]
    print("".join(f"a peer is right: {name}\n" for name in behind), end="")
    print(f"{len(results) - len(behind)} passed, {len(behind)} failed")
    sys.exit(1 if behind else 0)


if __name__ == "__main__":
    main()
