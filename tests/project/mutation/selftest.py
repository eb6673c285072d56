#!/usr/bin/env python3
"""A source whose mutants are known, some of which its test kills: each is found, planted, judged.

Needs libclang, gcc and a few seconds.
"""

import collections
import pathlib
import subprocess
import sys
import tempfile

import edits
import find
import judge
import programs
import results
import survivors
from patterns import places

HERE = pathlib.Path(__file__).resolve().parent

SOURCE = """#include "tiny.h"
#define LIMIT 4
#define TWICE(x) ((x) + (x))
_Static_assert(LIMIT == 4, "four");
static int calls;
static void count(int by) {
    calls += by;
}
static int power(int base, int exponent) {
    return exponent ? base * power(base, exponent - 1) : 1;
}
sb_status tiny(int value, int *out) {
    char room[LIMIT + 2] = {0};
    static const int table[] = {3, 5};
    if (value < 0 || value > LIMIT)
        return SB_ERR_INTERNAL;
    count(1);
    switch (value) {
    case 3:
        *out = power(2, 3);
        break;
    default:
        *out = TWICE(value + 1);
    }
    (void)room;
    (void)table;
    return SB_OK;
}
int tiny_unused(int value) {
    return value == 7;
}
"""

HEADER = """#include <stddef.h>
typedef int sb_status;
enum { SB_OK = 0, SB_ERR_INTERNAL = -901 };
sb_status tiny(int value, int *out);
"""

# Says what cmocka says.
TEST = """#include "tiny.h"
#include <stdio.h>
int main(void) {
    int out = -1;
    printf("[ RUN      ] edges\\n");
    int bad = tiny(5, &out) != SB_ERR_INTERNAL || tiny(-1, &out) != SB_ERR_INTERNAL || out != -1 ||
              tiny(3, &out) != SB_OK || out != 8 || tiny(1, &out) != SB_OK || out != 4;
    printf(bad ? "[  FAILED  ] edges\\n" : "[       OK ] edges\\n");
    return bad;
}
"""

KILLED = """
|| becomes && in value < 0 || value > LIMIT
return SB_ERR_INTERNAL becomes SB_OK
return SB_OK becomes SB_ERR_INTERNAL
+ becomes - in value + 1
1 becomes 2 at *out = TWICE(value + 1);
left out: *out = power(2, 3);
left out: *out = TWICE(value + 1);
2 becomes 3 at *out = power(2, 3);
3 becomes 4 at *out = power(2, 3);
arguments 1 and 2 swapped in power(2, 3)
always true: exponent
always false: exponent
always false: value < 0
always false: value > LIMIT
always true: value < 0 || value > LIMIT
* becomes / in base * power(base, exponent - 1)
- becomes + in exponent - 1
1 becomes 2 at return exponent ? base * power(base, exponent - 1) : 1;
1 becomes 2 at return exponent ? base * power(base, exponent - 1) : 1;
arguments 1 and 2 swapped in power(base, exponent - 1)
""".strip().split("\n")
SURVIVED = """
< becomes <= in value < 0
0 becomes 1 at if (value < 0 || value > LIMIT)
> becomes >= in value > LIMIT
left out: count(1);
left out: calls += by;
+= becomes -= in calls += by
1 becomes 2 at count(1);
0 becomes 1 at char room[LIMIT + 2] = {0};
""".strip().split("\n")
NOT_REACHED = ["== becomes != in value == 7", "7 becomes 8 at return value == 7;"]


def build(folder):
    """(all mutants, the program with them in it)"""
    for name, text in (("tiny.c", SOURCE), ("tiny.h", HEADER), ("test.c", TEST)):
        (folder / name).write_text(text)
    resources = subprocess.run(["clang", "-print-resource-dir"], capture_output=True, text=True,
                               check=True).stdout.strip()
    commands = [(folder / "tiny.c", ["-std=c17", "-resource-dir", resources])]
    found = find.find(folder, commands, ["tiny.c"])
    mutants = edits.number(found)
    text, placed = edits.plant(SOURCE, found["tiny.c"], set(mutants))
    assert placed == set(mutants), "a mutant without a place"
    (folder / "planted.c").write_text(text)
    subprocess.run(["gcc", "-std=c17", "-D_GNU_SOURCE", "-O1", "-w", "-include", HERE / "mutant.h",
                    folder / "planted.c", folder / "test.c", HERE / "mutant.c",
                    "-o", folder / "test"], check=True)
    return mutants, programs.Program({"name": "test", "command": [str(folder / "test")]})


