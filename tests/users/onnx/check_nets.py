#!/usr/bin/env python3
"""Converts whole nets, runs them in onnxruntime and compares their outputs with Caffe's.

    check_nets.py [--convert COMMAND [--peer]] [--proto FILE [--convert-model COMMAND]] [--small] [NET]...

COMMAND names the files that it reads and writes, as in "syncblob convert {prototxt} {caffemodel} -o
{onnx}". With Caffe's caffe.proto each net is also converted without its prototxt, from a caffemodel that
has the layers' parameters, by --convert-model. The nets are those of SYNCBLOB_TEST_DATA/nets, with
weights at random, and the trained ones beside them; --small leaves out those that take long.
"""

import argparse
import collections
import pathlib
import sys
import time

import converting
import whole
from check_layers import Result
from running import Wrong, check_model, input_names, run_model

FROM_MODEL = "syncblob convert {caffemodel} -o {onnx}"


def check(kept, name, model, peer):
    """Raises Wrong unless the converted net gives Caffe's outputs. How far they are apart, and may be."""
    inputs = whole.input_arrays(name, kept.shapes(name))
    promised = None if peer else check_model(model)
    wanted = kept.index[name]["outputs"]
    found = run_model(model, inputs, peer and set(inputs).isdisjoint(input_names(model)))
    if peer and len(found) == len(wanted) and set(found) != set(wanted):
        found = dict(zip(wanted, found.values()))
    if set(found) != set(wanted):
        raise Wrong(f"outputs {sorted(found)}, Caffe's are {sorted(wanted)}")
    apart = []
    for output, (_, shape, tolerance) in wanted.items():
        problem, distance = kept.compare(name, output, found[output])
        if problem:
            raise Wrong(f"{output}: {problem}")
        check_promise(name, output, shape, promised)
        apart.append(f"{distance:.1e} of {tolerance:.1e}")
    return ", ".join(apart)


def check_promise(name, output, shape, promised):
    """The declared sizes; only the number of detections may be open."""
    if promised is None or promised[output] == shape:
        return
    if whole.is_detections(name, shape) and promised[output] == [1, 1, None, 7]:
        return
    raise Wrong(f"{output}: the graph promises {promised[output]}, Caffe's shape is {shape}")


def result(name, convert, model, kept, peer):
    """What becomes of a net, in words."""
    try:
        converted = convert(whole.text_of(name), model)
        if name in whole.NO_ANSWER:
            return Result(name, "no answer", whole.NO_ANSWER[name])
        apart = check(kept, name, converted, peer)
    except converting.Refused as error:
        return Result(name, "refused", str(error))
    except Wrong as error:
        return Result(name, "wrong", str(error))
    return Result(name, "right", apart)


def models_of(name, kept, messages):
    """The bytes of a caffemodel with weights alone, and of one that has the whole net."""
    if name in whole.NO_ANSWER:
        return whole.NO_WEIGHTS, None
    model = kept.model(name)
    if messages is None or name in whole.TRAINED or name == whole.TEXTBOX:  # Caffe has no words for it
        return model, None
    return model, whole.model_with_net(messages, name, kept)


def names_of(arguments):
    if arguments.nets:
        return arguments.nets
    return [name for name in whole.names() if not (arguments.small and name in whole.LARGE)]


def is_expected(told):
    """A refusal is right where nothing can convert the net, and says what cannot be converted."""
    words = whole.MUST_BE_REFUSED.get(told.name)
    if words is None:
        return told.status in ("right", "no answer")
    return told.status == "refused" and all(word in told.message for word in words)


def check_net(name, kept, messages, arguments):
    """Whether it is right, with its prototxt and without."""
    weights, with_net = models_of(name, kept, messages)
    for what, command, model in (("", arguments.convert, weights),
                                 (", without its prototxt", arguments.convert_model, with_net)):
        if model is None:
            continue
        began = time.monotonic()
        told = result(name, converting.by_command(command), model, kept, arguments.peer)
        yield is_expected(told)
        print(f"{'' if is_expected(told) else 'FAILED '}{told.status:9} {time.monotonic() - began:6.1f} s  "
              f"{name}{what}: {told.message}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--convert", default=converting.SYNCBLOB, metavar="COMMAND")
    parser.add_argument("--peer", action="store_true", help="ask for the right values alone")
    parser.add_argument("--proto", type=pathlib.Path, help="Caffe's caffe.proto")
    parser.add_argument("--convert-model", default=FROM_MODEL, metavar="COMMAND")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("nets", nargs="*", metavar="NET")
    arguments = parser.parse_intermixed_args()
    kept = whole.Kept.read()
    messages = arguments.proto and whole.messages_of(arguments.proto)
    names = names_of(arguments)
    if not names:
        sys.exit(77)
    counts = collections.Counter(right for name in names
                                 for right in check_net(name, kept, messages, arguments))
    print(f"{counts[True]} passed, {counts[False]} failed")
    sys.exit(1 if counts[False] else 0)


if __name__ == "__main__":
    main()
