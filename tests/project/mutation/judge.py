"""Runs the tests that reach a mutant until one fails."""

import collections
import concurrent.futures
import os
import threading

from programs import LEAST_SECONDS, failed_functions

SLOWER = 10
SLOW, FAIR = 1, 20  # seconds; mutants that every faster program may try


class Verdict:
    """What became of a mutant: killed (by whom, how), survived, not reached."""

    def __init__(self, word, program="", why=""):
        self.word, self.program, self.why = word, program, why

    def __str__(self):
        return f"{self.word} {self.program} ({self.why})" if self.program else self.word


KILLED, SURVIVED, NOT_REACHED = "killed", "survived", "not reached"


def pair_of(mutant, program):
    """What a program's luck is counted by: the folder of the mutant's file."""
    return os.path.dirname(mutant.path), program.name


def limit(program):
    return max(LEAST_SECONDS, SLOWER * program.seconds)


class Judge:
    """`first`: names of programs by kind of mutant, which come before the others. `patience`: the
    seconds that a program may take for mutants of a folder, as long as it notices none of them."""

    def __init__(self, runner, programs, first=None, patience=float("inf")):
        self.runner, self.programs, self.first = runner, programs, first or {}
        self.patience = patience
        self.kills, self.tries = collections.Counter(), collections.Counter()
        self.lock = threading.Lock()

    def reaching(self, mutant):
        """The cheapest first: a program's time, over how often it noticed mutants of the folder."""
        def cost(program):
            first = self.first.get(mutant.kind, [])
            rank = first.index(program.name) if program.name in first else len(first)
            pair = pair_of(mutant, program)
            return rank, program.seconds * (self.tries[pair] + 2) / (self.kills[pair] + 1)
        with self.lock:
            return sorted((p for p in self.programs if mutant.number in p.reached), key=cost)

    def is_idle(self, program, mutant):
        """Whether a second look is early enough for it."""
        if self.patience == float("inf"):
            return False
        if program.name.startswith("standin.") and not mutant.path.startswith("cuda/"):
            return True  # the same tests on another device
        pair = pair_of(mutant, program)
        tries = self.tries[pair] if program.seconds > SLOW else self.tries[pair] - FAIR
        return not self.kills[pair] and tries * program.seconds > self.patience

    def run(self, program, mutant):
        return self.runner.run(program, limit(program), {"SYNCBLOB_MUTANT": str(mutant.number)})

    def verdict(self, mutant):
        programs = self.reaching(mutant)
        for program in programs:
            if self.is_idle(program, mutant):
                continue
            why = self.run(program, mutant).why
            with self.lock:
                self.tries[pair_of(mutant, program)] += 1
                self.kills[pair_of(mutant, program)] += why is not None
            if why:
                return Verdict(KILLED, program.name, why)
        return Verdict(SURVIVED if programs else NOT_REACHED)

    def killers(self, mutant):
        """{program: functions that fail} of all that reach it."""
        found = {}
        for program in self.reaching(mutant):
            outcome = self.run(program, mutant)
            if outcome.why:
                found[program.name] = failed_functions(outcome.output)
        return found


def each(work, mutants, jobs, done):
    """done(mutant, work(mutant)) for all, as they come."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(work, mutant): mutant for mutant in mutants}
        try:
            for future in concurrent.futures.as_completed(waiting):
                done(waiting[future], future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
