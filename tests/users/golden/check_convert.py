#!/usr/bin/env python3
"""Tests that other programs can read the files that `syncblob convert` writes, and that the command
converts the files that the programs write. The programs are Google's protobuf with Caffe's
caffe.proto, and the Python packages safetensors and NumPy.

    check_convert.py --cli PROGRAM --proto caffe.proto [FILE...]

The checked files are those of check_info.py. Names, shapes, types and the bits of all values, also of
NaNs, must be equal; in a net also the layers' names and types. Needs protoc and requirements.txt.
"""

import subprocess
import sys
import tempfile

import numpy
from safetensors import numpy as safetensors

import checking
from checking import SUFFIX_OF
from made_files import normal, shaped
from reading import old_layer_info, payload, shape_of


# --- the contents of Caffe's messages -------------------------------------------------


def array_of(blob):
    """Returns a blob's data as the program loads it: halves as f32, integers as f64."""
    data, diff = payload(blob, "data"), payload(blob, "diff")
    code = (data if data.values else diff).code
    return numpy.array(data.values, "<f4" if code in "fe" else "<f8").reshape(shape_of(blob))


def layers_of(net):
    """Returns name, type and blobs of each layer, in a net of any generation."""
    if net.layer:
        return [(layer.name, layer.type, layer.blobs) for layer in net.layer]
    layers = []
    for layer in net.layers:
        holder = layer.layer if layer.HasField("layer") else layer
        layers.append((holder.name, old_layer_info(layer)["type"], holder.blobs))
    return layers


def blobs_of(message, file_format):
    """Returns, for each blob, the name that a conversion should choose, the layer's name and type, the blob's
    number and its message."""
    if file_format == "blob":
        return [("blob", None, None, 0, message)]
    if file_format == "solverstate":
        return [(f"history.{i}", None, None, i, blob) for i, blob in enumerate(message.history)]
    layers = layers_of(message)
    return [(f"{base}.{i}", name, kind, i, blob)
            for base, (name, kind, blobs) in zip(unique_names(layers), layers)
            for i, blob in enumerate(blobs)]


def tensors_of(message, file_format):
    return {name: array_of(blob) for name, *_, blob in blobs_of(message, file_format)}


def unique_names(layers):
    """Returns unique names, according to the rule that --help and the README document."""
    names = [name for name, _, _ in layers]
    taken, met, unique = set(names), set(), []
    for index, name in enumerate(names):
        if name and name not in met:
            met.add(name)
            unique.append(name)
            continue
        number = 2 if name else index
        while f"{name}#{number}" in taken:
            number += 1
        taken.add(f"{name}#{number}")
        unique.append(f"{name}#{number}")
    return unique


# --- comparing ---------------------------------------------------------------------------


def array_differences(found, wanted, where):
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        yield f"{where}: {found.dtype} {found.shape}, wanted {wanted.dtype} {wanted.shape}"
        return
    bits = f"u{found.dtype.itemsize}"
    found, wanted = numpy.ascontiguousarray(found), numpy.ascontiguousarray(wanted)
    equal = (found.view(bits) == wanted.view(bits)) | (numpy.isnan(found) & numpy.isnan(wanted))
    if not equal.all():
        yield f"{where}: {numpy.count_nonzero(~equal)} of {equal.size} values differ"


def differences(found, wanted):
    """Yields the differences of two dictionaries of arrays."""
    if found.keys() != wanted.keys():
        yield f"names: found {sorted(found)!r:.200}, wanted {sorted(wanted)!r:.200}"
        return
    for name, array in wanted.items():
        yield from array_differences(found[name], array, name)


