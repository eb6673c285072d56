"""Lists the pages of the repository and their code blocks."""
import collections
import functools
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
FENCED = re.compile(r"^```([^`\n]*)\n((?:(?!```).*\n)*)```[ \t]*$", re.MULTILINE)


class Block(collections.namedtuple("Block", "page line info text")):
    """`line` is the number of the block's first line. `info` has the words after the opening fence."""

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
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(ROOT / name for name in set(listed.stdout.splitlines()))


def pages():
    return [path for path in files() if path.suffix == ".md" and path.exists()]


def blocks(page):
    text = page.read_text()
    for found in FENCED.finditer(text):
        yield Block(page, text.count("\n", 0, found.start(2)) + 1, found[1].split(), found[2])


def prose(page):
    text = FENCED.sub(lambda found: "\n" * found[0].count("\n"), page.read_text())
    yield from enumerate(text.splitlines(), 1)


def header_block(header):
    comment = header.read_text().partition("*/")[0].splitlines()
    code = {number: line[3:] for number, line in enumerate(comment, 1)
            if line.startswith(" *     ")}
    return Block(header, min(code), ["c", "header"], "\n".join(code.values()) + "\n") \
        if code else None


def malformed(page):
    blank, in_list = True, False
    for number, line in prose(page):
        if re.match(r"(?:[\s>*+-]|\d+[.)]\s)*(```|~~~)", line):
            yield number, "a fence is three backticks at the beginning of a line"
        elif line.startswith("    ") and blank and not in_list:
            yield number, "a block without a fence, which names its language"
        if line and not line.startswith(" "):
            in_list = re.match(r"([-*+]|\d+\.)\s", line) is not None
        blank = not line
