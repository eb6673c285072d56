"""Mutants that are found by pattern in a source whose comments and strings are blank."""

import re

from edits import Mutant, Wrap


def blank(text):
    """The same length without comments and strings."""
    pattern = r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\""
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


def functions(code):
    """(name, start, end) of every function body: outer braces after a parenthesis."""
    depth, start, after = 0, None, 0
    for brace in re.finditer(r"[{}]", code):
        if brace[0] == "{":
            head = code[after:brace.start()]
            if depth == 0 and head.rstrip().endswith(")"):
                start = brace.end()
                name = re.findall(r"(\w+)\s*\(", head)
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                if start is not None:
                    yield name[0], start, brace.start()
                    start = None
                after = brace.end()


def call_end(code, at):
    """Past the closing parenthesis of the call whose name begins at `at`."""
    depth = 0
    for i in range(code.index("(", at), len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return i + 1
    raise ValueError("unbalanced parentheses")


class Place:
    """One function of a source, for those that look for patterns in it."""

    def __init__(self, path, code, name, start, end):
        self.path, self.code, self.name, self.start, self.end = path, code, name, start, end

    def calls(self, pattern):
        """(match, span of the call)"""
        for m in re.finditer(pattern, self.code[self.start:self.end]):
            at = self.start + m.start()
            yield m, (at, call_end(self.code, at))

    def arguments(self, span):
        return self.code[self.code.index("(", span[0]) + 1:span[1] - 1]

    def mutant(self, group, at, what):
        return Mutant(group, self.path, self.code.count("\n", 0, at) + 1, self.name, what)

    def instead(self, mutant, span, by):
        """What stands in the span, or `by`."""
        return Wrap(span, [span], mutant, lambda m, x: f"({m} ? {by} : {x})")


def places(path, text):
    code = blank(text)
    for name, start, end in functions(code):
        yield Place(path, code, name, start, end)
