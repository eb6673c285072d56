#!/usr/bin/env python3
"""Writes the fuzzers' seeds, FOLDER/seeds/TARGET/NAME, and their dictionaries, FOLDER/TARGET.dict.

    make_seeds.py FOLDER

A module of this folder may define seeds(), which yields (target, name, bytes), and words(), which
yields (target, bytes).
"""

import importlib
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent


def given(function):
    for path in sorted(HERE.glob("*.py")):
        module = importlib.import_module(path.stem) if path != HERE / "make_seeds.py" else None
        yield from getattr(module, function, tuple)()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    sys.dont_write_bytecode = True
    shutil.rmtree(folder / "seeds", ignore_errors=True)
    for target, name, data in given("seeds"):
        place = folder / "seeds" / target / name
        if place.exists():
            sys.exit(f"{target}: two seeds are called {name}")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    dictionaries = {}
    for target, word in given("words"):
        quoted = "".join(f"\\x{byte:02x}" for byte in word)
        dictionaries.setdefault(target, []).append(f'"{quoted}"\n')
    for target, lines in dictionaries.items():
        (folder / f"{target}.dict").write_text("".join(dict.fromkeys(lines)))


if __name__ == "__main__":
    main()
