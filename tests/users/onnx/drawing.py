"""Random numbers that are the same on every machine and with every NumPy.

NumPy guarantees the raw numbers of its Philox, but not the results of its distributions.
"""

import zlib

import numpy

ROOT_3 = numpy.float32(numpy.sqrt(numpy.float64(3)))


class Draw:
    """The random numbers of one case."""

    def __init__(self, name, index):
        self._bits = numpy.random.Philox(key=[zlib.crc32(name.encode()), index])

    def below(self, bound):
        return int(self._bits.random_raw()) % bound

    def between(self, least, most):
        return least + self.below(most - least + 1)

    def choice(self, options):
        return options[self.below(len(options))]

    def chance(self, percent):
        return self.below(100) < percent

    def sample(self, options):
        """Returns the options in a random order."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(len(left))]

    def shape(self, axes, largest=5):
        return [self.between(1, largest) for _ in range(axes)]

    def uniform(self, shape, least=0.0, most=1.0):
        """Draws floats of 24 bits between two bounds."""
        count = int(numpy.prod(shape, dtype=int))
        whole = self._bits.random_raw(max(count, 1))[:count] >> numpy.uint64(40)
        fraction = whole.astype(numpy.float32) * numpy.float32(2 ** -24)
        least = numpy.float32(least)
        return (fraction * (numpy.float32(most) - least) + least).reshape(shape)

    def numbers(self, shape, deviation=1.0):
        """Draws uniform floats around 0 with this standard deviation: a normal distribution would
        depend on the machine's exponential or logarithm."""
        bound = float(ROOT_3) * deviation
        return self.uniform(shape, -bound, bound)

    def integers(self, shape, bound):
        return numpy.floor(self.uniform(shape, 0, bound)).clip(0, bound - 1)


def counted(shape):
    """Returns the values 1, 2, 3..., which show their origins when a layer moves them."""
    return numpy.arange(1, numpy.prod(shape, dtype=int) + 1, dtype=numpy.float32).reshape(shape)
