#!/usr/bin/env python3
"""Says what a failed step's log is about: the first test that failed in it, its assertion, and the
one command that runs it alone.

    first_failure.py COMMAND LOG

Knows the words of cmocka, ctest, cargo, the sanitizers, compilers, CMake and Python; of any other
log it shows the end. What a step does next stands in its log as "alone: COMMAND" (step.sh); where
nothing does, the step's own COMMAND runs it.
"""
import pathlib
import re
import sys

END = 15
RESULT = re.compile(r" *\d+/\d+ +Test +#\d+: (\S+) ")  # ctest's, before what the test printed
START = re.compile(r" +Start +\d+: |\d+% tests passed,")

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
    """Where it begins, and its lines."""
    for pattern, count in FAILURES:
        for i, line in enumerate(lines):
            if re.search(pattern, line):
                return i, lines[told_before(lines, i):i + count]
    return len(lines), [line for line in lines if line.strip() and line != "alone:"][-END:]


def command_at(lines, at):
    """What the step did there, where it says so."""
    told = [line[len("alone:"):].strip() for line in lines[:at] if re.match(r"alone:( |$)", line)]
    return told[-1] if told else ""


def of_ctest(lines):
    """The first test that failed: its lines, and its command."""
    for i, line in enumerate(lines):
        test = RESULT.match(line)
        if test and re.search(r"\*\*\*(?!Skipped)", line):
            end = next((j for j in range(i + 1, len(lines))
                        if RESULT.match(lines[j]) or START.match(lines[j])), len(lines))
            return first_failure(lines[i:end])[1], \
                f"{command_at(lines, i)} -R '^{re.escape(test[1])}$'"
    return None


def of_cargo(lines):
    """The same."""
    text = "\n".join(lines)
    program = re.search(r"to rerun pass `(.*?)`", text)
    if not program:
        return None
    # Of the workspace, whose members turn on each other's features.
    command = re.sub(r" -p \S+", " --workspace", f"cargo test --locked {program[1]}")
    test = re.search(r"^---- (\S+) stdout ----\n(.*?)(?=^---- |^failures:$|\Z)", text, re.M | re.S)
    if not test:
        return first_failure(lines)[1], command
    return first_failure(test[0].splitlines())[1], f"{command} -- --exact {test[1]}"


def of_others(lines):
    begin, story = first_failure(lines)
    return story, command_at(lines, begin)


def main():
    command, log = sys.argv[1], pathlib.Path(sys.argv[2])
    lines = log.read_text(errors="replace").splitlines()
    story, alone = of_ctest(lines) or of_cargo(lines) or of_others(lines)
    print("\n".join(story))
    print(f"alone:   {alone or command}\nthe log: {log}")


if __name__ == "__main__":
    main()
