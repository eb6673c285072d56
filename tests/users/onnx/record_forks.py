#!/usr/bin/env python3
"""Answers to the cases of layers of forks, compared with those that are kept.

    record_forks.py [--write] [ROW...]

They are OpenCV's, whose wheels below 5 read Caffe's nets, or those of references.py. With --write
the answers are kept instead.
"""

import argparse
import sys

import numpy

import cases
import references
from answers import Answers, write_or_compare
from cases import forks
from comparing import array_problem
from nets import Net

ROUNDING = 2e-6  # of an output's largest value: what other kernels change


def opencv_outputs(net):
    """Of nets with one output. OpenCV reads no blobs without axes."""
    import cv2  # which not every environment has
    weights = Net()
    weights.weights = [(name, kind, [numpy.atleast_1d(array) for array in arrays])
                       for name, kind, arrays in net.weights]
    files = (numpy.frombuffer(data, numpy.uint8) for data in (net.text().encode(), weights.model()))
    loaded = cv2.dnn.readNetFromCaffe(*files)
    for name, values in net.inputs.items():
        loaded.setInput(values, name)
    (name,) = references.output_names(net)
    return {name: loaded.forward()}


def answer(row):
    outputs = opencv_outputs if row in forks.OF_OPENCV else references.run
    return Answers(row, [(case.digest(), outputs(case.net)) for case in cases.cases_of(row)])


def problems(found, kept):
    """Why the answers that are kept are not these."""
    if [digest for digest, _ in found.cases] != [digest for digest, _ in kept.cases]:
        yield f"{found.row}: the answers that are kept are those of other cases"
        return
    for index, ((_, ours), (_, theirs)) in enumerate(zip(found.cases, kept.cases)):
        for name in {*ours, *theirs}:
            why = array_problem(ours[name], theirs[name], ROUNDING)
            if why:
                yield f"{found.row}/{index:03}: {name}: {why}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("rows", nargs="*", metavar="ROW")
    arguments = parser.parse_args()
    found = (answer(row) for row in arguments.rows or forks.TABLE)
    sys.exit(write_or_compare(found, problems, arguments.write))


if __name__ == "__main__":
    main()
