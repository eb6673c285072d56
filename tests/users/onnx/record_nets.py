#!/usr/bin/env python3
"""Runs whole nets on Caffe and compares its answers with those that are kept.

    record_nets.py BUILD [--write] [NET...]

BUILD is the folder where own_forward and own_survey were built. With --write the answers are kept
instead.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import whole
from comparing import difference
from nets import read_answers, write_inputs

LEAST = 1e-4
OTHER_KERNELS = {"OPENBLAS_CORETYPE": "Prescott"}  # those of the oldest processors


def run(command, **variables):
    done = subprocess.run(command, text=True, capture_output=True, check=False, env={**os.environ, **variables})
    if done.returncode != 0:
        sys.exit(f"{command[0]} {command[1]}:\n{done.stderr}")
    return done.stdout


class Caffe:
    """Its programs, on one net whose files are in a folder."""

    def __init__(self, build, name, folder):
        self.build, self.name, self.folder = build, name, folder
        self.net, self.model, self.inputs = (folder / each for each in ("net", "model", "inputs"))
        self.net.write_text(whole.text_for_caffe(name))
        self.shapes = whole.Shapes.from_survey(run([build / "own_survey", self.net]))
        self.inputs.write_bytes(write_inputs(whole.input_arrays(name, self.shapes).values()))

    def write_model(self, factors):
        self.model.write_bytes(whole.model_of(self.name, self.shapes, factors))

    def factors(self):
        if self.name in whole.TRAINED:
            return {}
        self.write_model({})
        lines = run([self.build / "own_survey", self.net, self.model, self.inputs]).splitlines()
        return {layer: float(factor) for layer, factor in (line.split("\t") for line in lines)}

    def outputs(self, **variables):
        (self.folder / "list").write_text(f"{self.net} {self.model} {self.inputs}\n")
        run([self.build / "own_forward", self.folder / "list", self.folder / "out"], **variables)
        return read_answers((self.folder / "out").read_bytes())[0]


def tolerance(name, one, other):
    """Of an output's largest value: four times what separates two of Caffe's own answers."""
    apart = difference(other, one, whole.is_detections(name, one.shape))
    if apart is None:
        sys.exit(f"{name}: two answers of Caffe's are too far apart: this net is no measure")
    return max(LEAST, float(f"{4 * apart:.2g}"))


def answer(caffe):
    """The factors of a net's weights, its outputs, and the tolerance of each."""
    factors = caffe.factors()
    caffe.write_model(factors)
    outputs = caffe.outputs()
    others = caffe.outputs(**OTHER_KERNELS)
    return factors, outputs, {each: tolerance(caffe.name, array, others[each]) for each, array in outputs.items()}


def check(build, name, folder, kept):
    """Why Caffe's answer is not the one that is kept."""
    if name not in kept.index:
        return ["nothing is kept"]
    caffe = Caffe(build, name, folder)
    caffe.model.write_bytes(kept.model(name))
    outputs = caffe.outputs()
    if list(outputs) != list(kept.index[name]["outputs"]):
        return [f"its outputs are {list(outputs)}"]
    return [f"{output}: {problem}" for output, array in outputs.items()
            for problem, _ in [kept.compare(name, output, array)] if problem]


def record(build, name, folder, kept):
    caffe = Caffe(build, name, folder)
    kept.put(name, caffe.shapes, *answer(caffe))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("nets", nargs="*", metavar="NET")
    arguments = parser.parse_intermixed_args()
    kept = whole.Kept.read()
    failed = passed = 0
    for name in arguments.nets or [name for name in whole.names() if name not in whole.NO_ANSWER]:
        with tempfile.TemporaryDirectory() as folder:
            if arguments.write:
                record(arguments.build.resolve(), name, pathlib.Path(folder), kept)
                print(name, kept.index[name]["outputs"], flush=True)
                continue
            problems = check(arguments.build.resolve(), name, pathlib.Path(folder), kept)
        print("".join(f"{name}: {problem}\n" for problem in problems), end="", flush=True)
        failed += bool(problems)
        passed += not problems
    if arguments.write:
        kept.write()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
