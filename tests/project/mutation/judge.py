"""Runs the tests that reach a mutant until a test fails."""

import collections
import concurrent.futures
import threading

from results import KILLED, NOT_REACHED, SURVIVED

START, LEAST_SECONDS, SLOWER = 0.03, 2, 10
MANY = 15


class Judge:
    """Judges mutants. If a program kills no mutant of a file within `patience` seconds, the program is not run for
    the file's other mutants.
    """

    def __init__(self, runner, programs, mutants, patience=None):
        self.runner, self.programs, self.patience = runner, programs, patience
        self.lock = threading.Lock()
        self.kills, self.tries = collections.Counter(), collections.Counter()
        numbers, self.shares = collections.defaultdict(set), {}
        for mutant in mutants:
            numbers[mutant.path].add(mutant.number)
        for path, there in numbers.items():
            for program in programs:
                reached = sum(program.reached[number] == "1" for number in there)
                self.shares[path, program.name] = reached / len(there)

    def cost(self, program, mutant):
        """Returns the program's time divided by the estimated probability that the program kills the mutant."""
        file = mutant.path, program.name
        likely = (self.kills[file] + 2 * self.shares[file]) / (self.tries[file] + 3)
        return (program.seconds + START) / (likely + 0.01)

    def is_spent(self, program, mutant):
        file = mutant.path, program.name
        return not self.kills[file] and self.tries[file] * program.seconds > self.patience

    def verdict(self, mutant):
        reaching = sorted((p for p in self.programs if p.reached[mutant.number] == "1"),
                          key=lambda program: self.cost(program, mutant))
        for program in reaching:
            if self.patience and len(reaching) > MANY and self.is_spent(program, mutant):
                continue
            limit = max(LEAST_SECONDS, SLOWER * program.seconds)
            why = self.runner.run(program, limit, {"SYNCBLOB_MUTANT": str(mutant.number)})[0]
            with self.lock:
                self.tries[mutant.path, program.name] += 1
                self.kills[mutant.path, program.name] += why is not None
            if why:
                return KILLED, program.name, why
        return (SURVIVED if reaching else NOT_REACHED,)


def each(work, mutants, jobs, done):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(work, mutant): mutant for mutant in mutants}
        try:
            for future in concurrent.futures.as_completed(waiting):
                done(waiting[future], future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
