#!/usr/bin/env python3
"""Checks that a binary has the usual hardening against memory errors.

    check_hardening.py KIND FILE [--run-path FOLDER[:FOLDER...]] [--fortified]

KIND is library, archive, program or foreign. A foreign library contains code of another compiler, which has no
stack protector and no CET. With --fortified, the binary must call the checked functions of the C library.
"""
import argparse
import re
import subprocess
import sys

LINKED = {"library", "foreign", "program"}
COMPILED = {"library", "archive"}
RULES = [
    (LINKED, True, r"GNU_RELRO", "no RELRO: relocated data stays writable"),
    (LINKED, True, r"\(FLAGS(_1)?\).*NOW", "symbols are resolved lazily: their table stays writable"),
    (LINKED, True, r"GNU_STACK.* RW  0", "the stack is executable"),
    (LINKED, False, r"LOAD.* RWE 0x", "a segment is writable and executable"),
    (LINKED, False, r"TEXTREL", "text relocations"),
    ({"program"}, True, r"Type:\s+DYN", "it lies at a fixed address (no PIE)"),
    (COMPILED, True, r" UND __stack_chk_fail\b", "no stack protector"),
    ({"fortified"}, True, r" UND __\w+_chk\b", "no checked call of the C library (_FORTIFY_SOURCE)"),
    ({"x86"}, True, r"x86 feature:.*\bIBT\b", "not compiled for IBT"),
    ({"x86"}, True, r"x86 feature:.*\bSHSTK\b", "not compiled for SHSTK"),
    ({"foreign"}, False, r"x86 feature:.*\bIBT\b", "marked for IBT, which its code lacks"),
]


def problems(kind, path, run_paths, fortified):
    text = subprocess.run(["readelf", "-hldnsW", path], check=True, text=True,
                          capture_output=True).stdout
    kinds = {kind}
    if kind in COMPILED:
        kinds |= {"fortified"} if fortified else set()
        kinds |= {"x86"} if "X86-64" in text else set()
    # readelf prints the x86 features of each object of an archive separately
    objects = re.split(r"(?m)^File: ", text)[1:] if kind == "archive" else [text]
    for where, wanted, pattern, complaint in RULES:
        parts = objects if where == {"x86"} else [text]
        if kinds & where and any(bool(re.search(pattern, part)) != wanted for part in parts):
            yield complaint
    for tag, value in re.findall(r"\((RUNPATH|RPATH)\).*\[(.*)\]", text):
        # a foreign library has the build folder in its run path until it is installed
        yield from (f"{tag} has the folder '{folder}'" for folder in value.split(":")
                    if kind != "foreign" and folder.rstrip("/") not in run_paths)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["library", "archive", "program", "foreign"])
    parser.add_argument("file")
    parser.add_argument("--run-path", default="")
    parser.add_argument("--fortified", action="store_true")
    given = parser.parse_args()
    run_paths = [path.rstrip("/") for path in given.run_path.split(":")]
    found = list(problems(given.kind, given.file, run_paths, given.fortified))
    print(*(f"{given.file}: {problem}" for problem in found), sep="\n", end="")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
