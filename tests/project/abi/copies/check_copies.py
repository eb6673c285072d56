#!/usr/bin/env python3
"""Copies of the library in one process do not meet: today's and one of the next minor version, each
shared and static, in one program and its libraries.

    check_copies.py [--cc CC] [--jobs N] FOLDER

FOLDER is that of a build with both of today's libraries. The next version is compiled from the same
sources, as c/abi/README.md tells it to be made; its objects have another layout.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from changed_library import ROOT, ChangedLibrary, change, run  # noqa: E402 (the folder above)

FLAGS = ["-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fPIC"]


class Copy:
    """A copy of the library, and what a user of it is compiled and linked with."""

    def __init__(self, kind, minor, include, *link):
        self.name = f"{kind}_{minor}"
        self.kind, self.link = kind, [str(part) for part in link]
        self.compile = [f"-I{include}", f"-DVERSION={minor}"]


def next_version(cc, folder):
    """Every node of the map changes with the library's number; objects change as they like."""
    made = ChangedLibrary(cc, folder)
    change(made.include / "syncblob/base.h", r"(#define SB_VERSION_MINOR) 1\b", r"\1 2")
    change(made.map, r"^(SYNCBLOB_(\w+_)?0)\.1\b", r"\1.2")
    for path, struct in (("context/context.h", "sb_context"), ("memory/mem.h", "sb_mem"),
                         ("blob/blob.h", "sb_blob")):
        change(made.source / path, rf"^struct {struct} \{{$", rf"\g<0>\n    char later[72];")
    return made


def shared(minor, include, library):
    return Copy("shared", minor, include, library, f"-Wl,-rpath,{library.parent}")


def needs_of_archive(build):
    """The libraries that its pkg-config file names."""
    text = (build / "c/syncblob.pc").read_text()
    folders = re.findall(r"-L/\S+", text)
    return folders + re.search(r"^Libs\.private:(.*)$", text, re.MULTILINE)[1].split()


def copies(cc, build, folder, jobs):
    later = next_version(cc, folder / "next")
    today = ROOT / "c/include"
    return [shared(1, today, build / "c/libsyncblob.so.0.1"),
            shared(2, later.include, later.shared(jobs)),
            Copy("static", 1, today, build / "c/libsyncblob.a", *needs_of_archive(build)),
            Copy("static", 2, later.include, later.static(jobs), "-lm", "-ldl", "-lpthread")]


class Check:
    def __init__(self, cc, folder):
        self.cc, self.folder = cc, folder
        self.passed, self.complaints = 0, []

    def judge(self, holds, complaint):
        self.passed += bool(holds)
        if not holds:
            self.complaints.append(complaint)

    def exports_nothing(self, path):
        listed = run("nm", "-D", "--defined-only", path, capture_output=True).stdout
        found = re.findall(r"\bsb_\w+", listed)
        self.judge(not found, f"{path.name} exports {len(found)} symbols, {' '.join(found[:3])} ...")

    def user(self, copy):
        """A library that uses a copy."""
        out = self.folder / f"libuser_{copy.name}.so"
        run(self.cc, *FLAGS, "-shared", *copy.compile, f"-DUSER={copy.name}", HERE / "user.c",
            "-o", out, *copy.link)
        if copy.kind == "static":
            self.exports_nothing(out)
        return out

    def program(self, copy, name, linked, *flags):
        """A program that uses a few functions of a copy itself, linked with users of others."""
        out, part = self.folder / f"{name}_{copy.name}", self.folder / "program.o"
        run(self.cc, *FLAGS, *copy.compile, "-DUSER=program", "-DFEW", "-c", HERE / "user.c", "-o", part)
        run(self.cc, *FLAGS, f"-DLINKED={' '.join(f'X({user})' for user in linked)}", HERE / "host.c",
            part, "-o", out, f"-Wl,-rpath,{self.folder}", *linked.values(), *copy.link, "-ldl",
            *flags)
        if copy.kind == "static":
            self.exports_nothing(out)
        return out

    def runs(self, program, *arguments):
        command = [str(part) for part in (program, *arguments)]
        ended = subprocess.run(command, capture_output=True, text=True)
        self.judge(ended.returncode == 0, f"{' '.join(command)} ended with {ended.returncode}\n"
                   f"{ended.stdout}{ended.stderr}")

    def program_and_users(self, copy, users):
        """Linked with them in either order, the second time with all that it has exported; and
        loading them, for itself alone and for all."""
        backwards = dict(reversed(users.items()))
        self.runs(self.program(copy, "linked", users))
        self.runs(self.program(copy, "exporting", backwards, "-rdynamic"))
        loading = self.program(copy, "loading", {}, "-rdynamic")
        for scope in ("local", "global"):
            for order in (users, backwards):
                self.runs(loading, scope, *(part for user in order.items() for part in user))

    def crossing(self, static, other):
        """An object of one copy in another of the same sources."""
        out = self.folder / "crossing"
        run(self.cc, *FLAGS, *static.compile, HERE / "crossing.c", "-o", out, *static.link, "-ldl")
        self.runs(out, other.link[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check = Check(given.cc, pathlib.Path(folder))
        made = copies(given.cc, given.build, check.folder, given.jobs)
        users = {copy.name: check.user(copy) for copy in made}
        for copy in made:
            check.program_and_users(copy, users)
        check.crossing(made[2], made[0])
    print("\n".join([*check.complaints, f"{check.passed} passed, {len(check.complaints)} failed"]))
    return bool(check.complaints)


if __name__ == "__main__":
    sys.exit(main())
