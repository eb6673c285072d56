#!/usr/bin/env python3
"""layouts.c states the layout of every struct of the public headers, and of each of its members;
numbers.c states the number of every constant; test_flags.c has every function that takes flags.

    check_layouts.py --cc CC --include FOLDER [--over FOLDER]... LAYOUTS NUMBERS FLAGS
"""
import argparse
import pathlib
import re
import sys

import declarations

# What is raised, or counts what may become more.
CHANGING = {"SB_BACKEND_ABI_VERSION", "SB_DL_MINOR_VERSION", "SB_SIM_OP_COUNT", "SB_STATUS_END_",
            "SB_VERSION_MAJOR", "SB_VERSION_MINOR", "SB_VERSION_PATCH"}


def missing_layouts(structs, text):
    """What `text` does not state."""
    stated = set(re.findall(r"^STRUCT\((\w+), \d", text, flags=re.MULTILINE))
    members = set(re.findall(r"^MEMBER\((\w+), (\w+), \d", text, flags=re.MULTILINE))
    for struct, names in structs.items():
        if struct not in stated:
            yield struct
        yield from (f"{struct}.{name}" for name in names if (struct, name) not in members)


def missing_numbers(constants, text):
    return sorted(constants - CHANGING - set(re.findall(r"\bROW\((\w+), -?\d", text)))


def missing_flags(functions, text):
    return sorted(functions - set(re.findall(r"\bROW\((\w+), SB_\w", text)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--over", action="append", default=[])
    parser.add_argument("layouts", type=pathlib.Path)
    parser.add_argument("numbers", type=pathlib.Path)
    parser.add_argument("flags", type=pathlib.Path)
    given = parser.parse_args()
    structs = declarations.structs(given.cc, given.include, *given.over)
    constants = declarations.constants(given.cc, given.include, *given.over)
    flagged = declarations.functions_with_flags(given.cc, given.include)
    complaints = [f"{given.layouts.name} does not state {name}"
                  for name in missing_layouts(structs, given.layouts.read_text())]
    complaints += [f"{given.numbers.name} does not state {name}"
                   for name in missing_numbers(constants, given.numbers.read_text())]
    complaints += [f"{given.flags.name} does not call {name} with flags"
                   for name in missing_flags(flagged, given.flags.read_text())]
    print("\n".join(complaints))
    return bool(complaints) or not structs or not constants or not flagged


if __name__ == "__main__":
    sys.exit(main())
