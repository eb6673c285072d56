#!/usr/bin/env python3
"""Local links in the pages lead somewhere, the part behind # included, and files that are named
with their folder are there: check_links.py [PAGE...]."""
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from pages import ROOT, pages, prose, shown  # noqa: E402

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
SOURCE = re.compile(r"(?:src|srcset|href)=\"([^\"]+)\"")
FILE = re.compile(r"`((?!build/)[\w.-]+(?:/[\w.-]+)+\.(?:[ch]|py|rs|sh|txt|md|proto|cmake))`")


def anchors(page):
    """Those that forges make of headings."""
    for _, line in prose(page):
        heading = re.match(r"#+ +(.*)", line)
        if heading:
            plain = re.sub(r"[^\w\- ]", "", heading.group(1).lower().replace("`", ""))
            yield plain.strip().replace(" ", "-")


def problems(page):
    for number, line in prose(page):
        for target in LINK.findall(re.sub(r"`[^`]*`", "``", line)) + SOURCE.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = (page.parent / name).resolve() if name else page
            where = f"{shown(page)}:{number}"
            if not path.exists():
                yield f"{where}: {target}: there is no such file"
            elif anchor and (path.suffix != ".md" or anchor not in anchors(path)):
                yield f"{where}: {target}: there is no such heading"


def file_problems(page):
    folders = [ROOT, page.parent, page.parent.parent, ROOT / "c", ROOT / "c" / "src",
               ROOT / "c" / "include"]
    for number, line in prose(page):
        for name in FILE.findall(line):
            if not any((folder / name).exists() for folder in folders):
                yield f"{shown(page)}:{number}: {name}: there is no such file"


def main():
    chosen = [pathlib.Path(name).resolve() for name in sys.argv[1:]] or pages()
    found = [problem for page in chosen
             for problem in (*problems(page), *file_problems(page))]
    print("\n".join(found) or "every local link and path leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
