#!/usr/bin/env python3
"""Prints sentences drawn at random from comments, messages and pages, each with the lines below it:
sample.py SEED [NUMBER]. If a reader must read more than one sentence in twenty twice, the texts
need work."""

import io
import random
import re
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[3]
COMMENTS = {".rs": re.compile(r"((?:^[ \t]*//[/!]?.*\n)+)", re.MULTILINE),
            ".c": re.compile(r"/\*+<?(.*?)\*/", re.DOTALL)}
MESSAGE = re.compile(r'"((?:[^"\\\n]|\\.)*[a-z] [a-z](?:[^"\\\n]|\\.)*)"')
MARKS = re.compile(r"^[ \t]*(?:\*|//[/!]?)?[ \t]?", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
END = re.compile(r"(?<=[.:;!?])\s+(?=[A-Z`\"])|\n\s*\n|\n\s*(?=[-|#@])")


def without_code(text: str) -> str:
    return FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), text)


def python_comments(text: str) -> list[tuple[int, str]]:
    """Returns docstrings and comments; consecutive lines of a comment are one text."""
    found: list[tuple[int, str]] = []
    last = (tokenize.NEWLINE, -1)  # the kind and line of the last token
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        words = token.string.lstrip("# ")
        if token.type == tokenize.COMMENT and last == (tokenize.COMMENT, token.start[0] - 1):
            found[-1] = (found[-1][0], f"{found[-1][1]} {words}")
        elif token.type == tokenize.COMMENT or (
                token.string.startswith('"""') and last[0] != tokenize.OP):
            found.append((token.start[0], words))
        if token.type != tokenize.NL:
            last = (token.type, token.start[0])
    return found


def texts(path: Path, text: str) -> list[tuple[int, str]]:
    """Returns the line numbers and texts that people read."""
    if path.suffix == ".md":
        text = without_code(text)
        return [(text[:part.start()].count("\n") + 1, part[0])
                for part in re.finditer(r"(?:^.+\n)+", text, re.MULTILINE)]
    if path.suffix == ".py":
        return python_comments(text)
    patterns = COMMENTS.get(path.suffix, COMMENTS[".c"]), MESSAGE
    return [(text[:part.start()].count("\n") + 1, without_code(MARKS.sub("", part[1])))
            for pattern in patterns for part in pattern.finditer(text)]


def sentences() -> list[tuple[str, int, str]]:
    names = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.rs", "*.py", "*.md", ":!bindings/syncblob-sys/src/"],
                           cwd=ROOT,
                           check=True, capture_output=True, text=True).stdout.split()
    found = []
    for name in names:
        for line, text in texts(Path(name), (ROOT / name).read_text(encoding="utf-8")):
            for sentence in END.split(text):
                words = " ".join(sentence.split())
                if len(re.findall(r"[a-z]{2,}", words)) >= 5:
                    found.append((name, line, words))
    return found


def main() -> None:
    seed, number = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 60
    every = sentences()
    print(f"{number} of {len(every)} sentences, seed {seed}")
    for i, (name, line, sentence) in enumerate(random.Random(seed).sample(every, number), 1):
        below = (ROOT / name).read_text(encoding="utf-8").splitlines()[line - 1:line + 5]
        print(f"\n{i}. {name}:{line}\n   {sentence}")
        print("\n".join("     | " + text for text in below))


main()
