#!/usr/bin/env python3
"""Converts nets, runs them in onnxruntime and compares their outputs with Caffe's.

    check.py layers [--command WORDS] [ROW | ROW/CASE]...
    check.py nets [--command WORDS] [--proto FILE] [--small] [NET]...

"layers" checks the cases of the tables. "nets" checks the whole nets of SYNCBLOB_TEST_DATA/nets. WORDS is a
command that converts, such as "syncblob convert"; check.py appends names of files. With Caffe's caffe.proto
(--proto), each whole net is also converted from a caffemodel alone. --small leaves out slow nets. The exit
status is 0 if no net is wrong, and only nets that ONNX cannot express are refused.
"""

import argparse
import collections
import concurrent.futures
import pathlib
import sys
import time

import cases
import running
import whole

# ONNX cannot express these rows, or Caffe's results are meaningless.
MAY_BE_REFUSED = ("PoolingEmptyWindow", "DetectionOutputEta")

Result = collections.namedtuple("Result", "name status message")


def result(subject, convert, model=None):
    try:
        running.check(subject, convert(subject.text(), model or subject.model()))
        return Result(subject.name, "right", "")
    except running.Refused as error:
        return Result(subject.name, "refused", str(error))
    except running.Wrong as error:
        return Result(subject.name, "wrong", str(error))


def check_row(name, arguments):
    convert = running.by_command(f"{arguments.command} {running.FILES}")
    return [result(case, convert) for case in cases.answered(name.split("/")[0])
            if name in (case.name, case.name.split("/")[0])]


def print_row(name, results):
    counts = collections.Counter(each.status for each in results)
    print(f"{name:26}{counts['right']:7}{counts['wrong']:7}{counts['refused']:9}")
    may_be_refused = name.split("/")[0] in MAY_BE_REFUSED
    bad = [each for each in results if each.status == "wrong" or each.status == "refused" and not may_be_refused]
    for each in bad or [each for each in results if each.status == "refused"][:1]:
        print(f"{'FAILED ' if bad else '    '}{each.status} {each.name}: {each.message}", flush=True)
    return counts, len(bad)


def check_layers(arguments):
    names = arguments.names or list(cases.TABLES)
    print(f"{'':26}{'right':>7}{'wrong':>7}{'refused':>9}")
    sums, bad = collections.Counter(), 0
    with concurrent.futures.ProcessPoolExecutor() as pool:
        jobs = [pool.submit(check_row, name, arguments) for name in names]
        for name, job in zip(names, jobs):
            counts, failed = print_row(name, job.result())
            sums, bad = sums + counts, bad + failed
    print(f"{'all':26}{sums['right']:7}{sums['wrong']:7}{sums['refused']:9}")
    return sums.total() - bad, bad


def is_expected(outcome):
    if outcome.name not in whole.NO_ANSWER:
        return outcome.status == "right"
    return outcome.status == "refused" and all(word in outcome.message for word in whole.NO_ANSWER[outcome.name][1:])


def check_net(net, messages, arguments):
    ways = [("", running.by_command(f"{arguments.command} {running.FILES}"), None)]
    if messages and net.wanted and net.name not in (*whole.TRAINED, whole.TEXTBOX):
        ways.append((", without its prototxt", running.by_command(f"{arguments.command} {{caffemodel}} -o {{onnx}}"),
                     whole.model_with_net(messages, net)))
    for what, convert, model in ways:
        began = time.monotonic()
        outcome = result(net, convert, model)
        yield is_expected(outcome)
        print(f"{'' if is_expected(outcome) else 'FAILED '}{outcome.status:9} {time.monotonic() - began:6.1f} s  "
              f"{net.name}{what}: {outcome.message}", flush=True)


def check_nets(arguments):
    names = arguments.names or [name for name in whole.names() if not (arguments.small and name in whole.LARGE)]
    if not names:
        sys.exit(77)
    messages, kept_nets = arguments.proto and whole.messages_of(arguments.proto), whole.Kept.read()
    counts = collections.Counter(right for name in names
                                 for right in check_net(whole.WholeNet(name, kept_nets), messages, arguments))
    return counts[True], counts[False]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("layers", "nets"))
    parser.add_argument("--command", default="syncblob convert", metavar="WORDS")
    parser.add_argument("--proto", type=pathlib.Path, help="Caffe's caffe.proto")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_intermixed_args()
    passed, failed = {"layers": check_layers, "nets": check_nets}[arguments.what](arguments)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
