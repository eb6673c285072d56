#!/usr/bin/env python3
"""Computes answers for the nets and compares the answers with the stored ones, or stores them (--write).

    record.py layers BUILD [--write] [ROW...]
    record.py nets BUILD [--write] [NET...]
    record.py forks - [--write] [ROW...]

BUILD is the build folder of own_answers, which runs Caffe. For layers of forks, OpenCV 4's importer or
references.py computes the answers.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy

import cases
import nets
import references
import whole
from cases import forks
from comparing import Wanted, put_answers

ROUNDING = 2e-6  # tolerance relative to an output's largest value, because BLAS kernels round differently
LEAST = 1e-4     # the least tolerance of a whole net
OTHER_KERNELS = {"OPENBLAS_CORETYPE": "Prescott"}  # the kernels for the oldest processors


def run(command, **variables):
    done = subprocess.run(command, text=True, capture_output=True, check=False, env={**os.environ, **variables})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stderr}")
    return done.stdout


def run_caffe(build, files, folder, **variables):
    (folder / "list").write_text("".join(f"{' '.join(map(str, each))}\n" for each in files))
    run([build / "own_answers", "forward", folder / "list", folder / "out"], **variables)
    return nets.read_answers((folder / "out").read_bytes())


def files_of(case, folder):
    stem = folder / case.name.replace("/", "-")
    files = [stem.with_suffix(suffix) for suffix in (".prototxt", ".caffemodel", ".inputs")]
    files[0].write_text(case.text())
    files[1].write_bytes(case.model())
    files[2].write_bytes(nets.write_inputs(case.inputs.values()))
    return files


def opencv_outputs(net):
    """OpenCV needs at least one axis, which blobs without axes lack."""
    import cv2  # not every environment has OpenCV
    weights = nets.Net()
    weights.weights = [(name, kind, [numpy.atleast_1d(array) for array in arrays])
                       for name, kind, arrays in net.weights]
    files = (numpy.frombuffer(data, numpy.uint8) for data in (net.text().encode(), weights.model()))
    loaded = cv2.dnn.readNetFromCaffe(*files)
    for name, values in net.inputs.items():
        loaded.setInput(values, name)
    (name,) = references.output_names(net)
    return {name: loaded.forward()}


def answers_of(row, build):
    of_row = cases.cases_of(row)
    if row in forks.TABLE:
        outputs = opencv_outputs if row in forks.OF_OPENCV else references.run
        return [(case.digest(), outputs(case.net)) for case in of_row]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        outputs = run_caffe(build, [files_of(case, folder) for case in of_row], folder)
    return [(case.digest(), output) for case, output in zip(of_row, outputs)]


def case_problems(row, build, write):
    found = answers_of(row, build)
    if write:
        put_answers(cases.MODULES[row], row, found)
        return
    for case, (_, outputs) in zip(cases.answered(row), found):
        if list(outputs) != list(case.wanted):
            yield f"{case.name}: outputs {list(outputs)}, the stored ones are {list(case.wanted)}"
            continue
        problems = {name: case.wanted[name].problem(array, ROUNDING) for name, array in outputs.items()}
        yield from (f"{case.name}: {name}: {why}" for name, why in problems.items() if why)


def shapes_of(lines):
    shapes = whole.Shapes({}, [])
    for line in lines.splitlines():
        what, name, *words = line.split("\t")
        if what == "input":
            shapes.inputs[name] = [int(word) for word in words]
            continue
        if not shapes.layers or shapes.layers[-1][0] != name:
            shapes.layers.append((name, words[0], []))
        shapes.layers[-1][2].append([int(word) for word in words[1:]])
    return shapes


class Caffe:
    def __init__(self, build, name, folder):
        self.build, self.name, self.folder = build, name, folder
        self.net, self.model, self.inputs = (folder / each for each in ("net", "model", "inputs"))
        self.net.write_text(whole.text_for_caffe(name))
        self.shapes = shapes_of(run([build / "own_answers", "shapes", self.net]))
        self.inputs.write_bytes(nets.write_inputs(whole.input_arrays(name, self.shapes).values()))

    def write_model(self, factors):
        self.model.write_bytes(whole.model_of(self.name, self.shapes, factors))

    def outputs(self, **variables):
        return run_caffe(self.build, [(self.net, self.model, self.inputs)], self.folder, **variables)[0]


def tolerance(name, one, other):
    """Returns the tolerance: four times the relative difference between two of Caffe's answers."""
    apart = Wanted(one.shape, one, LEAST, whole.is_detections(name, one.shape)).difference(other)
    if apart is None:
        sys.exit(f"{name}: two answers of Caffe's are too far apart for this net to be a test")
    return max(LEAST, float(f"{4 * apart:.2g}"))


def net_problems(name, build, write, kept):
    with tempfile.TemporaryDirectory() as folder:
        caffe = Caffe(build, name, pathlib.Path(folder))
        factors = kept.factors(name)
        caffe.write_model(factors)
        outputs = caffe.outputs()
        if write:
            others = caffe.outputs(**OTHER_KERNELS)
            tolerances = {each: tolerance(name, array, others[each]) for each, array in outputs.items()}
            kept.put(name, caffe.shapes, factors, outputs, tolerances)
            return
    wanted = kept.wanted(name)
    if list(outputs) != list(wanted):
        yield f"{name}: its outputs are {list(outputs)}, the stored outputs are {list(wanted)}"
        return
    problems = {output: wanted[output].problem(array) for output, array in outputs.items()}
    yield from (f"{name}: {output}: {why}" for output, why in problems.items() if why)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("layers", "nets", "forks"))
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_intermixed_args()
    build, write, kept = arguments.build.resolve(), arguments.write, whole.Kept.read()
    failed = tried = 0
    if arguments.what == "nets":
        names = arguments.names or [name for name in whole.names() if name not in whole.NO_ANSWER]
        results = (net_problems(name, build, write, kept) for name in names)
    else:
        names = arguments.names or (cases.OF_CAFFE if arguments.what == "layers" else forks.TABLE)
        results = (case_problems(name, build, write) for name in names)
    for problems in results:
        problems = list(problems)
        print("".join(f"{line}\n" for line in problems), end="", flush=True)
        failed, tried = failed + bool(problems), tried + 1
    if write and arguments.what == "nets":
        kept.write()
    print(f"{tried - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
