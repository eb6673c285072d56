#!/usr/bin/env python3
"""Measures processes that use the library once, from exec to the first blob, and the library's size.

    first.py PROGRAM LIBRARIES SYNCBLOB WHEELS MODEL

PROGRAM is compiled from first.c, LIBRARIES is the folder of the libraries. The processes run in turn; the best
time counts. The limits apply to differences from a process without the library (true, cat, Python and NumPy).
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import zipfile

ROUNDS = 40
program, libraries, command, wheels, model = sys.argv[1:]
library = pathlib.Path(libraries) / "libsyncblob.so"
folder = tempfile.TemporaryDirectory()
zipfile.ZipFile(next(pathlib.Path(wheels).glob("*.whl"))).extractall(folder.name)
os.environ["PYTHONPATH"] = folder.name
blob = f"{folder.name}/one.binaryproto"
pathlib.Path(blob).write_bytes(b"\x08\x01\x10\x01\x18\x01\x20\x64\x2a\x90\x03" + bytes(400))  # 1 x 1 x 1 x 100
LOAD = "next(b for layer in syncblob.load(sys.argv[1]).layers for b in layer.blobs).load()"
# Process name: its command, the name of the process to compare with, the limit of the difference in ms.
ROWS = {
    "true": (["/bin/true"], None, None),
    "cat": (["cat", model], None, None),
    "Python and NumPy": ([sys.executable, "-c", "import sys, numpy", model], None, None),
    "C: a context of sim:0": ([program], "true", None),
    "C: the first blob": ([program, model], "true", None),
    "syncblob --version": ([command, "--version"], "true", None),
    "syncblob info of one blob": ([command, "info", blob], "true", 2),
    "syncblob info": ([command, "info", model], "cat", None),
    "Python: import": ([sys.executable, "-c", "import sys, numpy, syncblob", model], "Python and NumPy", 30),
    "Python: the first blob": ([sys.executable, "-c", f"import sys, numpy, syncblob\n{LOAD}", model],
                               "Python and NumPy", None),
}


def run(words):
    began = time.perf_counter()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    return 1000 * (time.perf_counter() - began)


def main():
    best = {name: min(times) for name, times in
            zip(ROWS, zip(*([run(words) for words, _, _ in ROWS.values()] for _ in range(ROUNDS))))}
    for name, (_, base, limit) in ROWS.items():
        more = best[name] - best[base] if base else 0
        verdict = f"{more:+8.2f} to {base}" if base else ""
        verdict += f", at most {limit}: {'met' if more <= limit else 'MISSED'}" if limit else ""
        print(f"{best[name]:8.2f} ms  {name:<28}{verdict}".rstrip())
    stripped = pathlib.Path(folder.name, "stripped.so")
    subprocess.run(["strip", "-o", stripped, library], check=True)
    for path in (stripped, pathlib.Path(command), *pathlib.Path(wheels).glob("*.whl")):
        print(f"{path.stat().st_size:10,} bytes  {path.name}")


if __name__ == "__main__":
    main()