def message_differences(found, wanted, file_format):
    """Yields the differences of two messages in the parts that a conversion keeps."""
    yield from differences(tensors_of(found, file_format), tensors_of(wanted, file_format))
    if file_format == "caffemodel":
        kinds = [[(name, kind) for name, kind, _ in layers_of(net)] for net in (found, wanted)]
        if kinds[0] != kinds[1] or found.name != wanted.name:
            yield f"layers: {kinds[0]!r:.200}, wanted {kinds[1]!r:.200}"
    if file_format == "solverstate":
        for field in ("iter", "learned_net", "current_step"):
            if getattr(found, field) != getattr(wanted, field):
                yield f"{field}: {getattr(found, field)!r}, wanted {getattr(wanted, field)!r}"


# --- running --------------------------------------------------------------------------------


class Checker(checking.Checker):
    def convert(self, source, target, *options):
        """Converts a file into the folder; returns the new file, or raises the failure."""
        target = self.folder / target
        command = [self.cli, "convert", "--force", *options, source, target]
        run = subprocess.run(command, capture_output=True, check=False)
        if run.returncode or run.stdout:
            raise RuntimeError(f"status {run.returncode}, stderr: {run.stderr.decode()!r:.300}")
        return target

    def check(self, name, compare):
        """Reports the problems that a function yields or raises."""
        try:
            self.report(name, compare())
        except (RuntimeError, ValueError, KeyError, OSError) as error:
            self.report(name, [f"{type(error).__name__}: {error}"])


def check_caffe_file(checker, name, path, file_format):
    """Checks all conversions of one of Caffe's files, and the conversions back."""
    message = checker.message(path, file_format)
    wanted = tensors_of(message, file_format)

    def compare():
        begin = ["--names", "caffe"]
        if not path.suffix:
            begin += ["--from", {"blob": "binaryproto"}.get(file_format, file_format)]
        if not wanted:
            try:
                checker.convert(path, "nothing.safetensors", *begin)
                yield "a file without a blob was converted"
            except RuntimeError as error:
                if "it has no blob" not in str(error):
                    raise
            return
        tensors = checker.convert(path, "a.safetensors", *begin)
        yield from differences(safetensors.load_file(tensors), wanted)
        archive = checker.convert(path, "a.npz", *begin)
        with numpy.load(archive) as arrays:
            yield from differences(dict(arrays), wanted)
        if len(wanted) == 1:
            array = checker.convert(path, "a.npy", *begin)
            yield from array_differences(numpy.load(array), *wanted.values(), "npy")
        back = checker.convert(tensors, f"back{SUFFIX_OF[file_format]}")
        yield from message_differences(checker.message(back, file_format), message, file_format)
        again = checker.convert(path, f"again{SUFFIX_OF[file_format]}", *begin)
        yield from message_differences(checker.message(again, file_format), message, file_format)

    checker.check(name, compare)


def check_others_files(checker):
    """Checks the conversion, to Caffe's formats, of files that the Python packages write."""
    rng = numpy.random.default_rng(1)
    arrays = {"conv1.0": rng.standard_normal((4, 3, 5, 5), "f4"), "conv1.1": rng.standard_normal(4, "f4"),
              "fc/2.0": rng.standard_normal((3, 7)), "fc/2.1": numpy.array([1.5, -0.0, numpy.inf])}
    turned = {name: numpy.asfortranarray(array) for name, array in arrays.items()}
    swapped = {name: array.astype(array.dtype.newbyteorder(">")) for name, array in arrays.items()}
    files = {"others.safetensors": lambda path: safetensors.save_file(arrays, path),
             "others.npz": lambda path: numpy.savez(path, **arrays),
             "compressed.npz": lambda path: numpy.savez_compressed(path, **arrays),
             "fortran.npz": lambda path: numpy.savez(path, **turned),
             "big-endian.npz": lambda path: numpy.savez(path, **swapped)}
    for name, write in files.items():
        path = checker.folder / name
        write(path)

        def compare(path=path):
            net = checker.message(checker.convert(path, "others.caffemodel"), "caffemodel")
            yield from differences(tensors_of(net, "caffemodel"), arrays)
            with numpy.load(checker.convert(path, "through.npz")) as through:
                yield from differences(dict(through), arrays)

        checker.check(f"written by Python, {name}", compare)
    for shape in ((), (0,), (5,), (2, 3, 4)):
        for order in "CF":
            array = numpy.array(rng.standard_normal(shape), "f4", order=order)
            numpy.save(checker.folder / "one.npy", array)

            def compare(array=array):
                made = checker.convert(checker.folder / "one.npy", "one.binaryproto")
                yield from array_differences(array_of(checker.message(made, "blob")), array, "blob")

            checker.check(f"npy of shape {shape}, order {order}", compare)


