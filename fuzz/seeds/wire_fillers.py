"""Seeds that are one FillerParameter message, and a dictionary of words for fillers."""

from wire import data, fixed32, fixed64, group, number, tag, FIXED32, VARINT

TYPES = ["constant", "uniform", "gaussian", "positive_unitball", "xavier", "msra", "bilinear"]
INFINITY, NAN = float("inf"), float("nan")


def floats(*values):
    return b"".join(fixed32(2 + i, value) for i, value in enumerate(values))


def messages():
    for name in TYPES:
        yield name, data(1, name)
    yield "all-members", (data(1, "gaussian") + floats(1, 2, 3, 4, 5) + number(7, 2) + number(8, 2))
    yield "uniform-of-one-number", data(1, "uniform") + floats(0, 3, 3)
    yield "sparse-all-zero", data(1, "gaussian") + number(7, 0)
    yield "fan-out", data(1, "xavier") + number(8, 1)
    yield "fan-average", data(1, "msra") + number(8, 2)
    yield "last-type-counts", data(1, "uniform") + data(1, "msra")
    yield "last-norm-counts", number(8, 9) + number(8, 0)
    yield "members-of-other-types", number(1, 1) + fixed64(2, 1) + number(6, 1) + fixed32(7, 1)
    yield "unknown-fields", data(9, "more") + group(20, number(1, 1)) + data(1, "uniform")
    yield "type-cut", data(1, "constan")
    yield "type-empty", data(1, "")
    yield "norm-unknown", data(1, "msra") + number(8, 3)
    yield "norm-negative", number(8, -1)
    yield "max-alone-below-min", data(1, "uniform") + fixed32(4, -1)
    yield "min-nan", data(1, "uniform") + fixed32(3, NAN)
    yield "max-infinite", data(1, "uniform") + fixed32(4, INFINITY)
    yield "value-nan", fixed32(2, NAN)
    yield "std-negative", data(1, "gaussian") + fixed32(6, -1)
    yield "mean-infinite", data(1, "gaussian") + fixed32(5, -INFINITY)
    yield "sparse-without-gaussian", number(7, 1)
    yield "sparse-below", data(1, "gaussian") + number(7, -2)
    yield "text-cut", data(1, "constant", 9)


def seeds():
    yield from (("filler", *message) for message in messages())


def words():
    yield from (("filler", data(1, name)) for name in TYPES)
    yield from (("filler", tag(member, FIXED32)) for member in range(2, 7))
    yield from (("filler", tag(member, VARINT)) for member in (7, 8))
