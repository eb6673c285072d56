#!/usr/bin/env python3
"""Compiles or runs every code block of every page, and the code at the top of every header, as
README.md in this folder describes.

    check_blocks.py --prefix PREFIX --cli SYNCBLOB [--cc CC] [PAGE...]
    check_blocks.py --file NAME PAGE   prints the file made of the page's blocks "c file=NAME"
"""
import argparse
import json
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
from commands import Shell, Wrong  # noqa: E402
from pages import ROOT, blocks, header_block, odd_fences, pages, shown, unfenced  # noqa: E402
from programs import FILES, Failed, Programs  # noqa: E402


# The requirements that a block of Python may name.
OF_PYTHON = {"torch", "safetensors", "resnet", "cifar10"}
HEADERS = sorted(ROOT.glob("c/**/include/syncblob/*.h"))


def file_name(info):
    return next((word[5:] for word in info if word.startswith("file=")), None)


def page_files(page):
    """Returns {name: text} of the files whose pieces are a page's blocks with file=NAME."""
    files = {}
    for block in blocks(page):
        name = file_name(block.info)
        if name:
            files[name] = files.get(name, "") + block.text
    return files


def is_documentation_test(page):
    """Returns whether a crate includes the page as documentation, so that cargo test runs its
    blocks."""
    name = page.name
    sources = ROOT.glob("bindings/*/src/lib.rs")
    return any((source.parent / target).resolve() == page
               for source in sources
               for target in re.findall(rf'include_str!\("([^"]*{name})"\)', source.read_text()))


class Checker:
    def __init__(self, programs, cli):
        self.programs, self.cli = programs, cli
        self.checked = 0

    def check_block(self, block, folder, shell):
        rest = set(block.info[1:])
        if file_name(block.info):
            return
        if block.language == "c" and not rest:
            self.programs.run_program(block.text, folder)
        elif block.language == "c" and rest == {"fragment"}:
            self.programs.run_fragment(block.text, folder)
        elif block.language == "cmake" and not rest:
            self.programs.build_project(block.text, folder)
        elif block.language == "cmake" and rest == {"part"}:
            self.programs.configure_part(block.text, folder)
        elif block.language == "sh":
            shell.check(block.text)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "rust":
            if not is_documentation_test(block.page):
                raise Wrong("no crate has this page as documentation, so that nothing runs this")
        elif block.language == "python" and rest <= OF_PYTHON:
            pass  # tests/users/python runs the block
        elif block.language != "text":
            raise Wrong(f'"{" ".join(block.info)}" is not a kind of block that is checked')

    def problems(self, page, folder):
        for number in unfenced(page):
            yield f"{shown(page)}:{number}: a block without a fence, which names its language"
        for number in odd_fences(page):
            yield f"{shown(page)}:{number}: a fence is three backticks at the beginning of a line"
        shell = Shell(folder, self.programs, self.cli)
        for name in ("net.caffemodel", "net.solverstate", "mean.binaryproto"):
            (folder / name).write_bytes(FILES[pathlib.Path(name).suffix])
        for block in blocks(page):
            yield from self.failures(block.place, self.check_block, block, folder, shell)
        if files := page_files(page):  # blocks that are compiled together
            yield from self.failures(f"{shown(page)}: {' '.join(files)}", self.programs.run_files, files, folder)

    def header_problems(self, header, folder):
        if block := header_block(header):
            yield from self.failures(block.place, self.programs.run_fragment, block.text, folder)

    def failures(self, place, check, *arguments):
        try:
            check(*arguments)
            self.checked += 1
        except (Wrong, Failed, ValueError) as problem:
            yield f"{place}: {problem}"


def check(options, chosen, work):
    checker = Checker(Programs(options.prefix, options.cc, work),
                      pathlib.Path(options.cli).resolve())
    found = []
    for number, page in enumerate(chosen):
        folder = work / str(number)
        folder.mkdir()
        found += checker.header_problems(page, folder) if page.suffix == ".h" else \
            checker.problems(page, folder)
    print("\n".join(found) or f"{checker.checked} blocks of {len(chosen)} pages and headers")
    return 1 if found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", help="where the library is installed")
    parser.add_argument("--cli", help="the program syncblob")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--file", metavar="NAME")
    parser.add_argument("page", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    chosen = [page.resolve() for page in options.page] or [*pages(), *HEADERS]
    if options.file:
        print(page_files(chosen[0])[options.file], end="")
        return 0
    with tempfile.TemporaryDirectory() as work:
        return check(options, chosen, pathlib.Path(work))


if __name__ == "__main__":
    sys.exit(main())
