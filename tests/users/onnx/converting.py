"""Converters: each makes a net's prototxt and caffemodel ONNX, or raises Refused."""

import contextlib
import pathlib
import shlex
import subprocess
import tempfile

SYNCBLOB = "syncblob convert {prototxt} {caffemodel} -o {onnx}"
SECONDS = 600  # of one net, where every core is busy
LINES = 20      # of what a program says


class Refused(Exception):
    """Why a converter does not convert a net, in its words."""


@contextlib.contextmanager
def temporary_folder():
    with tempfile.TemporaryDirectory() as name:
        yield pathlib.Path(name)


def by_command(command):
    """A program for each net; the words of its command that name files."""
    def convert(prototxt, model):
        with temporary_folder() as folder:
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
    """What a program said in one line, or an exception of Python's."""
    said = [line for line in (run.stderr + run.stdout).splitlines() if line.strip()]
    if "Traceback" in run.stderr:
        said = [line for line in run.stderr.splitlines() if line.strip()]
        last = max(number for number, line in enumerate(said) if line.startswith("  "))
        said = said[last + 1:]
    return "; ".join(line.strip() for line in said[:LINES]) or f"status {run.returncode}"


def by_module(prototxt, model):
    """The Python module, in this process."""
    import syncblob  # which not every environment has
    try:
        return syncblob.Net(prototxt.encode(), model).to_onnx()
    except (ValueError, syncblob.Error) as error:
        raise Refused(str(error)) from error
