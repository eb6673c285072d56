#!/usr/bin/env python3
"""Tests that reading takes time linear in the input: every bomb at ten times the size costs at most eleven
times the instructions, which callgrind counts inside the function work_on of bomb.c.

The quick form compares 10 kB with 100 kB; --full compares 1 MB with 10 MB, and takes half an hour.
--sizes sets other sizes (for the program many: counts of objects). --factor replaces the eleven,
for example to allow for the logarithmic cost of a sorted tree.
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


def measure(program, sizes, names):
    """Returns for each case the instructions at both sizes, including calls into the C library and
    OpenBLAS. Callgrind writes a profile after each call of work_on."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "profile"
        subprocess.run(["valgrind", "--tool=callgrind", "--toggle-collect=work_on",
                        "--dump-after=work_on", f"--callgrind-out-file={out}",
                        program, "read", *map(str, sizes), *names],
                       check=True, capture_output=True)
        counts = [int(re.search(r"^(?:totals|summary): (\d+)",
                                out.with_name(f"profile.{i + 1}").read_text(), re.MULTILINE)[1])
                  for i in range(2 * len(names))]
    return zip(names, counts[::2], counts[1::2])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("program", help="bomb or many, built with optimisation")
    arguments.add_argument("--full", action="store_true")
    arguments.add_argument("--sizes", type=int, nargs=2)
    arguments.add_argument("--factor", type=float, default=FACTOR)
    arguments.add_argument("--jobs", type=int, default=os.cpu_count())
    options = arguments.parse_args()
    sizes = options.sizes or SIZES["full" if options.full else "quick"]
    program = str(pathlib.Path(options.program).resolve())
    names = subprocess.run([program, "list"], check=True, text=True, capture_output=True)
    names = names.stdout.split()
    failed = []
    print(f"{'case':<32} {sizes[0]:>15} {sizes[1]:>15}  factor")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = [pool.submit(measure, program, sizes, names[i::options.jobs])
                for i in range(options.jobs)]
        for name, small, large in (row for done in work for row in done.result()):
            factor = large / small
            verdict = f"  more than {options.factor}" if factor > options.factor else ""
            print(f"{name:<32} {small:>15} {large:>15}  {factor:6.2f}{verdict}", flush=True)
            if factor > options.factor:
                failed.append(name)
    print(f"{len(names) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
