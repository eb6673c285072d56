"""Verdicts that are kept in the build folder as long as the file that they speak of is the same."""

import collections
import functools
import hashlib
import json

from judge import KILLED, NOT_REACHED, SURVIVED, Verdict


class Results:
    def __init__(self, file, root):
        self.file, self.root = file, root
        self.kept = json.loads(file.read_text()) if file.exists() else {}

    @functools.cache
    def digest(self, path):
        """Of a file as it was when it was asked for first."""
        return hashlib.sha256((self.root / path).read_bytes()).hexdigest()[:16]

    def get(self, mutant):
        kept = self.kept.get(mutant.path, {})
        if kept.get("of") != self.digest(mutant.path) or mutant.id not in kept["verdicts"]:
            return None
        return Verdict(*kept["verdicts"][mutant.id])

    def put(self, mutant, verdict):
        kept = self.kept.get(mutant.path, {})
        if kept.get("of") != self.digest(mutant.path):
            kept = self.kept[mutant.path] = {"of": self.digest(mutant.path), "verdicts": {}}
        kept["verdicts"][mutant.id] = [verdict.word, verdict.program, verdict.why]

    def save(self):
        partial = self.file.with_suffix(".partial")
        partial.write_text(json.dumps(self.kept, indent=0))
        partial.replace(self.file)


def table(mutants, results):
    """Rows of (file, counts of verdicts) and the sum, of the mutants that have one."""
    rows = {}
    for mutant in mutants:
        verdict = results.get(mutant)
        if verdict:
            rows.setdefault(mutant.path, collections.Counter())[verdict.word] += 1
    total = sum(rows.values(), collections.Counter())
    return [*sorted(rows.items()), ("all", total)]


def cells(counts):
    killed, total = counts[KILLED], counts.total()
    score = f"{100 * killed / total:.1f} %" if total else "-"
    return [str(total), str(killed), str(counts[SURVIVED]), str(counts[NOT_REACHED]), score]


PAGE = """# How many planted errors the tests notice

`./dev mutate --record` writes this page from the verdicts that the build folder has, however many
runs they are of; `mutants` counts those that were judged, `./dev mutate --list` all there are. A
survivor is listed in `survivors.txt`, with its reason or as not yet looked at; a mutant that no test
reaches is one, too.

"""
HEADS = ["file", "mutants", "killed", "survived", "not reached", "score"]


def as_text(rows):
    lines = [HEADS] + [[name, *cells(counts)] for name, counts in rows]
    return "\n".join(f"{name:<36}" + "".join(f"{cell:>12}" for cell in row)
                     for name, *row in lines)


def as_markdown(rows):
    """The page that is kept in the tree."""
    lines = [HEADS, ["---"] + ["---:"] * 5]
    lines += [[name if name == "all" else f"`{name}`", *cells(counts)] for name, counts in rows]
    return PAGE + "".join(f"| {' | '.join(line)} |\n" for line in lines)
