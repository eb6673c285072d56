#!/usr/bin/env python3
"""Writes the made part of the corpora: fuzz/corpus/TARGET/NAME.

    make_seeds.py            writes the seeds
    make_seeds.py --check    says whether the seeds in the tree are the ones it writes

Each module here that has seeds() gives (target, name, bytes). Inputs that fuzzing
found lie in the same folders under libFuzzer's names, 40 hexadecimal digits, and
are left alone.
"""

import argparse
import importlib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE.parent / "corpus"
FOUND = re.compile(r"[0-9a-f]{40}")


def modules():
    for path in sorted(HERE.glob("*.py")):
        module = importlib.import_module(path.stem) if path.stem != "make_seeds" else None
        if hasattr(module, "seeds"):
            yield module


def made():
    """Every seed: path -> bytes."""
    seeds = {}
    for module in modules():
        for target, name, data in module.seeds():
            path = CORPUS / target / name
            if path in seeds or FOUND.fullmatch(name):
                sys.exit(f"{target}: the name {name} is taken")
            seeds[path] = bytes(data)
    return seeds


def kept(targets):
    """The seeds that the tree has for these targets."""
    return {path: path.read_bytes() for target in targets
            for path in (CORPUS / target).glob("*") if not FOUND.fullmatch(path.name)}


def check(seeds, in_tree):
    wrong = sorted(path for path in seeds.keys() | in_tree.keys()
                   if seeds.get(path) != in_tree.get(path))
    for path in wrong:
        what = ("is missing" if path not in in_tree else
                "is none of the seeds" if path not in seeds else "differs")
        print(f"{path.relative_to(CORPUS)} {what}")
    return int(bool(wrong))


def write(seeds, in_tree):
    for path in in_tree.keys() - seeds.keys():
        path.unlink()
    for path, data in seeds.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    print(f"{len(seeds)} seeds, {sum(map(len, seeds.values()))} bytes")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args()
    sys.path.insert(0, str(HERE))
    seeds = made()
    in_tree = kept({path.parent.name for path in seeds})
    return (check if args.check else write)(seeds, in_tree)


if __name__ == "__main__":
    sys.exit(main())