def judged(folder):
    mutants, program = build(folder)
    runner = programs.Runner(folder, {})
    programs.Baseline(runner, len(mutants), lambda text: None).measure([program])
    the_judge = judge.Judge(runner, [program], mutants, {})
    found = {}
    judge.each(the_judge.verdict, mutants, 2, found.__setitem__)
    return mutants, found, the_judge


def check_verdicts(folder):
    mutants, found, the_judge = judged(folder)
    for word, expected in ((judge.KILLED, KILLED), (judge.SURVIVED, SURVIVED),
                           (judge.NOT_REACHED, NOT_REACHED)):
        have = collections.Counter(m.what for m, v in found.items() if v.word == word)
        want = collections.Counter(expected)
        assert have == want, f"{word}: {have - want} too much, {want - have} missing"
    dead = next(m for m in mutants if m.what == "left out: *out = power(2, 3);")
    assert the_judge.killers(dead) == {"test": ["edges"]}, "the function that fails"


def check_survivors(folder):
    """One that is listed, one that is not, one that is killed, one that sanitizers killed, one that
    is gone; and what they count as."""
    (folder / "list.txt").write_text("# none\n\n== same: a reason\na.c: f: kept\na.c: f: killed\n"
                                     "a.c: f: gone\n== judged: another\na.c: f: judged\n")
    make = lambda what: edits.Mutant("", "a.c", 1, "f", what)  # noqa: E731
    kept, killed, judged, new = make("kept"), make("killed"), make("judged"), make("new")
    listed = survivors.read(folder / "list.txt", {"a.c"})
    found = survivors.problems(listed, [kept, new], [killed, judged], [kept, killed, judged, new])
    assert found == ["survives, and is not in survivors.txt: a.c:1: new (f)",
                     "in survivors.txt, but killed: a.c: f: killed",
                     "in survivors.txt, but gone: a.c: f: gone"], found
    verdicts = {kept: judge.SURVIVED, killed: judge.KILLED, judged: judge.NOT_REACHED,
                new: judge.SURVIVED}
    rows = results.table(verdicts, {m: judge.Verdict(w) for m, w in verdicts.items()}, listed)
    assert results.cells(rows[-1][1]) == ["4", "1", "1", "0", "1", "1", "66.7 %"], rows


def check_scores(_):
    """Of the files of the last page: one judged again, one that is the same, one that has grown."""
    make = lambda path, what: edits.Mutant("", path, 1, "f", what)  # noqa: E731
    old = [make(path, "old") for path in ("again.c", "grown.c", "same.c")]
    killed = {m: judge.Verdict(judge.KILLED) for m in old}
    page = results.as_markdown(results.table(old, killed, {}))
    rows = results.table(old[:1], {old[0]: judge.Verdict(judge.SURVIVED)}, {})
    rows = results.with_recorded(rows, page, [*old, make("grown.c", "new")])
    assert [(name, results.cells(counts)[:2]) for name, counts in rows] == [
        ("again.c", ["1", "0"]), ("same.c", ["1", "1"]), ("all", ["2", "1"])], rows


def check_patterns(_):
    text = "int f(int a) {\n/* g( */ g(h(a), 1);\n}\n"
    found = [(p.name, span, p.arguments(span)) for p in places("a.c", text)
             for _, span in p.calls(r"\bg\s*\(")]
    assert found == [("f", (24, 34), "h(a), 1")], found


def main():
    checks = [check_verdicts, check_survivors, check_scores, check_patterns]
    for check in checks:
        with tempfile.TemporaryDirectory() as folder:
            check(pathlib.Path(folder))
    print(f"{len(checks)} passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
