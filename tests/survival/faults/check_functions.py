#!/usr/bin/env python3
"""Every exported function is driven by a fault test, or functions.txt says why no step of it can
fail: the list names each function of the public headers once, and the programs that it names call
the function."""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
HEADERS = sorted((HERE.parents[2] / "c").glob("**/include/syncblob/*.h"))
# A declaration may break its line anywhere but within a name.
DECLARATION = re.compile(r"^SB_API\s[^;]*?\b(sb_\w+)\s*\(", re.MULTILINE)


def exported():
    texts = [header.read_text() for header in HEADERS]
    return sorted(name for text in texts for name in DECLARATION.findall(text))


def listed():
    rows = (HERE / "functions.txt").read_text().splitlines()
    return [row.split(":", 1) for row in rows if row and not row.startswith("#")]


def calls(program):
    """The words of a test's source, and of what makes calls by number where it includes that."""
    text = (HERE / f"test_{program}.c").read_text()
    if re.search(r'"(mem_calls|scene)\.h"', text):
        text += (HERE.parents[1] / "support" / "mem_calls.c").read_text()
    return set(re.findall(r"\bsb_\w+", text))


def problems():
    functions, rows = exported(), listed()
    names = [name for name, _ in rows]
    yield from (f"not in functions.txt: {name}" for name in functions if name not in names)
    yield from (f"not exported: {name}" for name in names if name not in functions)
    yield from (f"twice in functions.txt: {name}" for name in set(names) if names.count(name) > 1)
    for name, how in rows:
        how = how.strip()
        if how.startswith("- ") or not how:
            if len(how) < 5:
                yield f"without a reason: {name}"
            continue
        for program in how.split(";")[0].split():
            if name not in calls(program):
                yield f"{program} does not call {name}"


def main():
    found = list(problems())
    print("\n".join(found) or f"{len(exported())} functions, each driven or explained")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
