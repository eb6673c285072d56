#!/usr/bin/env python3
"""Runs the cases of the tables in OpenCV 5, as check_layers.py runs them in onnxruntime.

    check_opencv.py PYTHON SYNCBLOB [--cases N] [ROW]...

PYTHON is that of an environment with OpenCV 5 (tests/steps/onnx.sh makes one), SYNCBLOB our command. Printed is
a table in Markdown: of N cases of each row those that are right in the classic engine and in the new one, to
1e-4 of the largest value, and what OpenCV says of the others. Nothing of it is a failure.
"""

import argparse
import collections
import pathlib
import subprocess
import sys

import numpy

import cases
import converting
from answers import Answers
from comparing import array_problem, detections_problem

ENGINES = ("classic", "new")
TOLERANCE = 1e-4  # OpenCV convolves by other algorithms
RUN = pathlib.Path(__file__).resolve().parent / "peers/run_opencv_cases.py"


def problem_of(case, wanted, folder):
    """Why OpenCV's outputs are not Caffe's, or None."""
    if (folder / "error.txt").exists():
        return " ".join((folder / "error.txt").read_text().split())
    if not (folder / "outputs.npz").exists():
        return "the process ends"
    with numpy.load(folder / "outputs.npz") as file:
        found = dict(file)
    if set(found) != set(wanted) and len(found) == len(wanted):
        found = dict(zip(wanted, found.values()))
    for name, array in wanted.items():
        if name not in found:
            return f"wrong: no output {name}"
        compare = detections_problem if name in case.net.detections else array_problem
        same = found[name].size == array.size
        problem = compare(found[name].reshape(array.shape) if same else found[name], array, TOLERANCE)
        if problem:
            return f"wrong: {problem}"
    return None


def run(python, engine, folders):
    """OpenCV ends the process for some nets: those behind them get another one."""
    left = list(folders)
    while left:
        subprocess.run([python, "-B", RUN, engine, *left], capture_output=True, check=False)
        done = [folder for folder in left
                if (folder / "outputs.npz").exists() or (folder / "error.txt").exists()]
        left = left[len(done) + 1:]


def write(case, wanted, converted, folder):
    folder.mkdir()
    (folder / "net.onnx").write_bytes(converted)
    numpy.savez(folder / "inputs.npz", **case.net.inputs)
    (folder / "outputs.txt").write_text("\n".join(wanted))


def problems_of(row, number, convert, python):
    """Of each engine why the cases are wrong, or None for each; cases that are refused by us are left out."""
    chosen = list(zip(cases.cases_of(row), Answers.read(row).cases))
    chosen = chosen[::max(1, len(chosen) // number)][:number]
    problems = {engine: [] for engine in ENGINES}
    for engine in ENGINES:
        with converting.temporary_folder() as top:
            made = []
            for index, (case, (_, wanted)) in enumerate(chosen):
                try:
                    converted = convert(case.net.text(), case.net.model())
                    write(case, wanted, converted, top / str(index))
                except converting.Refused:
                    continue
                made.append((case, wanted, top / str(index)))
            run(python, engine, [folder for _, _, folder in made])
            problems[engine] = [problem_of(*each) for each in made]
    return problems


def cell(problems):
    right = problems.count(None)
    return f"{right} of {len(problems)}" if right < len(problems) else "all"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", type=pathlib.Path)
    parser.add_argument("syncblob")
    parser.add_argument("--cases", type=int, default=20, metavar="N")
    parser.add_argument("rows", nargs="*", metavar="ROW")
    arguments = parser.parse_intermixed_args()
    convert = converting.by_command(f"{arguments.syncblob} convert {{prototxt}} {{caffemodel}} -o {{onnx}}")
    print("| layer | classic engine | new engine | what OpenCV says |\n| --- | --- | --- | --- |")
    for row in arguments.rows or cases.TABLES:
        problems = problems_of(row, arguments.cases, convert, arguments.python)
        told = collections.Counter(f"{engine}: {problem[-150:]}" for engine, each in problems.items()
                                   for problem in each if problem)
        first = "<br>".join(f"{text} ({count})" for text, count in told.most_common(3)).replace("|", "/")
        print(f"| {row} | {' | '.join(cell(problems[engine]) for engine in ENGINES)} | {first} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
