"""Which tests kill nothing that another does not kill sooner."""

import collections
import json
import re

from judge import each


def lines_of(root, functions):
    """The length of each test function, by its definition in the tests' sources."""
    found, definition = {}, re.compile(r"^TEST(?:_WITH)?\((?:\w+,\s+\w+,\s+)?(\w+)\) \{\n.*?^\}",
                                       flags=re.M | re.S)
    for file in sorted([*(root / "tests").rglob("*.c"), *(root / "c").glob("*/tests/*.c")]):
        path = str(file.relative_to(root))
        for m in definition.finditer(file.read_text()):
            if m[1] in functions:
                found.setdefault(m[1], []).append((path, m[0].count("\n") + 1))
    return found


class Matrix:
    """{mutant's id: {program: functions}}, of those that were killed."""

    def __init__(self, file):
        self.file = file
        self.rows = json.loads(file.read_text()) if file.exists() else {}

    def put(self, mutant, killers):
        self.rows[mutant.id] = killers

    def save(self):
        self.file.write_text(json.dumps(self.rows, indent=0))

    def credited(self, seconds):
        """How many mutants each program, and each function, is the first to kill."""
        programs, functions = collections.Counter(), collections.Counter()
        for killers in self.rows.values():
            known = [name for name in killers if name in seconds]
            if known:
                first = min(known, key=seconds.get)
                programs[first] += 1
                functions.update((first, name) for name in killers[first][:1])
        return programs, functions

    def report(self, root, seconds, functions_of):
        """Lines that name what kills nothing of its own."""
        programs, functions = self.credited(seconds)
        idle = {name for name in seconds if not programs[name]}
        yield f"{len(self.rows)} mutants; programs that kill none of them first:"
        yield from (f"  {name} ({seconds[name]:.1f} s)" for name in sorted(idle))
        yield "functions that kill none first, of the other programs:"
        silent = {(program, name) for program, names in functions_of.items() if program not in idle
                  for name in names if not functions[program, name]}
        lines = lines_of(root, {name for _, name in silent})
        for program, name in sorted(silent):
            places = ", ".join(f"{file}, {count} lines" for file, count in lines.get(name, []))
            yield f"  {program}: {name} ({places})"


def show(run, mutants, tests, say):
    """Runs every program that reaches a mutant, and prints the report of all that were run so."""
    the_judge = run.judge_with(tests, run.plan.environment)
    matrix, done = Matrix(run.folder / "matrix.json"), 0

    def tell(mutant, killers):
        nonlocal done
        done += 1
        matrix.put(mutant, killers)
        if done % 20 == 0:
            matrix.save()
            say(f"{done} of {len(mutants)}")

    each(the_judge.killers, mutants, run.options.jobs, tell)
    matrix.save()
    seconds = {t.name: t.seconds for t in tests if t.reached}
    functions_of = {t.name: t.functions for t in tests}
    print(*matrix.report(run.tree.root, seconds, functions_of), sep="\n")
    return 0
