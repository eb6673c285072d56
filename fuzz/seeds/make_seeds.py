#!/usr/bin/env python3
"""Writes the made part of the corpora, fuzz/corpus/TARGET/NAME, and made dictionaries.

    make_seeds.py            writes the seeds
    make_seeds.py --check    says whether the seeds in the tree are the ones it writes

Each module here that has seeds() gives (target, name, bytes), one that has words() the
same for fuzz/dictionaries/TARGET.dict. Inputs that fuzzing found lie in the corpora's
folders under libFuzzer's names, 40 hexadecimal digits, and are left alone, as are
dictionaries that no module makes.
"""

import argparse
import importlib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
FUZZ = HERE.parent
CORPUS = FUZZ / "corpus"
FOUND = re.compile(r"[0-9a-f]{40}")


def given(function):
    """What the modules' functions of that name give."""
    for path in sorted(HERE.glob("*.py")):
        module = importlib.import_module(path.stem) if path.stem != "make_seeds" else None
        yield from getattr(module, function, tuple)()


def seeds():
    """Every seed: path -> bytes."""
    made = {}
    for target, name, data in given("seeds"):
        path = CORPUS / target / name
        if path in made or FOUND.fullmatch(name):
            sys.exit(f"{target}: the name {name} is taken")
        made[path] = bytes(data)
    return made


def dictionaries():
    """Every dictionary: path -> bytes."""
    made = {}
    for target, name, data in given("words"):
        word = "".join(f"\\x{byte:02x}" for byte in data)
        path = FUZZ / "dictionaries" / f"{target}.dict"
        made[path] = made.get(path, b"") + f'{name}="{word}"\n'.encode()
    return made


def kept(made):
    """What the tree has in these places, and seeds for the same targets."""
    folders = {path.parent for path in made if CORPUS in path.parents}
    paths = {path for folder in folders for path in folder.glob("*")
             if not FOUND.fullmatch(path.name)}
    return {path: path.read_bytes() for path in paths | made.keys() if path.exists()}


def check(made, in_tree):
    wrong = sorted(path for path in made.keys() | in_tree.keys()
                   if made.get(path) != in_tree.get(path))
    for path in wrong:
        what = ("is missing" if path not in in_tree else
                "is none of the seeds" if path not in made else "differs")
        print(f"{path.relative_to(FUZZ)} {what}")
    return int(bool(wrong))


def write(made, in_tree):
    for path in in_tree.keys() - made.keys():
        path.unlink()
    for path, data in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    print(f"{len(made)} files, {sum(map(len, made.values()))} bytes")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args()
    sys.path.insert(0, str(HERE))
    made = {**seeds(), **dictionaries()}
    return (check if args.check else write)(made, kept(made))


if __name__ == "__main__":
    sys.exit(main())
