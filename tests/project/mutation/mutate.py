#!/usr/bin/env python3
"""Plants errors in the library, one at a time, and says which no test notices.

  mutate.py                              all of c/src and cuda
  mutate.py c/src/memory c/src/blob/copy.c   of these alone
  mutate.py --sample 200                 200 of them at random
  mutate.py --again                      those that survived before
  mutate.py --threads                    locks, orders, waits, quarantine: under ThreadSanitizer
  mutate.py --cuda                       waits, pushes and pops of cuda/*.c: on the stand-ins
  mutate.py --tests --sample 300         which tests kill nothing of their own

All mutants are compiled into one build; an environment variable chooses one.
A mutant is killed when a program that reaches it fails or does not end. One that survives
has to be in survivors.txt with a reason.
"""

import argparse
import os
import pathlib
import random
import re
import sys
import time

import edits
import judge
import matrix
import programs
import survivors
from plans import PLANS
from results import Results, as_markdown, as_text, table, with_recorded
from tree import BuildFailed, Tree

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PATIENCE = 3


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="*", help="sources or folders (all)")
    parser.add_argument("--threads", dest="plan", action="store_const", const="threads")
    parser.add_argument("--cuda", dest="plan", action="store_const", const="cuda")
    parser.add_argument("--sample", type=int, metavar="N", help="N mutants at random")
    parser.add_argument("--seed", type=int, help="which ones (a new one each time)")
    parser.add_argument("--again", action="store_true", help="those that survived the last time")
    parser.add_argument("--rest", action="store_true", help="those that were not judged yet")
    parser.add_argument("--only", metavar="REGEX", default="", help="those whose line matches")
    parser.add_argument("--list", action="store_true", help="print them and end")
    parser.add_argument("--quick", action="store_true",
                        help="no more looks at survivors: by all programs in their full form, and "
                             "under AddressSanitizer and UBSan")
    parser.add_argument("--tests", action="store_true", help="run all programs that reach a mutant")
    parser.add_argument("--record", action="store_true", help="write scores.md")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs at once")
    parser.add_argument("--build", default=ROOT / "build" / "mutation", help="folder of the builds")
    parser.add_argument("--headers", default="", help="folders of CUDA's headers, by ;")
    parser.set_defaults(plan="general")
    return parser.parse_args()


def say(text):
    print(text, file=sys.stderr, flush=True)


