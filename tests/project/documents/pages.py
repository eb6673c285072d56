"""The pages of the repository, and the code blocks in them."""
import dataclasses
import functools
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]


@dataclasses.dataclass
class Block:
    page: pathlib.Path
    line: int       # number of the block's first line of code, from 1
    info: list      # the words after the fence: the language first
    text: str

    @property
    def language(self):
        return self.info[0].split(",")[0] if self.info else ""

    @property
    def place(self):
        return f"{shown(self.page)}:{self.line}"


def shown(page):
    return str(page.relative_to(ROOT) if page.is_relative_to(ROOT) else page.name)


@functools.cache
def files():
    """Returns the repository's files; in an unpacked archive, all files except build folders."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return sorted(ROOT / name for name in set(listed.stdout.splitlines()))
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in ("build", "target", "__pycache__")]
        found += (pathlib.Path(folder) / name for name in names)
    return sorted(found)


def pages():
    return [path for path in files() if path.suffix == ".md" and path.exists()]


def blocks(page):
    """Yields the fenced blocks of a page."""
    begin, info, code = 0, None, []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = re.match(r"```(.*)", line)
        if fence and info is None:
            begin, info, code = number + 1, fence.group(1).split(), []
        elif fence:
            yield Block(page, begin, info, "\n".join(code) + "\n")
            info = None
        elif info is not None:
            code.append(line)
    if info is not None:
        yield Block(page, begin, ["unclosed"], "\n".join(code))


def prose(page):
    """Yields (number, line) of the lines outside fenced blocks."""
    fenced = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def header_block(header):
    """Returns the indented code in the comment at the top of a header as one block, or None."""
    comment = header.read_text().partition("*/")[0].splitlines()
    code = {number: line[3:] for number, line in enumerate(comment, 1)
            if line.startswith(" *     ")}
    return Block(header, min(code), ["c", "header"], "\n".join(code.values()) + "\n") \
        if code else None


def odd_fences(page):
    """Yields the lines with a fence that blocks() does not recognise: indented, in a list or a
    quotation, of tildes, of more than three backticks, or a closing fence with text after it."""
    within = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        plain = re.match(r"```[^`]*$", line)
        if within and plain and line.rstrip() != "```" or \
                not plain and re.match(r"(?:[\s>*+-]|\d+[.)]\s)*(```|~~~)", line):
            yield number
        within ^= bool(plain)


def unfenced(page):
    """Yields the lines where indented code without a fence begins. Within a list indented lines are
    text."""
    blank, in_list = True, False
    for number, line in prose(page):
        if line.startswith("    ") and blank and not in_list:
            yield number
        if line and not line.startswith(" "):
            in_list = re.match(r"([-*+]|\d+\.)\s", line) is not None
        blank = not line
