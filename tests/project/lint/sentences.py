#!/usr/bin/env python3
"""Prints random sentences of comments, messages and pages, with their lines: sentences.py SEED [NUMBER]

A reader should have to read at most three sentences in sixty twice.
"""
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
MESSAGE = re.compile(r'"((?:[^"\\\n]|\\.)*[a-z] [a-z](?:[^"\\\n]|\\.)*)"')
TEXTS = {".c": [re.compile(r"/\*+<?(.*?)\*/", re.DOTALL), MESSAGE],
         ".rs": [re.compile(r"((?:^[ \t]*//[/!]?.*\n)+)", re.MULTILINE), MESSAGE],
         ".py": [re.compile(r'"""(.*?)"""', re.DOTALL), re.compile(r"((?:^[ \t]*#.*\n)+)", re.MULTILINE)],
         ".md": [re.compile(r"((?:^.+\n)+)", re.MULTILINE)]}
TEXTS[".h"] = TEXTS[".c"]
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
MARKS = re.compile(r"^[ \t]*(?:\*|//[/!]?|#)?[ \t]?", re.MULTILINE)
END = re.compile(r"(?<=[.:;!?])\s+(?=[A-Z`\"])|\n\s*\n|\n\s*(?=[-|#@])")


def sentences():
    names = subprocess.run(["git", "ls-files", *("*" + suffix for suffix in TEXTS), ":!bindings/syncblob-sys/src/"],
                           cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    for name in names:
        file = (ROOT / name).read_text(encoding="utf-8")
        text = FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), file)
        for pattern in TEXTS[pathlib.Path(name).suffix]:
            for part in pattern.finditer(text):
                first = text[:part.start()].count("\n")
                for sentence in END.split(MARKS.sub("", part[1])):
                    if len(re.findall(r"[a-z]{2,}", sentence)) >= 5:
                        yield f"{name}:{first + 1}", " ".join(sentence.split()), file.splitlines()[first:first + 6]


def main():
    seed, number = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 60
    for i, (place, sentence, lines) in enumerate(random.Random(seed).sample(list(sentences()), number), 1):
        print(f"{i}. {place}\n   {sentence}", *("     | " + line for line in lines), "", sep="\n")


main()
