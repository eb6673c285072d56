"""Stores verdicts for each version of a source file, and computes scores."""

import collections
import functools
import hashlib
import json
import os
import re

KILLED, SURVIVED, NOT_REACHED = "killed", "survived", "not reached"
SAME = "/* same: "
MOST_SAME = 30
WORDS = (KILLED, "same", SURVIVED)
PAGE = """# How many planted errors the tests notice

`./dev mutate --record` writes this table. The score excludes survivors on a line with the comment
`/* same: WHY */`.

"""


class Results:
    def __init__(self, file, root):
        self.file, self.root = file, root
        self.kept = json.loads(file.read_text()) if file.exists() else {}

    @functools.cache
    def version(self, path):
        text = re.sub(r"/\*.*?\*/", " ", (self.root / path).read_text(), flags=re.S)
        return f"{path} {hashlib.sha256(' '.join(text.split()).encode()).hexdigest()[:16]}"

    def get(self, mutant):
        return self.kept.get(self.version(mutant.path), {}).get(mutant.id, [None])

    def put(self, mutant, verdict):
        self.kept.setdefault(self.version(mutant.path), {})[mutant.id] = verdict

    def save(self):
        partial = self.file.with_suffix(".partial")
        partial.write_text(json.dumps(self.kept, indent=0))
        partial.replace(self.file)


class Marks:
    """The lines with a comment "same", where surviving mutants have no effect."""

    def __init__(self, root, paths):
        self.lines = {(path, number) for path in paths
                      for number, line in enumerate((root / path).read_text().split("\n"), 1)
                      if SAME in line}

    def covers(self, mutant):
        return (mutant.path, mutant.line) in self.lines

    def problems(self, verdicts):
        if len(self.lines) > MOST_SAME:
            yield f"{len(self.lines)} lines have the comment {SAME}*/; at most {MOST_SAME} may"
        words = collections.defaultdict(set)
        for mutant, verdict in verdicts.items():
            words[mutant.path, mutant.line].add(verdict[0])
        for path, line in sorted(self.lines):
            if words[path, line] == {KILLED}:
                yield f"{path}:{line}: tests notice every mutant, remove the comment {SAME}*/"


def scores(verdicts, marks):
    rows = collections.defaultdict(collections.Counter)
    for mutant, verdict in verdicts.items():
        alive = "same" if marks.covers(mutant) else SURVIVED
        rows[mutant.path][KILLED if verdict[0] == KILLED else alive] += 1
    return dict(rows)


def by_folder(rows):
    folders = collections.defaultdict(collections.Counter)
    for path, counts in rows.items():
        folders[os.path.dirname(path)] += counts
    return dict(folders)


def recorded(page):
    rows = re.findall(r"^\| (\S+) \| \d+ \| (\d+) \| (\d+) \| (\d+) ", page, flags=re.M)
    return {path: collections.Counter(dict(zip(WORDS, map(int, counts))))
            for path, *counts in rows if path != "all"}


def grown(rows, page):
    before = recorded(page)
    for name, counts in sorted(rows.items()):
        most = before.get(name, {SURVIVED: 0} if name.startswith("--") else counts)[SURVIVED]
        if counts[SURVIVED] > most:
            yield f"{name}: {counts[SURVIVED]} mutants survive, scores.md has {most}"


def table(rows):
    yield ["", "mutants", *WORDS, "score"]
    general = (counts for name, counts in rows.items() if not name.startswith("--"))
    for name, counts in [*sorted(rows.items()), ("all", sum(general, collections.Counter()))]:
        differ = counts.total() - counts["same"]
        score = f"{100 * counts[KILLED] / differ:.1f} %" if differ else "-"
        yield [name, str(counts.total()), *(str(counts[word]) for word in WORDS), score]


def as_markdown(rows):
    head, *lines = table(rows)
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, rule, *lines))
