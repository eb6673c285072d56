"""A copy of the tree with every mutant in it, and its build."""

import json
import os
import pathlib
import re
import shlex
import subprocess

from edits import plant

PARTS = ("CMakeLists.txt", "dev", "c", "cuda", "proto", "fuzz", "tests", "bindings")
LEFT_OUT = ("target", "__pycache__", "build")
HERE = pathlib.Path(__file__).resolve().parent


class BuildFailed(Exception):
    """With the last lines of what was said."""


def write(path, data):
    """Only what is new: the rest is not built again."""
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


class Tree:
    def __init__(self, root, folder, options, flags, jobs, say):
        self.root, self.source, self.build = root, folder / "source", folder / "build"
        self.options, self.flags, self.jobs, self.say = options, flags, jobs, say

    def files(self):
        for part in PARTS:
            top = self.root / part
            if top.is_file():
                yield top
            for folder, names, files in os.walk(top):
                names[:] = [n for n in names if n not in LEFT_OUT]
                yield from (pathlib.Path(folder, file) for file in files)

    def copy(self, planted):
        """All but the sources that mutants go into, and those that are gone."""
        wanted, self.planted = set(), planted
        for file in self.files():
            path = file.relative_to(self.root)
            wanted.add(str(path))
            if str(path) not in planted or not (self.source / path).exists():
                data = file.read_bytes()
                if str(path) == "c/sources.txt":
                    data += f"{HERE.relative_to(self.root)}/mutant.c\n".encode()
                write(self.source / path, data)
        for folder, _, files in os.walk(self.source):
            for file in files:
                path = pathlib.Path(folder, file)
                if str(path.relative_to(self.source)) not in wanted:
                    path.unlink()

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

    def database(self):
        return json.loads((self.build / "compile_commands.json").read_text())

    def commands(self):
        """(path, words that compile it without input and output) of the library's own sources."""
        listed = {"c/src/proto/pack_protobuf_c.c", "c/src/proto/pack_plain.c"}
        for text in ("c/sources.txt", "c/testing/sources.txt", "c/comm/sources.txt", "cuda/sources.txt"):
            listed.update((self.root / text).read_text().split("\n"))
        for entry in self.database():
            path = os.path.relpath(entry["file"], self.source)
            if path in listed and re.search("syncblob_(objects|testing|comm)", entry["command"]):
                words = shlex.split(entry["command"])
                at = words.index("-o")
                words = words[:at] + words[at + 2:]
                yield path, [w for w in words if w not in ("-c", entry["file"])]

    def clang_arguments(self):
        """The same for libclang, which reads the sources as they are."""
        resources = subprocess.run(["clang", "-print-resource-dir"], capture_output=True, text=True,
                                   check=True).stdout.strip()
        for path, words in self.commands():
            flags = [w.replace(str(self.source), str(self.root)) for w in words[1:]]
            yield self.root / path, [*flags, "-resource-dir", resources]

    # --- mutants ---------------------------------------------------------------------

    def plant(self, found, live):
        """Writes the sources; says which mutants have a place."""
        placed = set()
        for path in self.planted | found.keys():  # what has none now may have had some
            text, there = plant((self.root / path).read_text(), found.get(path, []), live)
            write(self.source / path, text.encode())
            placed |= there
        return placed

    def make(self, targets):
        command = ["cmake", "--build", self.build, f"-j{self.jobs}", "--target", *targets]
        done = subprocess.run([*command, "--", "-k", "0"], capture_output=True, text=True)
        return None if done.returncode == 0 else done.stdout + done.stderr

    def build_all(self, found, live, targets):
        """Builds with as many mutants as compile; returns these."""
        live = self.plant(found, live)
        commands = dict(self.commands())
        for _ in range(10):
            story = self.make(targets)
            if story is None:
                return live
            bad = set()
            for path, lines in self.errors(story).items():
                bad |= self.culprits(path, lines, found, live, commands)
            if not bad:
                raise BuildFailed(story[-3000:])
            self.say(f"{len(bad)} mutants do not compile")
            live = self.plant(found, live - bad)
        raise BuildFailed(story[-3000:])

    def errors(self, story):
        """{path: lines} of what a compiler refuses; no lines where it speaks of another file's."""
        lines = {}
        for entry in self.database():
            if entry["file"].startswith(str(self.source)) and \
                    any(f" -o {made} " in entry["command"]
                        for made in re.findall(r"^FAILED: (\S+)", story, flags=re.M)):
                lines[os.path.relpath(entry["file"], self.source)] = set()
        pattern = rf"^{re.escape(str(self.source))}/([^:\n]+):(\d+):(?:\d+:)? (?:fatal )?error:"
        for m in re.finditer(pattern, story, flags=re.M):
            lines.setdefault(m[1], set()).add(int(m[2]))
        return lines

    def culprits(self, path, lines, found, live, commands):
        """Those on the lines that do not compile by themselves; in a header, all."""
        text = (self.root / path).read_text()
        suspects = set()
        for edit in found.get(path, []):
            first = text.count("\n", 0, edit.start) + 1
            last = text.count("\n", 0, edit.end) + 1
            if not lines or lines & set(range(first, last + 1)):
                suspects |= set(edit.mutants) & live
        if path not in commands:
            return suspects
        return {m for m in suspects if not self.compiles(path, found[path], m, commands[path])}

    def compiles(self, path, edits, mutant, command):
        trial = self.build / "trial.c"
        text = plant((self.root / path).read_text(), edits, {mutant})[0]
        trial.write_text(text)
        folder = (self.source / path).parent
        return subprocess.run([*command, "-iquote", folder, "-c", trial, "-o", "/dev/null"],
                              capture_output=True, cwd=self.build).returncode == 0
