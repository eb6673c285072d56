"""The options and fixtures of the tests:

    pytest test_X.py --proto caffe.proto --cli PROGRAM [--file FILE]...

The files to test are the real files of SYNCBLOB_TEST_DATA (else ../shared/data beside the
repository), the FILEs, and files that Google's protobuf makes here, one for each mistake that a
reader could make. Needs protoc and the environment golden of tests/steps/python.txt.
"""
import functools
import os
import pathlib
import subprocess
import typing

import pytest

from caffe_messages import Messages, read_descriptor, with_raw_fields
from made_files import made_files

MESSAGE_OF = {"blob": "BlobProto", "caffemodel": "NetParameter", "solverstate": "SolverState"}
SUFFIX_OF = {"caffemodel": ".caffemodel", "solverstate": ".solverstate", "blob": ".binaryproto"}
FORMAT_OF = {suffix: name for name, suffix in SUFFIX_OF.items()}
ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = pathlib.Path(os.environ.get("SYNCBLOB_TEST_DATA") or ROOT.parent / "shared/data")


class File(typing.NamedTuple):
    path: pathlib.Path  # without a suffix if the file was made
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
    """Returns Caffe's message classes."""
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
    """Returns a function that runs the program in the test's folder."""
    program = request.config.getoption("cli").resolve()
    return lambda *words: subprocess.run([program, *words], cwd=tmp_path, capture_output=True, check=False)


def read_message(messages, path, file_format):
    return getattr(messages, MESSAGE_OF[file_format]).FromString(path.read_bytes())
