#!/usr/bin/env python3
"""The command line's peak memory stays within 16 x the file + 64 MiB, for every bomb and for
ordinary files, with `info`, `verify`, `diff` with itself, `show` and `report`."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

MIB = 1 << 20
COMMANDS = [["info", "FILE"], ["info", "--json", "FILE"], ["diff", "FILE", "FILE"],
            ["show", "FILE"], ["report", "--force", "FILE", "-o", "REPORT"]]
SLOW_COMMANDS = [["verify", "FILE"]]  # in a program that is not optimised: 15 us for each blob


def peak_of(command):
    """The exit status and the peak resident bytes of one run."""
    with open(os.devnull, "r+b") as null:
        child = subprocess.Popen(command, stdin=null, stdout=null, stderr=null)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_maxrss * 1024


def inputs(program, sizes, folder, files):
    """Names and paths, one file at a time on the disk."""
    rows = subprocess.run([program, "list"], check=True, text=True, capture_output=True).stdout
    for name in rows.split():
        for size in sizes:
            path = folder / "bomb"
            subprocess.run([program, "write", name, str(size), path], check=True)
            yield f"{name} of {size}", path
    for path in files:
        yield path.name, path


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split(",")[0])
    arguments.add_argument("--cli", required=True, help="the program syncblob")
    arguments.add_argument("--bomb", required=True, help="the program bomb")
    arguments.add_argument("--full", action="store_true", help="bombs of 100 kB and 20 MB, and `verify`, too")
    arguments.add_argument("files", nargs="*", type=pathlib.Path)
    options = arguments.parse_args()
    sizes = [100_000, 4_000_000, 20_000_000] if options.full else [2_000_000]
    commands = COMMANDS + (SLOW_COMMANDS if options.full else [])
    failed = runs = 0
    largest = (0.0, "")
    with tempfile.TemporaryDirectory() as folder:
        for name, path in inputs(options.bomb, sizes, pathlib.Path(folder), options.files):
            for command in commands:
                allowed = 16 * path.stat().st_size + 64 * MIB
                paths = {"FILE": str(path), "REPORT": f"{folder}/report.html"}
                words = [paths.get(word, word) for word in command]
                status, peak = peak_of([options.cli, *words])
                runs += 1
                largest = max(largest, (peak / allowed, name))
                if peak > allowed or status not in (0, 1, 2):
                    print(f"{name}, {' '.join(command)}: status {status}, peak {peak / MIB:.1f} MiB,"
                          f" allowed {allowed / MIB:.1f} MiB", file=sys.stderr)
                    failed += 1
    print(f"nearest to the bound: {100 * largest[0]:.0f} % of it, {largest[1]}")
    print(f"{runs - failed} passed, {failed} failed")
    return 1 if failed or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
