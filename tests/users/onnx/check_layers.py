#!/usr/bin/env python3
"""Converts the cases of the tables, runs them in onnxruntime and compares their outputs with Caffe's.

    check_layers.py [--convert COMMAND [--peer] | --module] [--keep FOLDER] [ROW | ROW/CASE]...

COMMAND names the files that it reads and writes, as in "syncblob convert {prototxt} {caffemodel} -o
{onnx}", which is what runs without it; --peer asks for the right values alone. --module calls the
Python module in this process. --keep leaves each case's prototxt, caffemodel, ONNX, inputs and wanted outputs in a folder. A status of 0
means that nothing is wrong, and that nothing is refused that should not be.
"""

import argparse
import collections
import concurrent.futures
import pathlib
import sys

import numpy

import cases
import converting
from answers import Answers
from running import Wrong, check

# What ONNX has no words for, or what Caffe itself makes no sense of.
MAY_BE_REFUSED = ("PoolingEmptyWindow", "DetectionOutputEta")

Result = collections.namedtuple("Result", "name status message")


def check_case(case, wanted, convert, keep=None, peer=False):
    """What becomes of one case."""
    prototxt, model = case.net.text(), case.net.model()
    if keep:
        keep_files(keep / case.name.replace("/", "-"), case, wanted)
    try:
        converted = convert(prototxt, model)
        if keep:
            (keep / f"{case.name.replace('/', '-')}.onnx").write_bytes(converted)
        check(case.net, converted, wanted, peer)
    except converting.Refused as error:
        return Result(case.name, "refused", str(error))
    except Wrong as error:
        return Result(case.name, "wrong", str(error))
    return Result(case.name, "right", "")


def keep_files(stem, case, wanted):
    stem.with_suffix(".prototxt").write_text(case.net.text())
    stem.with_suffix(".caffemodel").write_bytes(case.net.model())
    numpy.savez(stem.with_suffix(".inputs.npz"), **case.net.inputs)
    numpy.savez(stem.with_suffix(".wanted.npz"), **wanted)


def check_row(row, convert, only=None, **options):
    """What becomes of the cases of a row, or of one of them."""
    of_row, kept = cases.cases_of(row), Answers.read(row).cases
    if [case.digest() for case in of_row] != [digest for digest, _ in kept]:
        sys.exit(f"{row}: the answers are those of other cases; ./dev caffe --answers renews them")
    return [check_case(case, wanted, convert, **options) for case, (_, wanted) in zip(of_row, kept)
            if only is None or case.name == only]


def check_named(name, command, options):
    """In a process of its own; without a command, by the module."""
    convert = converting.by_command(command) if command else converting.by_module
    return check_row(name.split("/")[0], convert, name if "/" in name else None, **options)


def print_row(name, results, every):
    """The counts, and the first message of each kind, or every one. How many cases are bad."""
    counts = collections.Counter(result.status for result in results)
    print(f"{name:26}{counts['right']:7}{counts['wrong']:7}{counts['refused']:9}")
    bad = 0
    for status in ("wrong", "refused"):
        told = [result for result in results if result.status == status]
        fails = status == "wrong" or name.split("/")[0] not in MAY_BE_REFUSED
        bad += len(told) if fails else 0
        for result in told if every else told[:1]:
            print(f"{'FAILED ' if fails else '    '}{status} {result.name}: {result.message}", flush=True)
    return counts, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--convert", default=converting.SYNCBLOB, metavar="COMMAND")
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--module", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--every", action="store_true", help="print every message")
    parser.add_argument("rows", nargs="*", metavar="ROW")
    arguments = parser.parse_args()
    names = arguments.rows or list(cases.TABLES)
    unknown = [name for name in names if name.split("/")[0] not in cases.TABLES]
    if unknown:
        sys.exit(f"no row is called {unknown}; there are {' '.join(cases.TABLES)}")
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    command = None if arguments.module else arguments.convert
    print(f"{'':26}{'right':>7}{'wrong':>7}{'refused':>9}")
    sums, bad = collections.Counter(), 0
    with concurrent.futures.ProcessPoolExecutor() as pool:
        options = {"keep": arguments.keep, "peer": arguments.peer}
        jobs = [pool.submit(check_named, name, command, options) for name in names]
        for name, job in zip(names, jobs):
            counts, failed = print_row(name, job.result(), arguments.every)
            sums, bad = sums + counts, bad + failed
    print(f"{'all':26}{sums['right']:7}{sums['wrong']:7}{sums['refused']:9}")
    print(f"{sums.total() - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
