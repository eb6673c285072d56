#!/usr/bin/env python3
"""Prints the first test that failed in the log of a step, and the command that runs this test alone:
first_failure.py COMMAND LOG

Recognises failures of cmocka, ctest, cargo, the sanitizers, compilers, CMake and Python. In a step's log,
"alone: COMMAND" precedes the output of a command that can be run by hand, and "alone:" follows the output.
For a failure outside such output, prints the step's COMMAND.
"""
import pathlib
import re
import sys

END = 15
RESULT = re.compile(r" *\d+/\d+ +(?:Test|MemCheck) +#\d+: (\S+) ")
START = re.compile(r" +Start +\d+: |\d+% tests passed,")

# Each row has the pattern of a failure and the number of lines to print. The first match counts.
FAILURES = [
    (r"^\S+:\d+:(\d+:)? (fatal )?error: (?!Failure)", 3),  # gcc, clang
    (r"^error(\[E\d+\])?: (?!test failed|\d+ target)", 3),  # rustc
    (r"^CMake Error", 4),
    (r"^\[ +ERROR +\] ---", 3),
    (r"^==\d+== \S", 6),  # valgrind
    (r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:", 6),
    (r"^thread '.*' .*panicked at ", 4),
    (r"^[\w.]*(Error|Exception)\b", 1),  # the end of Python's traceback
    (r"\*\*\*(Timeout|Exception)", 1),  # ctest
    (r"^(FAILED|MISSED|BROKEN|SURVIVED) ", 2),
]


def first_failure(lines):
    for pattern, count in FAILURES:
        for i, line in enumerate(lines):
            if re.search(pattern, line):
                begin = i  # cmocka prints the values before the assertion
                while line.startswith("[  ERROR") and begin > max(0, i - 4) and \
                        lines[begin - 1] and not lines[begin - 1].startswith("["):
                    begin -= 1
                return i, lines[begin:i + count]
    return len(lines), [line for line in lines if line.strip() and line != "alone:"][-END:]


def command_at(lines, at):
    commands = [line[len("alone:"):].strip() for line in lines[:at] if re.match(r"alone:( |$)", line)]
    return commands[-1] if commands else ""


def of_ctest(lines):
    for i, line in enumerate(lines):
        test = RESULT.match(line)
        if test and re.search(r"\*\*\*(?!Skipped)", line):
            end = next((j for j in range(i + 1, len(lines))
                        if RESULT.match(lines[j]) or START.match(lines[j])), len(lines))
            block = lines[i:] if "MemCheck" in line else lines[i:end]  # valgrind's reports follow all results
            return first_failure(block)[1], \
                f"{command_at(lines, i)} -R '^{re.escape(test[1])}$'"
    return None


def of_cargo(lines):
    text = "\n".join(lines)
    program = re.search(r"to rerun pass `(.*?)`", text)
    if not program:
        return None
    # The members of cargo's workspace enable each other's features.
    command = re.sub(r" -p \S+", " --workspace", f"cargo test --locked {program[1]}")
    test = re.search(r"^---- (\S+) stdout ----\n(.*?)(?=^---- |^failures:$|\Z)", text, re.M | re.S)
    if not test:
        return first_failure(lines)[1], command
    return first_failure(test[0].splitlines())[1], f"{command} -- --exact {test[1]}"


def of_others(lines):
    begin, excerpt = first_failure(lines)
    return excerpt, command_at(lines, begin)


def main():
    command, log = sys.argv[1], pathlib.Path(sys.argv[2])
    lines = log.read_text(errors="replace").splitlines()
    excerpt, alone = of_ctest(lines) or of_cargo(lines) or of_others(lines)
    print("\n".join(excerpt))
    print(f"alone:   {alone or command}\nthe log: {log}")


if __name__ == "__main__":
    main()
