"""Seeds that are whole files: nets of the three generations, solver states, vectors of blobs."""

import wire_blobs
from wire import BYTES, VARINT, blob, data, fixed32, floats, group, legacy, number, shape, tag, unpacked

LEGACY = legacy(1, 1, 2, 3) + data(5, floats(range(6)))


def layer(name, kind, *blobs):
    return data(100, data(1, name) + data(2, kind) + b"".join(data(7, b) for b in blobs))


def v1_layer(name, kind, *blobs):
    return data(2, b"".join(data(6, b) for b in blobs) + data(4, name) + number(5, kind))


def v0_layer(name, kind, *blobs):
    return data(2, data(1, data(1, name) + data(2, kind) + b"".join(data(50, b) for b in blobs)))


def current_net():
    return (data(1, "small") + layer("data", "Input") +
            layer("conv", "Convolution", blob(2, 3), blob(2, first=100)) + layer("relu", "ReLU") +
            layer("ip", "InnerProduct", blob(4, 2, wide=True, diff=True), blob(4)))


def v1_net():
    return (data(1, "old") + v1_layer("conv", 4, LEGACY, legacy(1, 1, 1, 2) + data(5, floats([1, 2]))) +
            v1_layer("relu", 18) + v1_layer("ip", 14, LEGACY))


def v0_net():
    return data(1, "oldest") + v0_layer("conv", "conv", LEGACY, blob(2)) + v0_layer("relu", "relu")


def files():
    yield "net-current", current_net()
    yield "net-of-all-generations", current_net() + v1_net() + v0_net()
    yield "net-empty", b""
    yield "net-name-only", data(1, "name")
    yield "net-name-with-any-bytes", data(1, bytes([0, 1, 0x7f, 0x80, 0xff, 10, 34, 92]))
    yield "net-layer-texts-twice", data(100, data(1, "x") + data(1, "y") + data(2, "p") + data(2, ""))
    yield "net-layer-without-anything", data(100, b"") * 3 + data(2, b"") * 2
    yield "net-layers-of-one-name", layer("same", "A") + layer("same", "B") + layer("", "")
    yield "net-v1-type-unknown", v1_layer("x", 40) + v1_layer("y", -1) + v1_layer("z", 39)
    yield "net-v1-type-twice", data(2, number(5, 4) + number(5, 18) + fixed32(5, 1))
    yield "net-v0-inside-twice", data(2, data(1, data(1, "a") + data(50, blob(2))) + data(4, "outer") +
                                      data(6, blob(3)) + data(1, data(2, "t") + data(50, blob(1))))
    yield "net-v0-and-v1-type", data(2, number(5, 4) + data(1, b"") + number(5, 14))
    yield "net-blobs-without-data", layer("a", "b", shape(2, 3), b"", shape(0, 5))
    yield "net-blob-of-diff-only", layer("a", "b", data(6, floats([1, 2])) + shape(2))
    yield "net-unknown-everywhere", (number(90, 1) + group(91, data(1, "x")) + data(1, "u") +
                                     data(100, number(77, 1) + data(1, "l") + group(8) +
                                          data(7, fixed32(66, 1) + blob(2)) + data(10, "param")) +
                                     fixed32(92, 0))
    yield "net-known-fields-of-wrong-types", (number(1, 1) + number(2, 1) + number(100, 1) +
                                              group(100) + current_net() + data(100, number(7, 1)))
    yield "net-unpacked-blob", layer("a", "b", unpacked(5, [1, 2, 3]) + shape(3))
    yield "net-many-small-layers", b"".join(layer(f"l{i}", "T", blob(1, first=i)) for i in range(40))
    yield "net-bad-shape-in-blob", layer("a", "b", blob(1), shape(-1))
    yield "net-33-axes-in-blob", layer("a", "b", shape(*[1] * 33))
    yield "net-cut", current_net()[:-7]
    yield "net-group-open-in-layer", data(100, tag(9, 3))
    yield "bomb-empty-layers", data(2, b"") * 4000
    yield "bomb-names", data(1, "n" * 900) * 8 + data(100, data(1, "m" * 900) * 8)
    yield "bomb-merged-v0-layers", data(2, data(1, b"") * 3000)
    yield "solver", (number(1, 4000) + data(2, "net_iter_4000.caffemodel") + data(3, blob(2, 3)) +
                     data(3, blob(2)) + number(4, 2))
    yield "solver-iter-only", number(1, 1)
    yield "solver-iter-beyond-32-bits", number(1, (1 << 35) + 3)
    yield "solver-iter-beyond-64-bits", tag(1, VARINT) + b"\x85" + b"\x80" * 8 + b"\x02"
    yield "solver-learned-net-twice", data(2, "a") + number(1, 1) + data(2, "")
    yield "solver-bad-history", number(1, 1) + data(3, blob(2)) + data(3, shape(-1))
    yield "vector-of-one", data(1, blob(2))
    yield "vector-with-unknown", number(2, 1) + data(1, blob(2)) + group(3)
    yield "vector-bad-blob", data(1, blob(2)) + data(1, shape(1 << 63))
    yield "stranger-unknown-fields", number(20, 1) + data(30, "x")
    yield "stranger-text", b"name: \"net\"\nlayer { }\n"
    yield "stranger-zeros", bytes(32)


def some_blobs():
    wanted = ("double-2x3-diff", "legacy-mean-image", "scalar", "wrong-types", "dims-overflow", "length-one",
              "fields-of-a-fork")
    return ((name, message) for name, message in wire_blobs.messages()
            if name.startswith(wanted) or name.endswith(wanted))


def seeds():
    for name, message in [*files(), *some_blobs()]:
        yield "model_file", name, message
    for name, message in files():
        yield "differential", name, message
    for name, message in wire_blobs.messages():
        yield "differential", f"blob-{name}", message


def words():
    tags = [tag(field, BYTES) for field in (1, 2, 3, 4, 6, 7, 50, 100)]
    tags += [tag(field, VARINT) for field in (1, 4, 5)]
    one = data(5, floats([1]))
    values = [data(7, data(5, floats([1, 2])) + shape(2)), data(6, one), data(50, one), data(3, one),
              data(100, data(1, "l")), data(2, number(5, 4)), data(2, data(1, data(1, "l"))), shape(2, 3), one]
    for target in "model_file", "differential":
        yield from ((target, word) for word in wire_blobs.NUMBERS + tags + values)
