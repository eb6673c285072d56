"""Verdicts that are kept in the build folder as long as the file that they speak of is the same."""

import collections
import functools
import hashlib
import json

import survivors
from judge import KILLED, Verdict

NO_REASON = "no reason"


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


def table(mutants, results, listed):
    """Rows of (file, counts) and the sum, of the mutants that have a verdict. A survivor counts as
    what the list says of it."""
    left = {key: list(kinds) for key, kinds in listed.items()}
    rows = {}
    for mutant in mutants:
        verdict = results.get(mutant)
        if verdict:
            kinds = left.get(mutant.key)
            word = KILLED if verdict.word == KILLED else kinds.pop(0) if kinds else NO_REASON
            rows.setdefault(mutant.path, collections.Counter())[word] += 1
    total = sum(rows.values(), collections.Counter())
    return [*sorted(rows.items()), ("all", total)]


def cells(counts):
    differ = counts.total() - counts[survivors.SAME]
    score = f"{100 * (counts[KILLED] + counts[survivors.JUDGED]) / differ:.1f} %" if differ else "-"
    return [str(counts.total()), *(str(counts[word]) for word in WORDS), score]


PAGE = """# How many planted errors the tests notice

`./dev mutate --record` writes this page from the verdicts that the build folder has, however many
runs they are of; `mutants` counts those that were judged, `./dev mutate --list` all there are. A
file without verdicts there keeps its row while it has as many mutants as the row.
`survivors.txt` says of each that no test killed why it may live:

- `same`: the library does what it did before, so that no program can tell.
- `judged`: a sanitizer or a budget notices it, not a test by itself.
- `unseen`: it would show on another system, by chance, or where no test gets.
- `no reason`: it is not in the list.

The score is of those that are not the same: killed and judged.

"""
WORDS = [KILLED, survivors.JUDGED, survivors.UNSEEN, NO_REASON, survivors.SAME]
HEADS = ["file", "mutants", *WORDS, "score"]


def recorded(page):
    """{file: counts} of a page of as_markdown."""
    cells = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| `")]
    return {row[0].strip(" `"): collections.Counter(dict(zip(WORDS, map(int, row[2:-1]))))
            for row in cells}


def with_recorded(rows, page, mutants):
    """Also the page's rows of files without a verdict that have as many mutants as then."""
    sizes = collections.Counter(mutant.path for mutant in mutants)
    files = {path: counts for path, counts in recorded(page).items()
             if counts.total() == sizes[path]} | dict(rows[:-1])
    return [*sorted(files.items()), ("all", sum(files.values(), collections.Counter()))]


def as_text(rows):
    lines = [HEADS] + [[name, *cells(counts)] for name, counts in rows]
    return "\n".join(f"{name:<36}" + "".join(f"{cell:>11}" for cell in row)
                     for name, *row in lines)


def as_markdown(rows):
    """The page that is kept in the tree."""
    lines = [HEADS, ["---"] + ["---:"] * (len(HEADS) - 1)]
    lines += [[name if name == "all" else f"`{name}`", *cells(counts)] for name, counts in rows]
    return PAGE + "".join(f"| {' | '.join(line)} |\n" for line in lines)
