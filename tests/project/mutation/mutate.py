#!/usr/bin/env python3
"""Plants errors in the library, one at a time, and prints the errors that no test notices.

One build contains all mutants; an environment variable chooses one. A test kills a mutant if the
test fails or does not end. The run fails if a folder has more survivors than scores.md records.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import sys
import time

import edits
import judge
import programs
import special
from results import (KILLED, PAGE, Marks, Results, as_markdown, by_folder, grown, recorded,
                     scores)
from tree import BuildFailed, Tree

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SCORES = HERE / "scores.md"
PATIENCE = 0.5


class General:
    """The plan with all mutants of find.py in the whole library. Some of these mutants do not compile."""
    name, compiler, flags, environment, is_special = "general", "gcc", "", {}, False
    folders = "c/src", "c/testing/src", "c/conformance/src", "c/comm/src", "cuda"
    programs = r"(?:behaviour|faults|threads|input|testing|conformance|comm|fuzz|fake)\..*"

    def find(self, tree, paths):
        import find
        return find.find(tree.root, tree.clang_arguments(), paths)


class Sanitized(General):
    name = "sanitized"
    flags = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"


class Special(General):
    is_special = True

    def find(self, tree, paths):
        return special.find(tree.root, paths, self.operators)


class Threads(Special):
    name, compiler, flags = "threads", "clang", "-fsanitize=thread -fno-omit-frame-pointer"
    folders, operators = ("c/src/context", "c/src/memory", "c/src/blob"), special.THREADS
    programs = (r"threads\.(?!exit|fork).*|"
                r"faults\.(?:mem_faults|quarantine)|"
                r"behaviour\.(?:blob_arithmetic|context|mem_.*)|fuzz\.synced_memory")
    environment = {"SYNCBLOB_STRESS_SECONDS": "4",
                   "TSAN_OPTIONS": "halt_on_error=1:exitcode=66:report_bugs=1"}


class Cuda(Special):
    name, folders, programs, operators = "cuda", ("cuda",), r"fake\..*", special.CUDA


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="*", help="sources or folders (all)")
    parser.add_argument("--threads", dest="plan", action="store_const", const=Threads(),
                        help="locks, memory orders, waits: under ThreadSanitizer")
    parser.add_argument("--cuda", dest="plan", action="store_const", const=Cuda(),
                        help="waits, pushes and pops of cuda/*.c: on the fake driver")
    parser.add_argument("--sample", type=int, metavar="N", help="N mutants at random")
    parser.add_argument("--seed", type=int, help="of the sample (printed)")
    parser.add_argument("--again", action="store_true", help="mutants that no test has noticed yet")
    parser.add_argument("--only", metavar="REGEX", default="", help="mutants whose line matches")
    parser.add_argument("--list", action="store_true", help="print the mutants and end")
    parser.add_argument("--quick", action="store_true", help="only the first of three looks")
    parser.add_argument("--record", action="store_true", help="write scores.md")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs at once")
    parser.add_argument("--build", default=ROOT / "build" / "mutation", help="folder of the builds")
    parser.add_argument("--headers", default="", help="folders of CUDA's headers, by ;")
    parser.set_defaults(plan=General())
    return parser.parse_args()


def announce(*lines):
    print(*lines, sep="\n", file=sys.stderr, flush=True)


class Run:
    def __init__(self, options, plan, results=None):
        self.options, self.plan = options, plan
        folder = pathlib.Path(options.build).resolve() / plan.name
        folder.mkdir(parents=True, exist_ok=True)
        cmake = [f"-DCMAKE_C_COMPILER={plan.compiler}"]
        if plan.name != "threads":
            cmake.append(f"-DSYNCBLOB_CUDA_HEADERS={options.headers}")
        self.tree = Tree(ROOT, folder, cmake, plan.flags, options.jobs)
        self.results = results or Results(folder / "results.json", ROOT)

    def prepare(self):
        self.paths = sorted(str(file.relative_to(ROOT)) for folder in self.plan.folders
                            for file in (ROOT / folder).rglob("*.[ch]"))
        for path in self.paths:
            self.results.version(path)
        self.tree.copy(set(self.paths))
        self.tree.configure()
        found = self.plan.find(self.tree, self.paths)
        self.mutants = edits.number(found)
        if self.options.list:
            return self.chosen(self.mutants)
        live = self.tree.build_all(found, set(self.mutants),
                                   programs.targets(self.tree.build, self.plan.programs))
        self.tests = programs.listed(self.tree.build, self.plan.programs)
        self.unborn = [m for m in self.mutants if m not in live]
        announce(f"{len(live)} mutants in {len(self.tests)} programs, {len(self.unborn)} do not compile",
            *self.unborn)
        return self.chosen([m for m in self.mutants if m in live])

    def chosen(self, mutants):
        options = self.options
        wanted = [os.path.relpath(pathlib.Path(f).resolve(), ROOT) for f in options.file]
        chosen = [m for m in mutants if re.search(options.only, str(m)) and
                  (not wanted or any(m.path == f or m.path.startswith(f + "/") for f in wanted))]
        if options.again:
            chosen = [m for m in chosen if self.results.get(m)[0] != KILLED]
        if options.sample and options.sample < len(chosen):
            seed = options.seed if options.seed is not None else random.randrange(10**6)
            announce(f"--sample {options.sample} --seed {seed}")
            sample = random.Random(seed).sample(chosen, options.sample)
            chosen = sorted(sample, key=lambda m: m.number)
        return chosen

    def look(self, mutants, environment, patience=None):
        runner = programs.Runner(self.tree.build, {**self.plan.environment, **environment},
                                 "-fsanitize" not in self.plan.flags)
        programs.measure(runner, self.tests, len(self.mutants), announce)
        tests = self.tests if patience is None else [
            *programs.divided(runner, self.tests, len(self.mutants))]
        the_judge = judge.Judge(runner, tests, self.mutants, patience)
        start, alive, done = time.monotonic(), [], 0

        def note(mutant, verdict):
            nonlocal done
            done += 1
            self.results.put(mutant, verdict)
            if verdict[0] != KILLED:
                alive.append(mutant)
                announce(f"{verdict[0]}: {mutant}")
            if done % 20 == 0 or done == len(mutants):
                self.results.save()
                seconds = time.monotonic() - start
                announce(f"{done} of {len(mutants)}, {len(alive)} live, {seconds:.0f} s")

        try:
            judge.each(the_judge.verdict, mutants, self.options.jobs, note)
        finally:
            self.results.save()
        return alive

    def judge(self, mutants):
        if self.plan.is_special:
            self.look(mutants, {})
            return
        alive = self.look(mutants, {}, PATIENCE)
        if alive and not self.options.quick:
            announce("the survivors again, by all programs and whole tables")
            alive = self.look(alive, {"SYNCBLOB_TEST_WHOLE": "1"})
        if alive and not self.options.quick:
            announce("the survivors again, under sanitizers")
            other = Run(self.options, Sanitized(), self.results)
            other.prepare()
            names = {m.id for m in alive}
            other.look([m for m in other.mutants
                        if m.id in names and m not in other.unborn], {})

    def report(self, mutants):
        marks = Marks(ROOT, self.paths)
        verdicts = {m: self.results.get(m) for m in mutants}
        alive = [m for m, v in verdicts.items() if v[0] != KILLED and not marks.covers(m)]
        print(*(f"survives: {m}" for m in alive), sep="\n")
        rows = scores(verdicts, marks)
        print(as_markdown(rows))
        problems = [*grown(self.grouped(rows), SCORES.read_text())]
        problems += self.chosen(self.unborn) if self.plan.is_special else marks.problems(verdicts)
        if self.options.record:
            self.record(marks)
        print(*problems, sep="\n")
        print(f"{len(mutants)} judged, {len(problems)} problems")
        return 1 if problems else 0

    def grouped(self, rows):
        if self.plan.is_special:
            return {f"--{self.plan.name}": sum(rows.values(), collections.Counter())} if rows else {}
        return by_folder(rows)

    def record(self, marks):
        verdicts = {m: self.results.get(m) for m in self.mutants if m not in self.unborn}
        rows = self.grouped(scores(verdicts, marks))
        for name in self.grouped(scores({m: v for m, v in verdicts.items() if not v[0]}, marks)):
            del rows[name]
        present = {os.path.dirname(path) for path in self.paths} if not self.plan.is_special else ()
        kept = {name: row for name, row in recorded(SCORES.read_text()).items()
                if name.startswith("--") or self.plan.is_special or name in present}
        SCORES.write_text(PAGE + as_markdown({**kept, **rows}))


def main():
    options = arguments()
    run = Run(options, options.plan)
    try:
        mutants = run.prepare()
        if options.list:
            print(*mutants, sep="\n")
            return 0
        if not mutants:
            sys.exit("mutate: there is no such mutant")
        run.judge(mutants)
    except BuildFailed as failed:
        sys.exit(f"mutate: {failed}")
    return run.report(mutants)


if __name__ == "__main__":
    sys.exit(main())
