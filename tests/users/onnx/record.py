#!/usr/bin/env python3
"""Runs every case on Caffe and compares its answers with those that are kept.

    record.py FORWARD [--write] [ROW...]

FORWARD is the program of forward.cpp. With --write the answers are kept instead.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import cases
from answers import Answers, write_or_compare
from comparing import array_problem, detections_problem
from nets import read_answers, write_inputs

ROUNDING = 2e-6  # of an output's largest value: what other kernels of a BLAS change


def run_caffe(forward, nets, folder):
    """The outputs of nets in files; none may be refused by Caffe."""
    (folder / "list").write_text("".join(f"{prototxt} {model} {inputs}\n"
                                         for prototxt, model, inputs in nets))
    run = subprocess.run([forward, folder / "list", folder / "out"], text=True, capture_output=True,
                         check=False)
    outputs = read_answers((folder / "out").read_bytes())
    if run.returncode != 0:
        refused = nets[len(outputs)][0]
        sys.exit(f"Caffe refuses {refused}:\n{refused.read_text()}\n{run.stderr}")
    return outputs


def write_files(case, folder):
    stem = folder / case.name.replace("/", "-")
    files = [stem.with_suffix(suffix) for suffix in (".prototxt", ".caffemodel", ".inputs")]
    net = case.net.for_caffe()
    files[0].write_text(net.text())
    files[1].write_bytes(case.net.model())
    files[2].write_bytes(write_inputs(net.inputs.values()))
    return files


def answer(forward, row):
    """Caffe's answers to the cases of a row."""
    of_row = cases.cases_of(row)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        outputs = run_caffe(forward, [write_files(case, folder) for case in of_row], folder)
    return Answers(row, [(case.digest(), output) for case, output in zip(of_row, outputs)])


def problems(found, kept):
    """Why the answers that are kept are not those of this Caffe."""
    row = found.row
    if [digest for digest, _ in found.cases] != [digest for digest, _ in kept.cases]:
        yield f"{row}: the answers that are kept are those of other cases"
        return
    rows_of = [case.net.detections for case in cases.cases_of(row)]
    for index, ((_, ours), (_, theirs)) in enumerate(zip(found.cases, kept.cases)):
        if list(ours) != list(theirs):
            yield f"{row}/{index:03}: outputs {list(ours)}, those that are kept are {list(theirs)}"
            continue
        for name, array in ours.items():
            problem = detections_problem if name in rows_of[index] else array_problem
            why = problem(array, theirs[name], ROUNDING)
            if why:
                yield f"{row}/{index:03}: {name}: {why}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("forward", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("rows", nargs="*", metavar="ROW")
    arguments = parser.parse_intermixed_args()
    forward = arguments.forward.resolve()
    found = (answer(forward, row) for row in arguments.rows or cases.OF_CAFFE)
    sys.exit(write_or_compare(found, problems, arguments.write))


if __name__ == "__main__":
    main()
