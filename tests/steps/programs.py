#!/usr/bin/env python3
"""Prints the targets that build what the C tests with PATTERN in their names run.

    programs.py BUILD PATTERN

ctest does not tell the command of a program that is not there yet, so that the commands come from
the files that CMake made for it.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys


def commands(build):
    """The words of each test's command, by its name."""
    found = {}
    for file in pathlib.Path(build).rglob("CTestTestfile.cmake"):
        for name, words in re.findall(r"^add_test\(\[=\[(.*?)\]=\] (.*)\)$", file.read_text(), re.M):
            found[name] = shlex.split(words)
    return found


def main():
    build, pattern = os.path.realpath(sys.argv[1]), sys.argv[2]
    listed = subprocess.check_output(["ctest", "--test-dir", build, "-R", pattern,
                                      "--show-only=json-v1"], text=True)
    made = {line.split(":")[0] for line in subprocess.check_output(
        ["ninja", "-C", build, "-t", "targets", "all"], text=True).splitlines()}
    words_of, targets = commands(build), set()
    for test in json.loads(listed)["tests"]:
        words = words_of[test["name"]]
        if "--install" in words:
            targets.add("all")
        targets |= {os.path.relpath(word, build) for word in words if word.startswith(build + os.sep)
                    and os.path.relpath(word, build) in made}
    print(" ".join(sorted(targets)))


if __name__ == "__main__":
    main()
