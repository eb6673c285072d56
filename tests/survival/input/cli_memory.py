#!/usr/bin/env python3
"""Tests that `info`, `verify`, `show`, `report`, and `diff` of a file with itself need at most
64 MiB + 16 x the file's size. The files are bombs, highly compressed archives, and ordinary files.

A bomb with too many layers or blobs is refused before memory is allocated. After a refusal, the
quick form tries a smaller bomb."""
import argparse
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

MIB = 1 << 20
COMMANDS = [["info", "FILE"], ["info", "--json", "FILE"], ["diff", "FILE", "FILE"],
            ["show", "FILE"], ["report", "--force", "FILE", "-o", "REPORT"]]
SLOW_COMMANDS = [["verify", "FILE"]]  # 15 us for each blob if the program is not optimised


def peak_of(command):
    """Returns the exit status and the peak resident bytes of one run."""
    with open(os.devnull, "r+b") as null:
        child = subprocess.Popen(command, stdin=null, stdout=null, stderr=null)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_maxrss * 1024


# Arrays of 80 MiB: the shape, and whether the order is Fortran's.
ARCHIVES = [((10, 1 << 20), False), ((10, 1 << 20), True), ((1, 2560, 4096), False)]


def write_archive(path, shape, fortran):
    """Writes an archive with one deflated array of f64 zeros."""
    header = f"{{'descr': '<f8', 'fortran_order': {fortran}, 'shape': {shape}}}\n".encode()
    left = 8 * math.prod(shape)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("w.npy", "w") as member:
        member.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header)
        while left > 0:
            left -= member.write(bytes(min(left, MIB)))


def archives(folder):
    for shape, fortran in ARCHIVES:
        path = folder / "bomb.npz"
        write_archive(path, shape, fortran)
        yield [(f"an archive of {shape}{', in the order of Fortran' if fortran else ''}", path)]


def inputs(program, sizes, folder, files):
    """Yields lists of (name, path). For a bomb yields a generator: each step replaces the file."""
    def sized(name):
        for size in sizes:
            path = folder / "bomb"
            subprocess.run([program, "write", name, str(size), path], check=True)
            yield f"{name} of {size}", path
    names = subprocess.run([program, "list"], check=True, text=True, capture_output=True).stdout
    for name in names.split():
        yield sized(name)
    yield from archives(folder)
    for path in files:
        yield [(path.name, path)]


class Judge:
    def __init__(self, cli, commands, report):
        self.cli, self.commands, self.report = cli, commands, report
        self.failed = self.runs = 0
        self.largest = (0.0, "")

    def is_read(self, name, path):
        """Runs the commands. Returns whether all of them accepted the file."""
        allowed = 16 * path.stat().st_size + 64 * MIB
        paths = {"FILE": str(path), "REPORT": self.report}
        statuses = set()
        for command in self.commands:
            status, peak = peak_of([self.cli, *(paths.get(word, word) for word in command)])
            statuses.add(status)
            self.runs += 1
            self.largest = max(self.largest, (peak / allowed, name))
            if peak > allowed or status not in (0, 1, 2):
                print(f"{name}, {' '.join(command)}: status {status}, peak {peak / MIB:.1f} MiB,"
                      f" allowed {allowed / MIB:.1f} MiB", file=sys.stderr)
                self.failed += 1
        return 2 not in statuses


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    arguments.add_argument("--cli", required=True, help="the program syncblob")
    arguments.add_argument("--bomb", required=True, help="the program bomb")
    arguments.add_argument("--full", action="store_true", help="also try `verify`, and bombs of up to 20 MB")
    arguments.add_argument("files", nargs="*", type=pathlib.Path)
    options = arguments.parse_args()
    sizes = [20_000_000, 4_000_000, 1_000_000, 200_000] if options.full else [400_000, 100_000]
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(options.cli, COMMANDS + (SLOW_COMMANDS if options.full else []),
                      f"{folder}/report.html")
        for files in inputs(options.bomb, sizes, pathlib.Path(folder), options.files):
            for name, path in files:
                if judge.is_read(name, path) and not options.full:
                    break
    print(f"most memory: {100 * judge.largest[0]:.0f} % of the bound, for {judge.largest[1]}")
    print(f"{judge.runs - judge.failed} passed, {judge.failed} failed")
    return 1 if judge.failed or not judge.runs else 0


if __name__ == "__main__":
    sys.exit(main())
