#!/usr/bin/env python3
"""Measures processes that use the library once, and the sizes of the files.

    first.py LIBRARIES SYNCBLOB WHEELS

LIBRARIES is the folder of the libraries. The processes run in turn; the best time counts. The limits apply to
differences from a process without the library (true, Python and NumPy).
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import zipfile

ROUNDS = 40
libraries, command, wheels = sys.argv[1:]
folder = tempfile.TemporaryDirectory()
zipfile.ZipFile(next(pathlib.Path(wheels).glob("*.whl"))).extractall(folder.name)
os.environ["PYTHONPATH"] = folder.name
blob = f"{folder.name}/one.binaryproto"
pathlib.Path(blob).write_bytes(b"\x08\x01\x10\x01\x18\x01\x20\x64\x2a\x90\x03" + bytes(400))  # 1 x 1 x 1 x 100
# Process name: its command, the name of the process to compare with, the limit of the difference in ms.
ROWS = {
    "true": (["/bin/true"], None, None),
    "Python and NumPy": ([sys.executable, "-c", "import numpy"], None, None),
    "syncblob info of one blob": ([command, "info", blob], "true", 2),
    "Python: import": ([sys.executable, "-c", "import numpy, syncblob"], "Python and NumPy", 30),
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
        verdict = f"{more:+8.2f} to {base}, at most {limit}: {'met' if more <= limit else 'MISSED'}" if base else ""
        print(f"{best[name]:8.2f} ms  {name:<28}{verdict}".rstrip())
    stripped = pathlib.Path(folder.name, "stripped.so")
    subprocess.run(["strip", "-o", stripped, pathlib.Path(libraries, "libsyncblob.so")], check=True)
    for path in (stripped, pathlib.Path(command), *pathlib.Path(wheels).glob("*.whl")):
        print(f"{path.stat().st_size:10,} bytes  {path.name}")


if __name__ == "__main__":
    main()
