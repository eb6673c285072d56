"""Builds protobuf messages, valid or invalid."""

import struct

VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 = range(6)


def varint(value, length=0):
    """Returns a varint of at least `length` bytes, even if the value needs fewer bytes."""
    value &= (1 << 70) - 1
    out = bytearray()
    while value > 0x7f or len(out) + 1 < length:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def int_varint(value, length=0):
    """protobuf extends the sign of an int32 to 64 bits."""
    return varint(value & (1 << 64) - 1, length)


def tag(number, wire_type):
    return varint(number << 3 | wire_type)


def number(field, value):
    return tag(field, VARINT) + int_varint(value)


def data(field, content, length=None):
    """`length` replaces the correct length prefix."""
    if isinstance(content, str):
        content = content.encode()
    return tag(field, BYTES) + varint(len(content) if length is None else length) + content


def fixed32(field, value):
    return tag(field, FIXED32) + struct.pack("<f", value)


def fixed64(field, value):
    return tag(field, FIXED64) + struct.pack("<d", value)


def group(field, content=b""):
    return tag(field, GROUP) + content + tag(field, END_GROUP)


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def doubles(values):
    return struct.pack(f"<{len(values)}d", *values)


def unpacked(field, values):
    return b"".join(fixed32(field, value) for value in values)


def shape(*dims):
    return data(7, data(1, b"".join(int_varint(dim) for dim in dims)) if dims else b"")


def legacy(num, channels, height, width):
    return number(1, num) + number(2, channels) + number(3, height) + number(4, width)


def blob(*dims, first=1.0, diff=False, wide=False):
    count = 1
    for dim in dims:
        count *= dim
    values = [first + i for i in range(count)]
    pack, at = (doubles, 8) if wide else (floats, 5)
    out = data(at, pack(values)) if count else b""
    if diff and count:
        out += data(at + 1, pack([-value for value in values]))
    return out + shape(*dims)
