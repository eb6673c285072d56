"""The options and fixtures of the tests:

    pytest test_X.py --proto caffe.proto --cli PROGRAM [--file FILE]...

Needs protoc, the environment golden of tests/steps/python.txt, and the files of SYNCBLOB_TEST_DATA (default:
../shared/data).
"""
import functools
import os
import pathlib
import subprocess
import typing

import numpy
import pytest
from google.protobuf import text_format

from caffe_messages import Messages, read_descriptor, with_raw_fields

MESSAGE_OF = {"blob": "BlobProto", "caffemodel": "NetParameter", "solverstate": "SolverState"}
SUFFIX_OF = {"caffemodel": ".caffemodel", "solverstate": ".solverstate", "blob": ".binaryproto"}
FORMAT_OF = {suffix: name for name, suffix in SUFFIX_OF.items()}
ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = pathlib.Path(os.environ.get("SYNCBLOB_TEST_DATA") or ROOT.parent / "shared/data")


NORMAL = "[{}]".format(", ".join(map(str, numpy.random.default_rng(1).normal(size=6))))
MADE = (
    ("blob", "floats", "shape { dim: [2, 4] } data: [nan, inf, -inf, 3.4028235e38, -3.4028235e38, 1.4e-45, -0.0, 0.1]"),
    ("blob", "doubles and diff", "shape { dim: 5 } double_data: [nan, -inf, 1.7976931348623157e308, 5e-324, 0.1]"
     " double_diff: [1.1e200, -2.2e200, 3.3e199, 0.4, 5]"),
    ("blob", "legacy dimensions and diff", "num: 2 channels: 1 height: 3 width: 1"
     f" data: {NORMAL} diff: [0.1, 0.2, -0.3, 4, 5e9, 6]"),
    ("blob", "legacy dimensions beside a shape",
     "num: 1 channels: 1 height: 1 width: 2 data: [1, 2] shape { dim: [7, 7] }"),
    ("blob", "double data beside float data", "shape { dim: 2 } data: [1, 2] double_data: [0.1, 0.2]"),
    ("blob", "neither shape nor dimensions", "data: 4.5"),
    ("blob", "a dimension of 0", "shape { dim: [3, 0, 2] }"),
    ("blob", "32 axes", f"shape {{ dim: {[1] * 31 + [2]} }} data: [1, 2]"),
    ("blob", "raw halves with a diff of integers", r"""shape { dim: 2 } raw_data_type: FLOAT16 raw_data: "\001\000\377\173"
     raw_diff_type: INT raw_diff: "\001\000\000\001\377\377\377\377" """),
    ("blob", "raw unsigned integers", r"""num: 1 channels: 1 height: 2 width: 1
     raw_data_type: UINT raw_data: "\007\000\000\000\377\377\377\377" """),
    ("blob", "raw data beside float data", 'shape { dim: 1 } data: 3 raw_data_type: FLOAT16 raw_data: "\\000D"'),
    ("caffemodel", "V0 net", """name: "V0" layers { layer { name: "relu1" type: "relu" } } layers { layer { name: "conv1"
     type: "conv" blobs { num: 1 channels: 1 height: 1 width: 2 data: [1, 2] } } } layers { layer { name: "ip"
     type: "innerproduct" blobs { num: 1 channels: 1 height: 1 width: 1 data: 3 } } }"""),
    ("caffemodel", "current net", r"""name: "\033[2J\342\200\256 \"net\" \\ \351\207\215\343\201\277\n"
     layer { name: "data" type: "Input" } layer { name: "conv/1" type: "Convolution" bottom: "data" top: "conv/1"
     blobs { shape { dim: [1, 3, 2] } data: %s } blobs { shape { dim: 2 } data: [0.1, 0.2] diff: [3, 4] }
     convolution_param { num_output: 2 } } layer { }
     layer { name: "half" type: "InnerProduct" blobs { shape { dim: [2, 1] } raw_data_type: FLOAT16 raw_data: "\0<\0\300" } }
     layer { name: "conv/1" type: "no such type" blobs { shape { dim: 1 } double_data: 0.1 } }""" % NORMAL),
    ("caffemodel", "net without layers", 'name: "empty"'),
    *(("solverstate", name, 'iter: 4000 learned_net: "a.caffemodel" current_step: 2 ' + "".join(
        f"history {{ {dims} data: {list(range(1, count + 1))} }}" for count in (3, 1, 4) for dims in [form % count]))
      for name, form in (("solver state", "shape { dim: [1, 1, 1, %d] }"),
                         ("solver state, legacy", "num: 1 channels: 1 height: 1 width: %d"))),
)


