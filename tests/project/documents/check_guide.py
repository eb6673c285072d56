#!/usr/bin/env python3
"""Checks that the tables of c/README.md name, by folder, exactly the source files of the core library and
of the libraries that use it, and that cuda/README.md names exactly the files of cuda."""
import re
import sys

sys.dont_write_bytecode = True
from pages import ROOT, prose  # noqa: E402

C = ROOT / "c"
SOURCE = C / "src"
NAME = re.compile(r"`((?:[\w.]+/)*\w+\.[ch])`")


def named(page):
    """Yields (the section's folder, name) of each file in a table."""
    folder = ""
    for _, line in prose(page):
        heading = re.match(r"## (\w+)", line)
        if heading:
            folder = heading.group(1)
        if line.startswith("|"):
            yield from ((folder, name) for name in NAME.findall(line))


def guide_problems():
    found = set()
    for folder, name in named(ROOT / "c" / "README.md"):
        places = [SOURCE / folder / name, SOURCE / name, C / name, C / folder / "src" / name,
                  C / "include/syncblob" / name, C / folder / "include/syncblob" / name]
        there = [place for place in places if place.is_file()]
        if not there:
            yield f"c/README.md: there is no {name} for {folder}"
        found.update(there[:1])
    for path in sorted([*SOURCE.rglob("*.c"), *C.glob("*/src/*.c")]):
        if path not in found:
            yield f"c/README.md: {path.relative_to(C)} is not named"


def cuda_problems():
    names = {name for _, name in named(ROOT / "cuda" / "README.md") if "/" not in name}
    there = {path.name for path in (ROOT / "cuda").glob("*.[ch]")}
    for name in sorted(there - names):
        source = name.replace(".h", ".c")
        if name.endswith(".c") or source not in names:
            yield f"cuda/README.md: {name} is not named"
    yield from (f"cuda/README.md: there is no {name}" for name in sorted(names - there))


def main():
    found = [*guide_problems(), *cuda_problems()]
    print("\n".join(found) or "the guides name every source file")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
