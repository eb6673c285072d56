"""Tests that `syncblob convert` exchanges files with Google's protobuf, safetensors, NumPy and HDF5."""

import subprocess
import sys

import h5py
import numpy
import pytest
from safetensors import numpy as safetensors

from conftest import SUFFIX_OF, read_message


RAW_CODES = "dfeiI"  # codes of the module struct; an index is NVCaffe's number of the type
LEGACY = ("num", "channels", "height", "width")


def payload(blob, name):
    raw = getattr(blob, f"raw_{name}")
    for values, code in ((getattr(blob, f"double_{name}"), "d"), (getattr(blob, name), "f")):
        if len(values) or (code == "f" and not raw):
            return values, code
    code = RAW_CODES[getattr(blob, f"raw_{name}_type")]
    return numpy.frombuffer(raw, f"<{code}"), code


def array_of(blob):
    """`syncblob` loads halves as f32, and integers as f64."""
    values, code = payload(blob, "data")
    code = code if len(values) else payload(blob, "diff")[1]
    is_legacy = any(blob.HasField(name) for name in LEGACY)
    shape = [getattr(blob, name) for name in LEGACY] if is_legacy else blob.shape.dim
    return numpy.array(values, "<f4" if code in "fe" else "<f8").reshape(list(shape))


def layers_of(net):
    if net.layer:
        return [(layer.name, layer.type, layer.blobs) for layer in net.layer]
    layers = []
    for layer in net.layers:
        if layer.HasField("layer"):  # a V0 layer is nested
            layers.append((layer.layer.name, layer.layer.type, layer.layer.blobs))
        else:
            layers.append((layer.name, layer.LayerType.Name(layer.type), layer.blobs))
    return layers


def blobs_of(message, file_format):
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