class Run:
    def __init__(self, options, plan):
        self.options, self.plan = options, PLANS[plan]
        folder = pathlib.Path(options.build).resolve() / plan
        folder.mkdir(parents=True, exist_ok=True)
        cmake = [f"-DCMAKE_C_COMPILER={self.plan.compiler}"]
        if self.plan.needs_headers:
            cmake.append(f"-DSYNCBLOB_CUDA_HEADERS={options.headers}")
        self.tree = Tree(ROOT, folder, cmake, self.plan.flags, options.jobs, say)
        self.results = Results(folder / "results.json", ROOT)
        self.folder = folder

    def prepare(self):
        """All mutants, built into the test programs."""
        start = time.monotonic()
        paths = self.plan.paths(ROOT)
        for path in paths:
            self.results.digest(path)
        self.tree.copy(set(paths))
        self.tree.configure()
        found = self.plan.find(self.tree, paths)
        all_mutants = edits.number(found)
        if self.options.list:
            return self.chosen(all_mutants), []
        live = self.tree.build_all(found, set(all_mutants),
                                   programs.targets(self.tree.build, self.plan.programs))
        tests = programs.listed(self.tree.build, self.plan.programs)
        self.unborn = [m for m in all_mutants if m not in live]
        for mutant in self.unborn:
            say(f"has no place, or does not compile: {mutant}")
        say(f"{len(live)} mutants in {len(tests)} programs, {len(self.unborn)} that are none; "
            f"built in {time.monotonic() - start:.0f} s")
        self.count = len(all_mutants)
        self.known = [m for m in all_mutants if m in live]
        return self.chosen(self.known), tests

    def chosen(self, mutants):
        options = self.options
        chosen = [m for m in mutants
                  if re.search(options.only, str(m)) and self.is_of_files(m.path)]
        if options.rest:
            chosen = [m for m in chosen if not self.results.get(m)]
        if options.again:
            verdicts = {m: self.results.get(m) for m in chosen}
            chosen = [m for m, v in verdicts.items() if v and v.word != judge.KILLED]
        if options.sample and options.sample < len(chosen):
            seed = options.seed if options.seed is not None else random.randrange(10**6)
            say(f"--sample {options.sample} --seed {seed}")
            sample = random.Random(seed).sample(chosen, options.sample)
            chosen = sorted(sample, key=lambda m: m.number)
        return chosen

    def is_of_files(self, path):
        wanted = [os.path.relpath(pathlib.Path(f).resolve(), ROOT) for f in self.options.file]
        return not wanted or any(path == f or path.startswith(f + "/") for f in wanted)

    # --- judging ---------------------------------------------------------------------

    def judge_with(self, tests, environment, patience=None):
        runner = programs.Runner(self.tree.build, environment, self.plan.limits_memory)
        programs.Baseline(runner, self.count, say).measure(tests)
        return judge.Judge(runner, tests, self.known, self.plan.first, patience)

    def verdicts(self, mutants, the_judge):
        """Judges them; those that live."""
        start, alive, done = time.monotonic(), [], 0

        def tell(mutant, verdict):
            nonlocal done
            done += 1
            self.results.put(mutant, verdict)
            if verdict.word != judge.KILLED:
                alive.append(mutant)
                say(f"{verdict.word}: {mutant}")
            if done % 20 == 0 or done == len(mutants):
                self.results.save()
                seconds = time.monotonic() - start
                say(f"{done} of {len(mutants)}, {len(alive)} live, {seconds:.0f} s")

        try:
            judge.each(the_judge.verdict, mutants, self.options.jobs, tell)
        finally:
            self.results.save()
        return alive

    def judge(self, mutants, tests):
        thorough = self.plan.full is not None and not self.options.quick
        patience = PATIENCE if thorough or self.options.quick else None
        alive = self.verdicts(mutants, self.judge_with(tests, self.plan.environment, patience))
        if alive and thorough:
            say("the survivors again, by all programs in their full form")
            alive = self.verdicts(alive, self.judge_with(tests, self.plan.full))
        if alive and thorough and self.plan.last:
            self.last_look(alive)
        return self.report(mutants)

    def last_look(self, mutants):
        """In another build of the same mutants."""
        say("the survivors again, under sanitizers")
        other = Run(self.options, self.plan.last)
        _, tests = other.prepare()
        there = {m.id: m for m in other.known}
        other.results = self.results
        the_judge = other.judge_with(tests, other.plan.environment)
        other.verdicts([there[m.id] for m in mutants if m.id in there], the_judge)

    def listed(self, mutants):
        return survivors.read(HERE / "survivors.txt", {m.path for m in mutants})

    def report(self, mutants):
        verdicts = {m: self.results.get(m) for m in mutants}
        alive = [m for m, v in verdicts.items() if v.word != judge.KILLED]
        dead = [m for m, v in verdicts.items() if v.word == judge.KILLED]
        if self.plan.is_strict:
            problems = [f"survives: {m}" for m in alive]
            problems += [f"has no place, or does not compile: {m}"
                         for m in self.chosen(self.unborn)]
        else:
            problems = survivors.problems(self.listed(mutants), alive, dead, self.known)
        print(as_text(table(mutants, self.results, self.listed(mutants))))
        if self.options.record:
            page = HERE / "scores.md"
            rows = table(self.known, self.results, self.listed(self.known))
            page.write_text(as_markdown(with_recorded(rows, page.read_text(), self.known)))
        print(*problems, sep="\n")
        print(f"{len(mutants) - len(problems)} passed, {len(problems)} failed")
        return 1 if problems else 0


def main():
    options = arguments()
    run = Run(options, options.plan)
    try:
        mutants, tests = run.prepare()
    except BuildFailed as failed:
        sys.exit(f"mutate: {failed}")
    if options.list:
        print(*mutants, sep="\n")
        return 0
    if not mutants:
        sys.exit("mutate: there is no such mutant")
    if options.tests:
        return matrix.show(run, mutants, tests, say)
    return run.judge(mutants, tests)


if __name__ == "__main__":
    sys.exit(main())
