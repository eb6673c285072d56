#!/usr/bin/env python3
"""layouts.c states the layout of every struct of the public headers, and of each of its members.

    check_layouts.py --cc CC --include FOLDER FILE
"""
import argparse
import pathlib
import re
import sys

import declarations


def missing(structs, text):
    """What `text` does not state."""
    stated = set(re.findall(r"^STRUCT\((\w+), \d", text, flags=re.MULTILINE))
    members = set(re.findall(r"^MEMBER\((\w+), (\w+), \d", text, flags=re.MULTILINE))
    for struct, names in structs.items():
        if struct not in stated:
            yield struct
        yield from (f"{struct}.{name}" for name in names if (struct, name) not in members)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("file", type=pathlib.Path)
    given = parser.parse_args()
    structs = declarations.structs(given.cc, given.include)
    complaints = [f"{given.file.name} does not state {name}"
                  for name in missing(structs, given.file.read_text())]
    print("\n".join(complaints))
    return bool(complaints) or not structs


if __name__ == "__main__":
    sys.exit(main())
