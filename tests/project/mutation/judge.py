"""Runs the tests that reach a mutant until one fails."""

import concurrent.futures

from luck import Luck
from programs import LEAST_SECONDS, failed_functions

SLOWER, MANY = 10, 15
# posix.c opens libraries, backends.c devices; the other two count what a device keeps.
DEVICES_OWN = ("cuda/", "c/comm/src/nccl/", "c/src/context/backends.c",
               "c/src/context/quarantine.c", "c/src/context/stats.c", "c/src/port/posix.c")


class Verdict:
    """What became of a mutant: killed (by whom, how), survived, not reached."""

    def __init__(self, word, program="", why=""):
        self.word, self.program, self.why = word, program, why

    def __str__(self):
        return f"{self.word} {self.program} ({self.why})" if self.program else self.word


KILLED, SURVIVED, NOT_REACHED = "killed", "survived", "not reached"


def limit(program):
    return max(LEAST_SECONDS, SLOWER * program.seconds)


class Judge:
    """With `patience` in seconds a first look, which leaves to a second one what hardly notices
    anything."""

    def __init__(self, runner, programs, mutants, first, patience=None):
        self.runner, self.programs, self.patience = runner, programs, patience
        self.luck = Luck(programs, mutants, first)

    def reaching(self, mutant):
        """The programs, the cheapest first."""
        return sorted((p for p in self.programs if mutant.number in p.reached),
                      key=lambda program: self.luck.cost(program, mutant))

    def first_look(self, mutant):
        """Without the same tests on another device; where many reach it, without slow ones that
        noticed nothing so far."""
        programs = [p for p in self.reaching(mutant)
                    if not p.name.startswith("standin.") or mutant.path.startswith(DEVICES_OWN)]
        for program in programs:
            if len(programs) < MANY or not self.luck.is_spent(program, mutant, self.patience):
                yield program

    def run(self, program, mutant):
        return self.runner.run(program, limit(program), {"SYNCBLOB_MUTANT": str(mutant.number)})

    def verdict(self, mutant):
        programs = self.reaching(mutant)
        for program in programs if self.patience is None else self.first_look(mutant):
            why = self.run(program, mutant).why
            self.luck.learn(program, mutant, why is not None)
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
