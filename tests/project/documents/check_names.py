#!/usr/bin/env python3
"""check_names.py [PAGE...]: checks the file paths and the names of our C interface on the pages.

Every path must exist, and a header must declare every function, type and constant. Without a PAGE, checks all
pages, and that the tables of c/README.md and cuda/README.md list every source file.
"""
import functools
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from check_reference import dtypes  # noqa: E402
from pages import ROOT, pages, prose, shown  # noqa: E402

INCLUDES = [*sorted(ROOT.glob("c/**/include")), ROOT / "bindings/syncblob-net-c/include"]
NAME = re.compile(r"\b(?:sb|SB)_(?!_)\w+")
FILE = re.compile(r"`((?!build/)[\w.-]+(?:/[\w.-]+)+\.(?:[ch]|py|rs|sh|txt|md|proto|cmake))`")


def file_problems(page):
    folders = [ROOT, page.parent, page.parent.parent, ROOT / "c", ROOT / "c" / "src",
               *INCLUDES]
    for number, line in prose(page):
        for name in FILE.findall(line):
            if not any((folder / name).exists() for folder in folders):
                yield f"{shown(page)}:{number}: {name}: there is no such file"


@functools.cache
def declared():
    texts = [header.read_text() for folder in INCLUDES for header in folder.glob("syncblob/*.h")]
    names = {f"SB_{code}" for text in texts for code in re.findall(r"\bX\((\w+),", text)}
    names.update(begin + part + end for text in texts for part in ("data", "diff")
                 for begin, end in re.findall(r"\b(sb_\w*)##x(?:##(\w+))?", text))
    names.update(*(NAME.findall(text) for text in texts))
    types = [found for text in texts for found in dtypes(text)]
    names.update(f"SB_DTYPE_{upper}" for upper, _, _ in types)
    return names | {f"{name}_{suffix}" for name in names for _, suffix, _ in types}


def name_problems(page):
    """Pages may write a prefix, such as sb_mem_prefetch_*. The changelog may mention removed names."""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for name in NAME.findall(line):
            known = any(other.startswith(name) for other in declared()) if name.endswith("_") else \
                name in declared()
            if not known and page != ROOT / "CHANGELOG.md":
                yield f"{shown(page)}:{number}: no header declares {name}"


def table_problems():
    for folder, sources in (("c", ["src/**/*.c", "*/src/*.c"]), ("cuda", ["*.c"])):
        page = ROOT / folder / "README.md"
        tables = "".join(line for _, line in prose(page) if line.startswith("|"))
        named = set(re.findall(r"`((?:[\w.]+/)*\w+\.[ch])`", tables))
        for source in sorted(path for glob in sources for path in page.parent.glob(glob)):
            if not any(str(source).endswith("/" + name) for name in named):
                yield f"{shown(page)}: {source.name} is not named"
        yield from (f"{shown(page)}: there is no {name}" for name in sorted(named)
                    if not any(page.parent.glob(f"**/{name}")))


def main():
    chosen = [pathlib.Path(name).resolve() for name in sys.argv[1:]]
    found = [problem for page in chosen or pages()
             for problem in (*file_problems(page), *name_problems(page))]
    found += [] if chosen else table_problems()
    print("\n".join(found) or "every path and name of the pages exists")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
