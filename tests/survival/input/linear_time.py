#!/usr/bin/env python3
"""Tests that the cases of cost.c take linear time.

Callgrind counts the instructions inside work_on. With --full, the bombs take half an hour.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# For each kind: the largest ratio of instructions, and the smaller size without and with --full.
KINDS = {"bombs": (11, 10_000, 1_000_000), "counts": (13, 1_000, 10_000)}


def measure(program, sizes, names):
    """Callgrind writes a profile after each call of work_on."""
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
    arguments.add_argument("program", type=pathlib.Path, help="cost, built with optimisation")
    arguments.add_argument("kind", choices=KINDS)
    arguments.add_argument("--full", action="store_true")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count())
    options = arguments.parse_args()
    allowed, *sizes = KINDS[options.kind]
    sizes = (sizes[options.full], 10 * sizes[options.full])
    program = str(options.program.resolve())
    names = subprocess.run([program, options.kind], check=True, text=True, capture_output=True)
    names = names.stdout.split()
    failed = []
    print(f"{'case':<32} {sizes[0]:>15} {sizes[1]:>15}  factor")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = [pool.submit(measure, program, sizes, names[i::options.jobs])
                for i in range(options.jobs)]
        for name, small, large in (row for done in work for row in done.result()):
            factor = large / small
            verdict = f"  more than {allowed}" if factor > allowed else ""
            print(f"{name:<32} {small:>15} {large:>15}  {factor:6.2f}{verdict}", flush=True)
            if factor > allowed:
                failed.append(name)
    print(f"{len(names) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
