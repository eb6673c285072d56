#!/usr/bin/env python3
"""Prints the targets that build what the C tests with PATTERN in their names run.

    programs.py BUILD PATTERN
"""
import json
import os
import subprocess
import sys

build, pattern = os.path.realpath(sys.argv[1]), sys.argv[2]
listed = subprocess.check_output(["ctest", "--test-dir", build, "-R", pattern,
                                  "--show-only=json-v1"], text=True)
targets = set()
for test in json.loads(listed)["tests"]:
    words = test.get("command", [])
    made = [word for word in words if word.startswith(build + os.sep)]
    # A script is given what it looks at; installing takes everything.
    targets |= {os.path.relpath(word, build) for word in made if os.path.splitext(word)[1] in
                ("", ".so", ".a") or os.access(word, os.X_OK)}
    if "--install" in words or not words:
        targets.add("all")
print(" ".join(sorted(targets)))
