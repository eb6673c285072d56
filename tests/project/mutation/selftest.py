#!/usr/bin/env python3
"""Tests that the mutants of a small source are found, planted and judged. Needs libclang and gcc."""

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
import special

HERE = pathlib.Path(__file__).resolve().parent

SOURCE = """#define LIMIT (sizeof(int) > 2 ? 4 : 5)
#define TWICE(x) ((x) + (x))
typedef int sb_status;
enum { SB_OK = 0, SB_ERR_INTERNAL = -901 };
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

TEST = """int tiny(int value, int *out);
int main(void) {
    int out = -1;
    return tiny(5, &out) != -901 || tiny(-1, &out) != -901 || out != -1 || tiny(3, &out) ||
           out != 8 || tiny(1, &out) || out != 4;
}
"""

EXPECTED = {"killed": 20, "survived": """
+= becomes -= in calls += by
0 becomes 1 at char room[LIMIT + 2] = {0};
0 becomes 1 at if (value < 0 || value > LIMIT)
1 becomes 2 at count(1);
< becomes <= in value < 0
> becomes >= in value > LIMIT
left out: calls += by;
left out: count(1);
""", "not reached": """
7 becomes 8 at return value == 7;
== becomes != in value == 7
"""}


def build(folder):
    for name, text in (("tiny.c", SOURCE), ("test.c", TEST)):
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


def check_verdicts(folder):
    mutants, program = build(folder)
    runner = programs.Runner(folder, {})
    programs.measure(runner, [program], len(mutants), lambda text: None)
    the_judge, found = judge.Judge(runner, [program], mutants), collections.defaultdict(list)
    judge.each(the_judge.verdict, mutants, 2, lambda m, verdict: found[verdict[0]].append(m.what))
    for word, expected in EXPECTED.items():
        lines = sorted(found.pop(word))
        assert expected in (len(lines), "\n".join(["", *lines, ""])), lines
    assert not found, found


def check_scores(folder):
    (folder / "a").mkdir()
    (folder / "a/b.c").write_text("one\ntwo\nthree /* same: a reason */\nfour /* same: none */\n")
    words = {1: "killed", 2: "survived", 3: "not reached", 4: "killed"}
    verdicts = {edits.Mutant("a/b.c", line, "f", ""): [word] for line, word in words.items()}
    marks = results.Marks(folder, ["a/b.c"])
    assert list(marks.problems(verdicts)) == [
        "a/b.c:4: tests notice every mutant, remove the comment /* same: */"]
    rows = results.scores(verdicts, marks)
    page = results.as_markdown(results.by_folder(rows))
    assert page.endswith("| a | 4 | 2 | 1 | 1 | 66.7 % |\n| all | 4 | 2 | 1 | 1 | 66.7 % |\n"), page
    assert results.recorded(page) == results.by_folder(rows), page
    assert not list(results.grown(results.by_folder(rows), page))
    page = page.replace("| 2 | 1 | 1 |", "| 3 | 1 | 0 |")
    assert list(results.grown(results.by_folder(rows), page)) == ["a: 1 mutants survive, scores.md has 0"]


def check_patterns(_):
    text = "int f(int a) {\n/* g( */ g(h(a, 2), 1);\n}\n"
    found = [(p.name, span, given) for p in special.places("a.c", text)
             for _, span, given in p.calls(r"\bg\s*\(")]
    assert found == [("f", (24, 37), ["h(a, 2)", "1"])], found


def main():
    checks = [check_verdicts, check_scores, check_patterns]
    for check in checks:
        with tempfile.TemporaryDirectory() as folder:
            check(pathlib.Path(folder))
    print(f"{len(checks)} passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
