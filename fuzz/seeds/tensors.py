"""Seeds for the target dlpack: tensors with one fault, and tensors with special shapes and strides.

An empty input makes a valid tensor.
"""


def tensor(dims=(1, 2), strides=None, odd=()):
    """The code of a dimension is the dimension minus 1."""
    strides = strides or [0] * len(dims)
    return bytes([0, len(dims), 0, *dims, *reversed(strides), 0, 1, *odd])


ODD = {
    "major": [1, 2], "flag": [2, 0], "unknown_flag": [2, 40], "code": [3, 5], "bits": [4, 8],
    "lanes": [5, 0, 0, 0, 4], "device": [6, 2], "pinned": [6, 3], "number": [7, 255],
    "no_data": [8], "offset_wraps": [9, 255, 255, 255, 248], "offset": [10, 8], "misaligned": [10, 2],
    "no_shape": [11], "most_axes": [12, 127, 255, 255, 255], "many_axes": [13, 33],
    "negative_ndim": [13, 255],
}


def words():
    yield from (("dlpack", bytes(odd)) for odd in ODD.values())


def seeds():
    for name, odd in ODD.items():
        yield "dlpack", f"odd_{name}", tensor(odd=odd)
    for name, dims, strides in (
            ("scalar", [], []), ("overflow", [10, 10], None), ("bytes_overflow", [14], None),
            ("column_major", [1, 2], [2, 4]), ("one_row", [1, 2], [1, 0]), ("one_among", [1, 0, 2], [0, 8, 0]),
            ("every_second", [2], [4]), ("upside_down", [2], [3])):
        yield "dlpack", name, tensor(dims=dims, strides=strides)
    for at, _ in enumerate(tensor()):
        for value in (*range(16), 32, 64, 128):
            for how in (0, 2, 32):
                changed = bytearray(tensor())
                changed[0] |= how
                changed[at] = value
                yield "dlpack", f"byte-{at}-{value}-{how}", bytes(changed)
