"""Which programs to try for a mutant, and in which order: by their times and what they noticed."""

import collections
import os
import threading

START = 0.03        # seconds that every program takes
SLOW, FAIR = 1, 20  # seconds of a slow program; mutants that any other one may try


class Luck:
    """`first`: names of programs by kind of mutant, which come before the others."""

    def __init__(self, programs, mutants, first):
        self.first, self.lock = first, threading.Lock()
        self.kills, self.tries = collections.Counter(), collections.Counter()
        numbers, self.shares = {}, {}
        for mutant in mutants:
            numbers.setdefault(mutant.path, set()).add(mutant.number)
        for path, there in numbers.items():
            for program in programs:
                self.shares[path, program.name] = len(program.reached & there) / len(there)

    @staticmethod
    def groups(program, mutant):
        """What it is counted by: the file, and the folder, in which a program is given up."""
        return (mutant.path, program.name), (os.path.dirname(mutant.path), program.name)

    def learn(self, program, mutant, noticed):
        with self.lock:
            for group in self.groups(program, mutant):
                self.tries[group] += 1
                self.kills[group] += noticed

    def cost(self, program, mutant):
        """Its time over how likely it notices: by what it did for the file, and at first by how
        much of the file it reaches."""
        names = self.first.get(mutant.kind, [])
        rank = names.index(program.name) if program.name in names else len(names)
        file, _ = self.groups(program, mutant)
        likely = (self.kills[file] + 2 * self.shares[file]) / (self.tries[file] + 3)
        return rank, (program.seconds + START) / (likely + 0.01)

    def is_spent(self, program, mutant, patience):
        """It took `patience` seconds and more for a folder whose mutants it never noticed."""
        _, folder = self.groups(program, mutant)
        tries = self.tries[folder] - (0 if program.seconds > SLOW else FAIR)
        return not self.kills[folder] and tries * program.seconds > patience
