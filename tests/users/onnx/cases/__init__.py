"""TABLES maps each row's name to its number of cases and the function that draws a case."""

import sys
import zlib

from comparing import LAYER_TOLERANCE, Wanted, answers_of_module
from nets import Draw, Net

from . import detection, forks, moves, values, windows

_modules = (windows, moves, detection, values, forks)
TABLES = {row: case for module in _modules for row, case in module.TABLE.items()}
MODULES = {row: module.__name__.rpartition(".")[2] for module in _modules for row in module.TABLE}
OF_CAFFE = tuple(row for row in TABLES if row not in forks.TABLE)


class Case:
    def __init__(self, row, index, outputs=None):
        self.name = f"{row}/{index:03}"
        self.net = Net()
        TABLES[row][1](Draw(row, index), self.net)
        self.text, self.model, self.inputs = self.net.text, self.net.model, self.net.inputs
        self.names_differ, self.detections = self.net.names_differ, self.net.detections
        self.wanted = {name: Wanted(array.shape, array, LAYER_TOLERANCE, name in self.net.detections)
                       for name, array in (outputs or {}).items()}

    def digest(self):
        digest = zlib.crc32(self.net.model(), zlib.crc32(self.net.text().encode()))
        for values in self.inputs.values():
            digest = zlib.crc32(values.tobytes(), digest)
        return digest


def cases_of(row):
    return [Case(row, index) for index in range(TABLES[row][0])]


def answered(row, most=None):
    """Returns at most `most` cases of a row, with their stored answers."""
    kept = answers_of_module(MODULES[row]).get(row, [])
    of_row = [Case(row, index, outputs) for index, (_, outputs) in enumerate(kept[:most])]
    if len(kept) != TABLES[row][0] or [case.digest() for case in of_row] != [each[0] for each in kept[:most]]:
        sys.exit(f"{row}: the stored answers are for other cases; ./dev caffe --answers renews them")
    return of_row
