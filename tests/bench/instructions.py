#!/usr/bin/env python3
"""Tests that small operations stay within their budgets of instructions (instructions.txt).

An operation fails if it executes more than 1.10 times its budget. callgrind counts the instructions of the
function
`counted` in operations.c. With another compiler or processor family, the counts are only printed.
"""
import argparse
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

BUDGETS = pathlib.Path(__file__).with_name("instructions.txt")
FACTOR = 1.10
TIMES = 1000
# Without these settings, OpenBLAS and the C library choose their code by the processor.
CHOICES = {"OPENBLAS_CORETYPE": "Haswell", "GLIBC_TUNABLES": "glibc.cpu.x86_rep_movsb_threshold=1048576"}


def count(program, name):
    with tempfile.NamedTemporaryFile("r") as out:
        subprocess.run(["valgrind", "--tool=callgrind", "--toggle-collect=counted",
                        f"--callgrind-out-file={out.name}", program, name],
                       check=True, capture_output=True, env={**os.environ, **CHOICES})
        totals = re.search(r"^(?:totals|summary): (\d+)", pathlib.Path(out.name).read_text(), re.MULTILINE)
    return int(totals[1]) // TIMES


def built_with(program):
    comment = subprocess.run(["readelf", "--string-dump=.comment", program], check=True, text=True,
                             capture_output=True).stdout
    gcc, clang = re.search(r"GCC: .* (\d+)\.", comment), re.search(r"clang version (\d+)", comment)
    compiler = f"clang {clang[1]}" if clang else f"gcc {gcc[1]}"
    return f"{compiler}, {platform.machine()}"


def write(found, kind):
    lines = [f"# Instructions of one call, {kind}; written by instructions.py --write."]
    lines += [f"{name:<20} {number:>7}" for name, number in found.items()]
    BUDGETS.write_text("\n".join(lines) + "\n")


def judge(found):
    rows = (line.split() for line in BUDGETS.read_text().splitlines() if line[0] != "#")
    budgets = {name: int(number) for name, number in rows}
    failed = sorted(set(found) ^ set(budgets))
    print(f"{'operation':<20} {'budget':>7} {'found':>7}  factor")
    for name in (name for name in found if name in budgets):
        factor = found[name] / budgets[name]
        over = factor > FACTOR
        print(f"{name:<20} {budgets[name]:>7} {found[name]:>7}  {factor:6.3f}"
              f"{'  over the budget' if over else ''}")
        failed += [name] if over else []
    print(f"{len(found) - len(failed)} passed, {len(failed)} failed")
    return failed


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("program", help="the program operations, of a release build")
    arguments.add_argument("--write", action="store_true", help="take what is found as the budgets")
    options = arguments.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    kind = built_with(program)
    names = subprocess.run(program, check=True, text=True, capture_output=True).stdout.split()
    found = {name: count(program, name) for name in names}
    if options.write:
        write(found, kind)
        return 0
    failed = judge(found)
    if f", {kind};" not in BUDGETS.read_text():
        print(f"skipped: the budgets are not of {kind}, so the counts are not judged")
        return 0
    if failed:
        print(f"""
{', '.join(failed)}: not within the budget. If the work is needed, and nothing cheaper does it,
renew the budgets: {pathlib.Path(__file__).name} --write {options.program}
and give the reason in the commit.""")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
