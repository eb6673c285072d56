"""Plants mutants in a source. A mutant is a planted error.

An edit replaces a span of the source with code that contains mutants. Without a chosen mutant, this code behaves
as the original. The holes of an edit are the parts that may contain other edits.
"""

import bisect
import collections


class Mutant:
    """A planted error, whose `id` does not depend on line numbers."""

    def __init__(self, path, line, function, what):
        self.path, self.line, self.function, self.what = path, line, function, what
        self.number = self.id = None

    @property
    def chosen(self):
        return f"sb__mutant_at({self.number})"

    def __str__(self):
        return f"{self.path}:{self.line}: {self.what} ({self.function})"


class Wrap:
    def __init__(self, span, holes, mutant, render, rank=2):
        self.start, self.end = span
        self.holes, self.mutants, self.render, self.rank = holes, [mutant], render, rank

    def text(self, holes, live):
        return self.render(self.mutants[0].chosen, *holes)


class Choice:
    """An edit of an expression, with several mutants."""
    rank = 3

    def __init__(self, span, holes, original, alternatives):
        self.start, self.end = span
        self.holes, self.original, self.alternatives = holes, original, alternatives
        self.mutants = [mutant for mutant, _ in alternatives]

    def text(self, holes, live):
        choices = [(m, render) for m, render in self.alternatives if m in live]
        names = [f"sb__{choices[0][0].number}_{i}" for i in range(len(holes))]
        operands = " ".join(f"__auto_type {n} = ({h});" for n, h in zip(names, holes))
        picked = " : ".join(f"{m.chosen} ? {render(*names)}" for m, render in choices)
        return f"({{ {operands} {picked} : {self.original(*names)}; }})"


def number(found):
    mutants, named = [], collections.Counter()
    for path in sorted(found):
        for edit in sorted(found[path], key=lambda e: (e.start, -e.end, e.rank)):
            for mutant in edit.mutants:
                if mutant.number is None:
                    name = f"{path}: {mutant.function}: {mutant.what}"
                    named[name] += 1
                    mutant.number, mutant.id = len(mutants), f"{name} #{named[name]}"
                    mutants.append(mutant)
    return mutants


def plant(source, edits, live):
    edits = sorted(edits, key=lambda e: (e.start, -e.end, e.rank))
    placed = set()
    return _plant(source, 0, len(source), edits, live, placed), placed


def _plant(source, start, end, edits, live, placed):
    out, at, i = [], start, 0
    while i < len(edits):
        edit = edits[i]
        stop = bisect.bisect_left(edits, edit.end, lo=i + 1, key=lambda e: e.start)
        inner = edits[i + 1:stop]
        i = stop

        def within(start, end, inner=inner):
            held = [x for x in inner if start <= x.start and x.end <= end]
            return _plant(source, start, end, held, live, placed)

        planted = live.intersection(edit.mutants)
        text = (edit.text([within(*hole) for hole in edit.holes], live) if planted
                else within(edit.start, edit.end))
        placed.update(planted)
        out += [source[at:edit.start], text]
        at = edit.end
    return "".join(out) + source[at:end]
