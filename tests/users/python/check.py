#!/usr/bin/env python3
"""Tests the wheel as users get it: check.py WHEEL [--resnet FILE] [--python PYTHON]

Runs the tests of this folder in two environments: the oldest CPython with NumPy 1, the newest with NumPy 2.
The CPythons are those of PATH and pyenv, from 3.9 on.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parents[1] / "steps/python.txt"
MOST_SECONDS = 1800  # a longer run is stuck: each thread's stack is printed
RUN = f"""import faulthandler, unittest
faulthandler.dump_traceback_later({MOST_SECONDS}, exit=True)
unittest.main(None)"""
OLDEST = (3, 9)
FIRST_WITHOUT_NUMPY_1 = (3, 13)


def version_of(python):
    """Returns (0, 0) if the interpreter has another ABI and cannot load the module."""
    code = "import sys, sysconfig as s, venv; print(*sys.version_info[:2]," \
           "sys.implementation.name, s.get_config_var('Py_GIL_DISABLED'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    match = re.fullmatch(r"(\d+) (\d+) cpython (?:0|None)\n", done.stdout)
    return tuple(map(int, match.groups())) if match else (0, 0)


def pythons():
    folders = [pathlib.Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    folders += pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv").glob("versions/*/bin")
    found = {}
    for path in (path for folder in folders for path in sorted(folder.glob("python3*"))):
        if re.fullmatch(r"python3(\.\d+)?", path.name) and (version := version_of(path)) >= OLDEST:
            found.setdefault(version, path)
    return found


def test(python, numpy, wheel, resnet):
    # The output goes to a file, because a pipe would stay open until the last child ends.
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/output.txt", "w+", encoding="utf-8") as out:
        inside, requirements = pathlib.Path(folder, "venv/bin/python"), pathlib.Path(folder, "requirements.txt")
        requirements.write_text(ENVIRONMENTS.read_text().split(f"[{numpy}]\n")[1].split("\n[")[0], encoding="utf-8")
        subprocess.run([python, "-m", "venv", "--without-pip", f"{folder}/venv"], check=True)
        subprocess.run([sys.executable, "-m", "pip", "--python", inside, "install", "--quiet",
                        "--disable-pip-version-check", wheel, "-r", requirements], check=True)
        variables = {**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
        variables.update({"SYNCBLOB_TEST_RESNET": str(resnet)} if resnet else {})
        done = subprocess.run([inside, "-X", "faulthandler", "-c", RUN, "discover", "-s", HERE, "-v"],
                              env=variables, cwd=folder, stdout=out, stderr=subprocess.STDOUT, check=False)
        out.seek(0)
        output = out.read()
    for why in sorted(set(re.findall(r"\.\.\. skipped [\"'](.*)[\"']", output))):
        print(f"skipped: {why}")
    ended = re.search(r"^Ran [1-9]\d* tests?.*^OK.*", output, re.MULTILINE | re.DOTALL)
    passed = done.returncode == 0 and ended is not None
    print(f"{python} with {numpy}: {' '.join(ended[0].split()) if passed else output}")
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=lambda name: pathlib.Path(name).resolve())
    parser.add_argument("--resnet", type=pathlib.Path, help="a real net, whose layers README names")
    parser.add_argument("--python", type=pathlib.Path, help="this one instead of those that are found")
    options = parser.parse_args()
    found = {version_of(options.python): options.python} if options.python else pythons()
    oldest, newest = min(found), max(found)
    chosen = [(newest, "numpy-2")]
    if oldest >= FIRST_WITHOUT_NUMPY_1:
        print(f"skipped: NumPy 1: it has no wheels for CPython {oldest[0]}.{oldest[1]}")
    else:
        chosen.insert(0, (oldest, "numpy-1"))
    return not all([test(found[version], list_, options.wheel, options.resnet) for version, list_ in chosen])


if __name__ == "__main__":
    sys.exit(main())