def made_files(messages):
    for file_format, name, text in MADE:
        yield f"{file_format}, {name}", file_format, message_of(messages, file_format, text).SerializeToString()
    # protobuf merges concatenated messages: repeated values are joined, and the last bytes field is kept.
    for name, first, second in (
            ("data in two pieces", "data: [1, 2]", "data: [3, 4]"),
            ("raw data twice", r'raw_data_type: INT raw_data: "\0\0\0\0\0\0\0\0"',
             r'raw_data_type: FLOAT16 raw_data: "\0<\0@\0<\0@"')):
        parts = (message_of(messages, "blob", text) for text in ("shape { dim: 4 }", first, second))
        yield f"blob, {name}", "blob", b"".join(part.SerializeToString() for part in parts)
    types = messages.V1LayerParameter.DESCRIPTOR.fields_by_name["type"].enum_type.values
    layers = (f'layers {{ name: "layer {number}" type: {value.name} ' + "".join(
        f"blobs {{ num: 1 channels: 1 height: {axis + 1} width: 2 data: {list(range(2 * axis + 2))} }}"
        for axis in range(number % 3)) + "}" for number, value in enumerate(types))
    net = message_of(messages, "caffemodel", 'name: "V1" ' + "".join(layers))
    yield "V1 net, a layer of every type", "caffemodel", net.SerializeToString()


def message_of(messages, file_format, text):
    return text_format.Parse(text, getattr(messages, MESSAGE_OF[file_format])())


class File(typing.NamedTuple):
    path: pathlib.Path
    format: str
    message: object


def pytest_addoption(parser):
    parser.addoption("--cli", type=pathlib.Path, help="the program syncblob")
    parser.addoption("--proto", required=True, help="Caffe's caffe.proto")
    parser.addoption("--file", action="append", default=[], type=pathlib.Path, help="another real file")


def real_files(config):
    return [*sorted(path for path in DATA.glob("*") if path.suffix in FORMAT_OF), *config.getoption("file")]


def pytest_report_header(config):
    return f"real files: {len(real_files(config))}, in {DATA} and by --file"


@functools.cache
def messages_of(proto):
    return Messages(with_raw_fields(read_descriptor(proto)))


def pytest_generate_tests(metafunc):
    real = [(path.name, FORMAT_OF[path.suffix], path) for path in real_files(metafunc.config)]
    files = [*real, *made_files(messages_of(metafunc.config.getoption("proto")))]
    if "file" in metafunc.fixturenames:
        metafunc.parametrize("file", files, ids=[name for name, *_ in files], indirect=True)


@pytest.fixture
def file(request, messages, tmp_path):
    _, file_format, path = request.param
    if isinstance(path, bytes):
        content, path = path, tmp_path / "made"
        path.write_bytes(content)
    return File(path, file_format, read_message(messages, path, file_format))


@pytest.fixture
def messages(request):
    return messages_of(request.config.getoption("proto"))


@pytest.fixture
def cli(request, tmp_path):
    program = request.config.getoption("cli").resolve()
    return lambda *words: subprocess.run([program, *words], cwd=tmp_path, capture_output=True, check=False)


def read_message(messages, path, file_format):
    return getattr(messages, MESSAGE_OF[file_format]).FromString(path.read_bytes())