def check_array(found, wanted, where):
    """The bits of NaNs may differ."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), where
    bits = f"u{wanted.itemsize}"
    equal = (found.view(bits) == wanted.view(bits)) | (numpy.isnan(found) & numpy.isnan(wanted))
    assert equal.all(), f"{where}: {numpy.count_nonzero(~equal)} of {equal.size} values differ"


def check_arrays(found, wanted):
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        check_array(found[name], array, name)


def check_npz(path, wanted):
    with numpy.load(path) as arrays:
        check_arrays(dict(arrays), wanted)


def check_message(found, wanted, file_format):
    check_arrays(tensors_of(found, file_format), tensors_of(wanted, file_format))
    if file_format == "caffemodel":
        kinds = [[(name, kind) for name, kind, _ in layers_of(net)] for net in (found, wanted)]
        assert (found.name, kinds[0]) == (wanted.name, kinds[1])
    if file_format == "solverstate":
        for field in ("iter", "learned_net", "current_step"):
            assert getattr(found, field) == getattr(wanted, field)


@pytest.fixture
def convert(cli, tmp_path):
    def run_convert(source, target, *options):
        run = cli("convert", "--force", *options, source, target)
        assert (run.returncode, run.stdout) == (0, b""), run.stderr
        return tmp_path / target
    return run_convert


def test_files_of_caffe(cli, convert, messages, file):
    wanted = tensors_of(file.message, file.format)
    begin = ["--names", "caffe"]
    if not file.path.suffix:
        begin += ["--from", {"blob": "binaryproto"}.get(file.format, file.format)]
    if not wanted:
        run = cli("convert", *begin, file.path, "nothing.safetensors")
        assert run.returncode and b"it has no blob" in run.stderr
        return
    tensors = convert(file.path, "a.safetensors", *begin)
    check_arrays(safetensors.load_file(tensors), wanted)
    check_npz(convert(file.path, "a.npz", *begin), wanted)
    if len(wanted) == 1:
        check_array(numpy.load(convert(file.path, "a.npy", *begin)), *wanted.values(), "npy")
    suffix = SUFFIX_OF[file.format]
    for back in (convert(tensors, f"back{suffix}"), convert(file.path, f"again{suffix}", *begin)):
        check_message(read_message(messages, back, file.format), file.message, file.format)


RNG = numpy.random.default_rng(1)
ARRAYS = {"conv1.0": RNG.standard_normal((4, 3, 5, 5), "f4"), "conv1.1": RNG.standard_normal(4, "f4"),
          "fc/2.0": RNG.standard_normal((3, 7)), "fc/2.1": numpy.array([1.5, -0.0, numpy.inf])}
TURNED = {name: numpy.asfortranarray(array) for name, array in ARRAYS.items()}
SWAPPED = {name: array.astype(array.dtype.newbyteorder(">")) for name, array in ARRAYS.items()}


@pytest.mark.parametrize("name, write", [
    ("others.safetensors", lambda path: safetensors.save_file(ARRAYS, path)),
    ("others.npz", lambda path: numpy.savez(path, **ARRAYS)),
    ("compressed.npz", lambda path: numpy.savez_compressed(path, **ARRAYS)),
    ("fortran.npz", lambda path: numpy.savez(path, **TURNED)),
    ("big-endian.npz", lambda path: numpy.savez(path, **SWAPPED))])
def test_files_of_python_packages(convert, messages, tmp_path, name, write):
    path = tmp_path / name
    write(path)
    net = read_message(messages, convert(path, "net.caffemodel"), "caffemodel")
    check_arrays(tensors_of(net, "caffemodel"), ARRAYS)
    check_npz(convert(path, "through.npz"), ARRAYS)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4)])
def test_files_npy(convert, messages, tmp_path, shape, order):
    array = numpy.array(RNG.standard_normal(shape), "f4", order=order)
    numpy.save(tmp_path / "one.npy", array)
    made = read_message(messages, convert("one.npy", "one.binaryproto"), "blob")
    check_array(array_of(made), array, "blob")


def bf16_of(array):
    """Rounds to the nearest bf16, ties to even."""
    bits = array.astype("<f4").view("u4").astype("u8")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("u2")


@pytest.mark.parametrize("field, kind", [("data", "f4"), ("double_data", "f8")])
def test_values_are_rounded_as_by_numpy(convert, messages, tmp_path, field, kind):
    values = numpy.concatenate([RNG.normal(0, 10.0 ** power, 4000) for power in range(-9, 6)])
    near = numpy.arange(0x7C00, dtype="u2").view("f2").astype("f8")
    ties = (near[:-1] + near[1:]) / 2
    values = numpy.concatenate([values, near, ties, numpy.nextafter(ties, 0), numpy.nextafter(ties, 9e9),
                                [65519.99, 65520.0, -1e9, numpy.inf, -0.0, 1e-300, 3.4e38]])
    blob = messages.BlobProto(shape={"dim": [len(values)]}, **{field: values.astype(kind)})
    path = tmp_path / "values.binaryproto"
    path.write_bytes(blob.SerializeToString())
    held = array_of(blob)
    for dtype, code in (("f16", "<f2"), ("f32", "<f4"), ("f64", "<f8")):
        with numpy.errstate(over="ignore"):
            wanted = held.astype(code)
        made = convert(path, "typed.safetensors", "--dtype", dtype)
        check_arrays(safetensors.load_file(made), {"blob": wanted})
        check_array(numpy.load(convert(path, "typed.npy", "--dtype", dtype)), wanted, dtype)
    if kind == "f4":  # NumPy has no bf16: compares the bits at the end of the file
        made = convert(path, "typed.safetensors", "--dtype", "bf16").read_bytes()
        assert (numpy.frombuffer(made[-2 * len(held):], "<u2") == bf16_of(held)).all()


LAYERS = {"conv1": [(2, 3, 5, 5), (2,)], "relu1": [], "inception_3a/1x1": [(4, 3, 1, 1), (4,)], "lstm": [(3,)] * 12,
          "scalar": [()]}


@pytest.mark.parametrize("name, dtype", [("net.caffemodel.h5", "<f4"), ("net.caffemodel.h5", "<f8"),
                                         ("net.solverstate.h5", "<f4")])
def test_snapshots_in_hdf5(cli, convert, messages, tmp_path, name, dtype):
    """A net's snapshot has the blobs "data/LAYER/0", "data/LAYER/1", ... A solver's snapshot has "history/0", ..."""
    is_net = name == "net.caffemodel.h5"
    shapes = LAYERS if is_net else {"history": [(2, 3), (3,)]}
    blobs = {f"{layer}.{index}" if is_net else str(index): RNG.normal(size=shape).astype(dtype)
             for layer, all_shapes in shapes.items() for index, shape in enumerate(all_shapes)}
    with h5py.File(tmp_path / name, "w") as snapshot:
        snapshot["iter"] = 9
        for layer in LAYERS if is_net else ():
            snapshot.create_group(f"data/{layer}")
        for key, blob in blobs.items():
            snapshot[f"data/{key.replace('.', '/')}" if is_net else f"history/{key}"] = blob
    lines = [line.removeprefix("  ") for line in cli("info", name).stderr.decode().splitlines()[1:]]
    program = "\n".join(lines).replace("net.caffemodel.h5", name)
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    check_npz(tmp_path / "net.npz", blobs)
    if is_net:
        net = read_message(messages, convert("net.npz", "net.caffemodel"), "caffemodel")
        check_arrays(tensors_of(net, "caffemodel"), blobs)
        assert all(layer.blobs for layer in net.layer)