def bf16_of(array):
    """Returns the bits of the array rounded to bf16, to the nearest, ties to even."""
    bits = array.astype("<f4").view("u4").astype("u8")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("u2")


def check_types(checker):
    """Checks that `convert --dtype` rounds values as NumPy does."""
    values = numpy.concatenate([numpy.array(normal(4000, 10.0 ** power), "f8") for power in range(-9, 6)])
    near = numpy.arange(0x7C00, dtype="u2").view("f2").astype("f8")  # halves, and ties between them
    ties = (near[:-1] + near[1:]) / 2
    values = numpy.concatenate([values, near, ties, numpy.nextafter(ties, 0), numpy.nextafter(ties, 9e9),
                                [65519.99, 65520.0, -1e9, numpy.inf, -0.0, 1e-300, 3.4e38]])
    for kind in ("data", "double_data"):
        blob = shaped(checker.messages, [len(values)], **{kind: values.astype("f4" if kind == "data" else "f8")})
        path = checker.folder / f"{kind}.binaryproto"
        path.write_bytes(blob.SerializeToString())
        held = array_of(blob)
        with numpy.errstate(over="ignore"):
            wanted = {"f16": held.astype("<f2"), "f32": held.astype("<f4"), "f64": held.astype("<f8")}

        def compare(path=path, held=held, wanted=wanted):
            for dtype, array in wanted.items():
                made = checker.convert(path, "typed.safetensors", "--dtype", dtype)
                yield from differences(safetensors.load_file(made), {"blob": array})
                made = checker.convert(path, "typed.npy", "--dtype", dtype)
                yield from array_differences(numpy.load(made), array, dtype)
            if held.dtype == "<f4":  # NumPy has no bf16: compares the bits at the end of the file
                made = checker.convert(path, "typed.safetensors", "--dtype", "bf16").read_bytes()
                found = numpy.frombuffer(made[-2 * len(held):], "<u2")
                if not (found == bf16_of(held)).all():
                    yield f"bf16: {numpy.count_nonzero(found != bf16_of(held))} values differ"

        checker.check(f"types of {kind}", compare)


def check_checker(checker):
    """Tests that the comparison notices a single wrong bit, name, type or layer."""
    array = numpy.array([1.0, numpy.nan], "<f4")
    flipped = array.copy()
    flipped.view("u4")[0] ^= 1
    cases = [{"a": flipped}, {"b": array}, {"a": array.astype("f8")}, {"a": array.reshape(1, 2)}, {}]
    missed = [case for case in cases if not any(differences(case, {"a": array}))]
    checker.report("the comparison notices what is wrong", [f"not {case}" for case in missed])
    net = checker.messages.NetParameter
    wanted = net(layer=[{"name": "a", "type": "b"}])
    wrong = [net(layer=[{"name": "a", "type": "c"}]), net(name="n", layer=[{"name": "a", "type": "b"}]), net()]
    missed = [case for case in wrong if not any(message_differences(case, wanted, "caffemodel"))]
    checker.report("the comparison notices a wrong layer", [f"not {case}" for case in missed])


def main():
    options = checking.parse_arguments(__doc__.split("\n\n", maxsplit=1)[0], "--cli", "the program syncblob")
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(options, folder)
        for file in (*checker.real_files(), *checker.made_files()):
            check_caffe_file(checker, *file)
        check_others_files(checker)
        check_types(checker)
        check_checker(checker)
    return checker.exit_status()


if __name__ == "__main__":
    sys.exit(main())
