#!/usr/bin/env python3
"""Reading takes time linear in the input: every bomb at ten times the size costs at most eleven
times the instructions, counted by callgrind inside the function work_on of bomb.c.

The quick form compares 10 kB with 100 kB, a minute of processor time; --full compares 1 MB with
10 MB, as promised, and takes half an hour of it.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FACTOR = 11.0
SIZES = {"quick": (10_000, 100_000), "full": (1_000_000, 10_000_000)}


def bombs(program):
    rows = subprocess.run([program, "list"], check=True, text=True, capture_output=True).stdout
    return [row.split() for row in rows.splitlines()]


def instructions(program, name, form, size, folder):
    """Instructions that reading the bomb takes, with what the C library and OpenBLAS do in it."""
    path, out = folder / f"{name}.{size}", folder / f"{name}.{size}.callgrind"
    subprocess.run([program, "write", name, str(size), path], check=True)
    subprocess.run(["valgrind", "--tool=callgrind", "--toggle-collect=work_on",
                    f"--callgrind-out-file={out}", program, "read", form, path],
                   check=True, capture_output=True)
    path.unlink()
    totals = re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.MULTILINE)
    return int(totals[1])


def measure(program, sizes, folder, row):
    name, form = row
    small, large = (instructions(program, name, form, size, folder) for size in sizes)
    return name, small, large


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("program", help="the program bomb, built with optimisation")
    arguments.add_argument("--full", action="store_true")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count())
    options = arguments.parse_args()
    sizes = SIZES["full" if options.full else "quick"]
    program = str(pathlib.Path(options.program).resolve())
    failed = []
    print(f"{'bomb':<32} {sizes[0]:>13} B {sizes[1]:>13} B  factor")
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = [pool.submit(measure, program, sizes, pathlib.Path(folder), row)
                for row in bombs(program)]
        for name, small, large in (done.result() for done in work):
            factor = large / small
            verdict = f"  more than {FACTOR}" if factor > FACTOR else ""
            print(f"{name:<32} {small:>15} {large:>15}  {factor:6.2f}{verdict}", flush=True)
            if factor > FACTOR:
                failed.append(name)
    print(f"{len(work) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not work else 0


if __name__ == "__main__":
    sys.exit(main())
