"""Copies the tree, plants mutants in the copy, and builds the copy."""

import json
import os
import pathlib
import re
import shlex
import subprocess

from edits import plant

PARTS = ("CMakeLists.txt", "dev", "c", "cuda", "proto", "fuzz", "tests", "bindings")
HERE = pathlib.Path(__file__).resolve().parent


class BuildFailed(Exception):
    """The message has the last lines of the build's output."""


def write(path, data):
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


class Tree:
    def __init__(self, root, folder, options, flags, jobs):
        self.root, self.source, self.build = root, folder / "source", folder / "build"
        self.options, self.flags, self.jobs = options, flags, jobs

    def copy(self, planted):
        self.planted, wanted = planted, set()
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *PARTS],
                                cwd=self.root, check=True, capture_output=True, text=True).stdout
        for path in filter(lambda path: (self.root / path).is_file(), listed.splitlines()):
            wanted.add(self.source / path)
            if path not in planted or not (self.source / path).exists():
                data = (self.root / path).read_bytes()
                if path == "c/sources.txt":
                    data += f"{HERE.relative_to(self.root)}/mutant.c\n".encode()
                write(self.source / path, data)
        for gone in set(filter(pathlib.Path.is_file, self.source.rglob("*"))) - wanted:
            gone.unlink()

    def configure(self):
        header = self.source / HERE.relative_to(self.root) / "mutant.h"
        command = ["cmake", "-G", "Ninja", "-S", self.source, "-B", self.build,
                   "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=",
                   "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DSYNCBLOB_BUILD_TESTS=ON",
                   "-DSYNCBLOB_INSTALL=OFF", "-DBUILD_SHARED_LIBS=OFF", *self.options,
                   f"-DCMAKE_C_FLAGS=-O1 -w -include {header} {self.flags}"]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if done.returncode != 0:
            raise BuildFailed(done.stdout + done.stderr)

    def clang_arguments(self):
        resources = subprocess.run(["clang", "-print-resource-dir"], capture_output=True, text=True,
                                   check=True).stdout.strip()
        for entry in json.loads((self.build / "compile_commands.json").read_text()):
            path = os.path.relpath(entry["file"], self.source)
            if path in self.planted and re.search("syncblob_(objects|testing|conformance|comm)",
                                                  entry["command"]):
                words = shlex.split(entry["command"].replace(str(self.source), str(self.root)))
                at = words.index("-o")
                words = [w for w in words[1:at] + words[at + 2:]
                         if w not in ("-c", str(self.root / path))]
                yield self.root / path, [*words, "-resource-dir", resources]

    def plant(self, found, live):
        placed = set()
        for path in self.planted:
            text, there = plant((self.root / path).read_text(), found.get(path, []), live)
            write(self.source / path, text.encode())
            placed |= there
        return placed

    def build_all(self, found, live, targets):
        """If the compiler reports an error in a line, removes all mutants of the line."""
        command = ["cmake", "--build", self.build, f"-j{self.jobs}", "--target", *targets,
                   "--", "-k", "0"]
        while True:
            live = self.plant(found, live)
            done = subprocess.run(command, capture_output=True, text=True)
            bad = self.culprits(done.stdout + done.stderr, found) & live
            if done.returncode == 0:
                return live
            if not bad:
                raise BuildFailed((done.stdout + done.stderr)[-3000:])
            live -= bad

    def culprits(self, messages, found):
        bad = set()
        pattern = rf"^\S*{self.source.name}/([^:\n]+):(\d+):(?:\d+:)? (?:fatal )?error:"
        for path, line in re.findall(pattern, messages, flags=re.M):
            text = (self.root / path).read_text() if path in self.planted else ""
            for edit in found.get(path, []):
                first, last = (text.count("\n", 0, at) + 1 for at in (edit.start, edit.end))
                if first <= int(line) <= last:
                    bad.update(edit.mutants)
        return bad
