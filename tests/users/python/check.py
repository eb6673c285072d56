#!/usr/bin/env python3
"""Tests the wheel as users get it: check.py WHEEL [--resnet FILE] [--python PYTHON...]

Makes fresh environments with the oldest installed CPython (at least 3.9) and NumPy 1, and with the
newest and NumPy 2; installs the wheel into each and runs the tests of this folder. Searches PATH
and pyenv's versions for CPython.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MOST_SECONDS = 1800  # a longer run is stuck: each thread's stack is printed
RUN = f"""import faulthandler, unittest
faulthandler.dump_traceback_later({MOST_SECONDS}, exit=True)
unittest.main(None)"""
OLDEST = (3, 9)
FIRST_WITHOUT_NUMPY_1 = (3, 13)


def version_of(python):
    """Returns the version of a CPython with the usual ABI; None for other kinds, which cannot load
    the module."""
    code = "import sys, sysconfig as s, venv; print(*sys.version_info[:2]," \
           "sys.implementation.name, s.get_config_var('Py_GIL_DISABLED'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    match = re.fullmatch(r"(\d+) (\d+) cpython (?:0|None)\n", done.stdout)
    return tuple(map(int, match.groups())) if match else None


def pythons():
    """Returns {version: path} of the CPythons on PATH and in pyenv."""
    folders = [pathlib.Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv")
    folders += sorted(pyenv.glob("versions/*/bin"))
    found = {}
    for folder in folders:
        for path in sorted(folder.glob("python3*")):
            if re.fullmatch(r"python3(\.\d+)?", path.name):
                version = version_of(path)
                if version and version >= OLDEST:
                    found.setdefault(version, path)
    return found


def choose(found, are_all):
    """Returns (version, file of requirements): the oldest CPython with NumPy 1, the newest with
    NumPy 2."""
    oldest, newest = min(found), max(found)
    if oldest == newest and are_all:
        print(f"skipped: a second CPython: only {oldest[0]}.{oldest[1]} is installed")
    if oldest >= FIRST_WITHOUT_NUMPY_1:
        print(f"skipped: NumPy 1: it has no wheels for CPython {oldest[0]}.{oldest[1]}")
        return [(newest, "numpy-2.txt")]
    return [(oldest, "numpy-1.txt"), (newest, "numpy-2.txt")]


def test(python, requirements, wheel, resnet, folder):
    """Runs the tests; returns the end of unittest's output, which is empty if a test fails."""
    environment = folder / "venv"
    subprocess.run([python, "-m", "venv", "--without-pip", environment], check=True)
    inside = environment / "bin/python"
    # Installs with this process's pip into the new environment.
    subprocess.run([sys.executable, "-m", "pip", "--python", inside, "install", "--quiet",
                    "--disable-pip-version-check", wheel, "-r", HERE / requirements], check=True)
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables["PYTHONDONTWRITEBYTECODE"] = "1"
    if resnet:
        variables["SYNCBLOB_TEST_RESNET"] = str(resnet)
    # The output goes to a file, because a pipe would stay open until the last child ends.
    with open(folder / "output.txt", "w+", encoding="utf-8") as out:
        done = subprocess.run([inside, "-X", "faulthandler", "-c", RUN, "discover", "-s", HERE,
                               "-v"], env=variables, cwd=folder, stdout=out,
                              stderr=subprocess.STDOUT, check=False)
        out.seek(0)
        output = out.read()
    # unittest prints "... skipped 'WHY'".
    for why in sorted(set(re.findall(r"\.\.\. skipped [\"'](.*)[\"']", output))):
        print(f"skipped: {why}")
    ended = re.search(r"^Ran [1-9]\d* tests?.*^OK.*", output, re.MULTILINE | re.DOTALL)
    if done.returncode or not ended:
        print(output)
        return ""
    return " ".join(ended[0].split())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--resnet", type=pathlib.Path, help="a real net, whose layers README names")
    parser.add_argument("--python", action="append", type=pathlib.Path, default=[],
                        help="these instead of those that are found")
    options = parser.parse_args()
    found = {version_of(path): path for path in options.python} or pythons()
    status = 0
    for version, requirements in choose(found, are_all=not options.python):
        with tempfile.TemporaryDirectory() as folder:
            ended = test(found[version], requirements, options.wheel.resolve(), options.resnet,
                         pathlib.Path(folder))
        status = status if ended else 1
        numpy = requirements.removesuffix(".txt").replace("-", " ")
        print(f"CPython {version[0]}.{version[1]} with {numpy}: {ended or 'a test fails'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
