"""Seeds for the target dlpack: a valid tensor of each kind, and a tensor with each fault.

An input is a sequence of choices, which the harness interprets. An empty input makes a valid tensor.
"""

LEGACY, INTO, RESHAPE, DIFF, READ_ONLY, ON_DEVICE, NO_STRIDES, NO_MEMORY = (1 << n for n in range(8))
OTHER = 3


def tensor(how=0, dims=(1, 2), strides=None, dtype=0, blob_dtype=0, odd=b""):
    """Returns an input. `dims` and `strides` are codes: dimensions 1 to 4 have the codes 0 to 3."""
    strides = strides or [0] * len(dims)
    return bytes([how, len(dims), blob_dtype, *dims, *reversed(strides), dtype, 1]) + odd


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
    for name, how in (("legacy", LEGACY), ("read_only", READ_ONLY), ("device", ON_DEVICE),
                      ("no_strides", NO_STRIDES), ("no_memory", NO_MEMORY),
                      ("device_read_only_no_memory", ON_DEVICE | READ_ONLY | NO_MEMORY),
                      ("legacy_device", LEGACY | ON_DEVICE)):
        yield "dlpack", name, tensor(how)
        yield "dlpack", f"into_{name}", tensor(how | INTO)
        yield "dlpack", f"into_diff_{name}", tensor(how | INTO | DIFF | RESHAPE, blob_dtype=0)
    for name, odd in ODD.items():
        yield "dlpack", f"odd_{name}", tensor(odd=bytes(odd))
        yield "dlpack", f"odd_into_{name}", tensor(INTO | READ_ONLY, odd=bytes([*odd, 0, OTHER]))
    for name, dims, strides in (
            ("scalar", [], []), ("overflow", [10, 10], None), ("bytes_overflow", [14], None),
            ("column_major", [1, 2], [2, 4]), ("one_row", [1, 2], [1, 0]), ("one_among", [1, 0, 2], [0, 8, 0]),
            ("every_second", [2], [4]), ("upside_down", [2], [3])):
        yield "dlpack", name, tensor(dims=dims, strides=strides)
