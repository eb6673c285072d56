#!/usr/bin/env python3
"""How hard a binary makes it to exploit an error in memory: full RELRO, no executable stack, no
text relocations, a stack protector, checked calls of the C library, CET, a run path that nobody
else can write to.

    check_hardening.py [--run-path FOLDER[:FOLDER...]] [--fortified]
                       (--library SHARED | --foreign SHARED | --archive STATIC |
                        --program EXECUTABLE | --commands COMPILE_COMMANDS_JSON)...

--fortified: the compiler optimised, so calls of the C library must be checked ones. --commands:
what each object of the library is compiled with, since few of them show it. --foreign: a library of
another compiler's code, which has neither stack protector nor CET, and must not be marked for CET.
"""
import argparse
import json
import re
import shlex
import subprocess
import sys


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], check=True, text=True,
                          capture_output=True).stdout


def undefined(path, table="--syms"):
    """Not by nm, which sees the intermediate code where objects have that, too."""
    return set(re.findall(r"(?m) UND ([^\s@]+)", readelf(path, table)))


def segments(path):
    """Flags of each program header by its type: {"LOAD": ["R", "RE", ...], ...}."""
    found = {}
    for line in readelf(path, "-l").splitlines():
        match = re.match(r"\s+(\w+)\s+0x\w+ 0x\w+ 0x\w+ 0x\w+ 0x\w+ ([RWE ]{3}) ", line)
        if match:
            found.setdefault(match[1], []).append(match[2].replace(" ", ""))
    return found


def check_segments(path):
    found = segments(path)
    if "GNU_RELRO" not in found:
        yield "no RELRO: what is relocated stays writable"
    if any("E" in flags for flags in found.get("GNU_STACK", ["RWE"])):
        yield "the stack is executable"
    if any("W" in flags and "E" in flags for flags in found["LOAD"]):
        yield "a segment is writable and executable"


def check_dynamic(path, run_paths):
    text = readelf(path, "-d")
    if not re.search(r"\((FLAGS|FLAGS_1)\).*\b(BIND_)?NOW\b", text):
        yield "symbols are resolved lazily: their table stays writable"
    if "TEXTREL" in text:
        yield "text relocations"
    for tag, value in re.findall(r"\((RUNPATH|RPATH)\).*\[(.*)\]", text):
        for folder in value.split(":"):
            if folder.rstrip("/") not in run_paths:
                yield f"{tag} has the folder '{folder}'"


def check_imports(imports, fortified):
    if "__stack_chk_fail" not in imports:
        yield "no stack protector"
    if fortified and not any(re.fullmatch(r"__\w+_chk", name) for name in imports):
        yield "no call of the C library is checked (_FORTIFY_SOURCE)"


def is_x86_64(path):
    return "X86-64" in readelf(path, "-h")


def cet(notes):
    return {feature for feature in ("IBT", "SHSTK")
            if re.search(rf"x86 feature:.*\b{feature}\b", notes)}


def check_library(path, run_paths, fortified):
    yield from check_segments(path)
    yield from check_dynamic(path, run_paths)
    yield from check_imports(undefined(path, "--dyn-syms"), fortified)
    if is_x86_64(path):
        for missing in sorted({"IBT", "SHSTK"} - cet(readelf(path, "-n"))):
            yield f"not marked for {missing}"


def check_foreign(path, _run_paths, _fortified):
    """Its run path leads to the library in the build folder, until it is installed."""
    yield from check_segments(path)
    yield from (complaint for complaint in check_dynamic(path, [])
                if not complaint.startswith(("RUNPATH", "RPATH")))
    for feature in sorted(cet(readelf(path, "-n"))):
        yield f"marked for {feature}, which not all of its code is compiled for"


def check_archive(path, _run_paths, fortified):
    """The objects: the linker marks for CET what it is told to, whatever they are."""
    yield from check_imports(undefined(path), fortified)
    if is_x86_64(path):
        for part in re.split(r"(?m)^File: ", readelf(path, "-n"))[1:]:
            for missing in sorted({"IBT", "SHSTK"} - cet(part)):
                yield f"{part.splitlines()[0]} is not compiled for {missing}"


def check_program(path, run_paths, _fortified):
    yield from check_segments(path)
    yield from check_dynamic(path, run_paths)
    if not re.search(r"Type:\s+DYN", readelf(path, "-h")):
        yield "it lies at a fixed address (no PIE)"


def last(words, pattern):
    return next((word for word in reversed(words) if re.match(pattern, word)), "")


def check_commands(path, _run_paths, fortified):
    with open(path, encoding="utf-8") as file:
        entries = [(entry["file"], shlex.split(entry["command"])) for entry in json.load(file)]
    ours = [(file, words) for file, words in entries
            if any(re.search(r"/syncblob_(shared_)?(objects|messages)\.dir/", word) for word in words)]
    if not ours:
        yield "it has no object of the library"
    for file, words in ours:
        if last(words, "-f(no-)?stack-protector") != "-fstack-protector-strong":
            yield f"{file} is compiled without -fstack-protector-strong"
        if fortified and not re.search("=[23]$", last(words, "-[DU]_FORTIFY_SOURCE")):
            yield f"{file} is compiled without -D_FORTIFY_SOURCE"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--run-path", action="append", default=[])
    parser.add_argument("--fortified", action="store_true")
    for kind in (check_library, check_foreign, check_archive, check_program, check_commands):
        parser.add_argument("--" + kind.__name__.removeprefix("check_"), dest="checks",
                            action="append", type=lambda path, kind=kind: (kind, path))
    given = parser.parse_args()
    run_paths = [path.rstrip("/") for paths in given.run_path for path in paths.split(":") if path]
    complaints = [f"{path}: {complaint}" for kind, path in given.checks or parser.error("of what?")
                  for complaint in kind(path, run_paths, given.fortified)]
    print("\n".join(complaints))
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
