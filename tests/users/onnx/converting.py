"""Converters: each makes a net's prototxt and caffemodel ONNX, or raises Refused."""

import pathlib
import shlex
import subprocess
import tempfile

SYNCBLOB = "syncblob convert {prototxt} {caffemodel} -o {onnx}"
SECONDS = 60


class Refused(Exception):
    """Why a converter does not convert a net, in its words."""


def by_command(command):
    """A program for each net; the words of its command that name files."""
    def convert(prototxt, model):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            files = {suffix: folder / f"net.{suffix}" for suffix in ("prototxt", "caffemodel", "onnx")}
            files["prototxt"].write_text(prototxt)
            files["caffemodel"].write_bytes(model)
            words = [word.format(**files) for word in shlex.split(command)]
            run = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False,
                                 timeout=SECONDS)
            if run.returncode != 0 or not files["onnx"].exists():
                raise Refused(reason(run))
            return files["onnx"].read_bytes()
    return convert


def reason(run):
    """The first line that a program said, or an exception of Python's."""
    said = [line for line in (run.stderr + run.stdout).splitlines() if line.strip()]
    if not said:
        return f"status {run.returncode}"
    return said[-1 if "Traceback" in run.stderr else 0]


def by_module(prototxt, model):
    """The Python module, in this process."""
    import syncblob  # which not every environment has
    try:
        return syncblob.Net(prototxt.encode(), model).to_onnx()
    except (ValueError, syncblob.Error) as error:
        raise Refused(str(error)) from error
