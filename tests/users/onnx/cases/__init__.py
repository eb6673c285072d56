"""The cases, by the name of their table's row: how many there are, and what draws one."""

import zlib

from drawing import Draw
from nets import Net

from . import activation, arithmetic, convolution, detection, forks, normalisation, pooling, reshaping, wiring

TABLES = {}
for _group in (convolution, pooling, reshaping, detection, activation, normalisation, arithmetic, wiring):
    TABLES.update(_group.TABLE)
OF_CAFFE = tuple(TABLES)
TABLES.update(forks.TABLE)


class Case:
    """One net of a row of the tables."""

    def __init__(self, row, index):
        self.name = f"{row}/{index:03}"
        self.net = Net()
        TABLES[row][1](Draw(row, index), self.net)

    def digest(self):
        """Of all that decides Caffe's answers."""
        net = self.net.for_caffe()
        digest = zlib.crc32(self.net.model(), zlib.crc32(net.text().encode()))
        for values in net.inputs.values():
            digest = zlib.crc32(values.tobytes(), digest)
        return digest


def cases_of(row):
    return [Case(row, index) for index in range(TABLES[row][0])]
