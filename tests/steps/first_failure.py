#!/usr/bin/env python3
"""Says what a failed step's log is about: the first failing assertion, and the one command that
runs it alone.

    first_failure.py COMMAND STEP LOG

Knows the words of cmocka, ctest, cargo, the sanitizers, compilers, CMake and Python; of any other
log it shows the end.
"""
import pathlib
import re
import sys

END = 15

# What fails in the words of each tool, and how many lines belong to it; the plainest first.
FAILURES = [
    (r"^\S+:\d+:(\d+:)? (fatal )?error: (?!Failure)", 3),  # gcc, clang
    (r"^error(\[E\d+\])?: (?!test failed|\d+ target)", 3),  # rustc
    (r"^CMake Error", 4),
    (r"^\[ +ERROR +\] ---", 3),
    (r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:", 6),
    (r"^thread '.*' .*panicked at ", 4),
    (r"^[\w.]*(Error|Exception)\b", 1),  # the end of Python's traceback
    (r"\*\*\*(Timeout|Exception)", 1),  # of ctest
    (r"^(FAILED|MISSED|BROKEN|SURVIVED) ", 2),
]


def told_before(lines, at):
    """Where a test of cmocka's began to tell of its failure."""
    begin = at
    while lines[at].startswith("[  ERROR") and begin > max(0, at - 4) and lines[begin - 1] and \
            not lines[begin - 1].startswith("["):
        begin -= 1
    return begin


def first_failure(lines):
    for pattern, count in FAILURES:
        for i, line in enumerate(lines):
            if re.search(pattern, line):
                return lines[told_before(lines, i):i + count]
    return [line for line in lines if line.strip()][-END:]


def alone(command, step, lines):
    """By the name of the first test that failed where there is one, else by the step's."""
    text = "\n".join(lines)
    test = re.search(r"The following tests FAILED:\n\s*\d+ - (\S+)", text)
    if test:
        return f"./dev test {test[1]}"
    crate = re.search(r"to rerun pass `(.*?)`", text)
    if crate:
        name = re.search(r"^---- (\S+) stdout ----", text, re.MULTILINE)
        return f"cargo test {crate[1]}" + (f" {name[1]}" if name else "")
    name = step.removeprefix("C tests: ")
    return f"{command} '{name}'" if " " in name else f"{command} {name}"


def main():
    command, step, log = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    lines = log.read_text(errors="replace").splitlines()
    print("\n".join(first_failure(lines)))
    print(f"alone:   {alone(command, step, lines)}\nthe log: {log}")


if __name__ == "__main__":
    main()
