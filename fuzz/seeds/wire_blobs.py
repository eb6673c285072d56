"""Seeds that are one BlobProto or BlobShape message."""

import struct

from wire import (BYTES, END_GROUP, FIXED32, FIXED64, GROUP, VARINT, blob, data, doubles, fixed32,
                  fixed64, floats, group, int_varint, legacy, number, shape, tag, varint)

SIX = [1.0, -2.0, 3.5, 0.0, 1e30, 7.0]
DIMS = int_varint(2) + int_varint(3)
SIX_FLOATS = data(5, floats(SIX))
NAN = b"\x01\x00\xa0\x7f"  # a signalling NaN: reading must not change its bits
PADDING = data(100, bytes(range(256)) * 64)[:16384]  # almost the size of the reader's window


def halves(*bits):
    return struct.pack(f"<{len(bits)}H", *bits)


def raw(kind, content, diff=False):
    return number(10 + diff, kind) + data(12 + diff, content)


DOUBLE, FLOAT, FLOAT16, INT, UINT = range(5)
SIX_HALVES = halves(0x3c00, 0xc000, 0x4300, 0x0000, 0x7bff, 0x4700)


def nested(depth, inside=b""):
    for i in range(depth):
        inside = group(1 + i, inside)
    return inside


def messages():
    yield "scalar", data(5, floats([5.0]))
    yield "scalar-with-empty-shape", data(5, floats([5.0])) + shape()
    yield "float-2x3-diff", blob(2, 3, diff=True)
    yield "double-2x3-diff", blob(2, 3, wide=True, diff=True)
    yield "double-data-float-diff", data(8, doubles(SIX)) + data(6, floats(SIX)) + shape(2, 3)
    yield "float-data-double-diff", SIX_FLOATS + data(9, doubles(SIX)) + shape(2, 3)
    yield "double-wins-over-float", SIX_FLOATS + data(8, doubles(SIX[::-1])) + shape(2, 3)
    yield "empty-double-leaves-float", SIX_FLOATS + data(8, b"") + shape(2, 3)
    yield "double-beyond-float-range", data(8, doubles([1e300, -1e300, 1e-300])) + shape(3)
    yield "signalling-nan-and-denormal", data(5, NAN + b"\x01\0\0\0" + b"\0\0\0\x80") + shape(3)
    yield "signalling-nan-double", data(8, b"\1\0\0\0\0\0\xf4\x7f") + shape(1)
    yield "legacy-mean-image", legacy(1, 3, 4, 4) + data(5, floats([i / 7 for i in range(48)]))
    c3d = legacy(1, 2, 1, 1) + number(5, 3)
    yield "c3d", c3d + data(6, floats(range(6)))
    yield "c3d-diff", c3d + data(6, floats(range(6))) + data(7, floats(range(6, 12)))
    yield "legacy-height-alone", number(3, 5)
    yield "legacy-beside-diff-only", legacy(0, 1, 1, 1)
    yield "shape-unpacked", data(7, number(1, 2) + number(1, 3)) + SIX_FLOATS
    yield "shape-mixed", data(7, number(1, 1) + data(1, DIMS) + number(1, 1)) + SIX_FLOATS
    yield "shape-of-32-axes", shape(*[1] * 30, 2, 3) + SIX_FLOATS
    yield "shape-zero-hides-overflow", shape(0, 1 << 62, 1 << 62)
    yield "shape-zero", shape(0, 3)
    yield "shape-with-unknown-fields", data(7, number(9, 1) + data(1, DIMS) + group(2)) + SIX_FLOATS
    yield "known-fields-of-wrong-types", (
        fixed32(1, 1) + data(2, "x") + fixed64(3, 1) + group(4) + fixed64(5, 1) + number(6, 1) +
        number(7, 1) + fixed32(8, 1) + group(9) + blob(2, 3))
    yield "shape-dim-of-wrong-type", data(7, fixed32(1, 1) + fixed64(1, 1) + group(1)) + data(5, floats([1]))
    yield "groups-nested-100", nested(100) + blob(2)
    yield "group-around-known-fields", group(5, SIX_FLOATS + group(7)) + blob(2)
    yield "overlong-varints", (varint(5 << 3 | BYTES, 5) + varint(24, 10) + floats(SIX) +
                               varint(7 << 3 | BYTES, 10) + varint(22, 3) +
                               b"\x0a" + varint(20, 9) + varint(2, 10) + varint(3, 10))
    yield "number-beyond-64-bits-unknown", tag(99, VARINT) + b"\xff" * 9 + b"\x7f" + blob(2)
    yield "window-edge-in-shape", PADDING[:-9] + shape(2, 3) + SIX_FLOATS
    yield "window-edge-in-group", PADDING[:-2] + group(9, number(1, 1 << 40)) + blob(3)
    yield "float-12x16", blob(12, 16)
    yield "conversion-in-chunks", blob(1100, first=-550.0)
    yield "raw-float16-special", shape(3, 3) + raw(FLOAT16, halves(
        0x0001, 0x83ff, 0x0400, 0x8000, 0x7c00, 0xfc00, 0x7c01, 0xfe00, 0x7fff))
    yield "raw-int", shape(4) + raw(INT, struct.pack("<4i", -1 << 31, -1, 16777217, (1 << 31) - 1))
    yield "raw-uint", shape(3) + raw(UINT, struct.pack("<3I", 0, 16777219, (1 << 32) - 1))
    yield "raw-diff-of-another-type", (shape(6) + raw(FLOAT16, SIX_HALVES) +
                                       raw(DOUBLE, doubles(SIX), diff=True))
    yield "raw-diff-beside-float", blob(2, 3) + raw(FLOAT16, SIX_HALVES, diff=True)
    yield "raw-type-behind-the-bytes", data(12, SIX_HALVES) + number(10, FLOAT16) + shape(6)
    yield "raw-last-wins", raw(FLOAT, floats(SIX)) + shape(6) + raw(FLOAT16, SIX_HALVES)
    yield "repeated-scalar-last-wins", number(4, 9) + legacy(1, 1, 2, 3) + SIX_FLOATS + number(4, 3)
    yield "raw-of-wrong-types", (shape(6) + raw(FLOAT16, SIX_HALVES) + data(10, b"\1") +
                                 fixed32(12, 1) + number(12, 1) + fixed64(10, 1))
    yield "raw-loses-to-float", raw(FLOAT16, SIX_HALVES[::-1]) + blob(2, 3)
    yield "raw-empty-for-zero", shape(0) + raw(FLOAT16, b"")
    yield "raw-scalar", raw(FLOAT16, SIX_HALVES[:2])
    yield "raw-conversion-in-chunks", shape(2100) + raw(FLOAT16, halves(*range(0x3800, 0x3800 + 2100)))
    yield "length-one-too-short", data(5, floats([1]), 3)
    yield "shape-longer-than-message", tag(7, BYTES) + varint(9) + data(1, DIMS)
    yield "shape-dim-cut", data(7, tag(1, VARINT) + b"\x80")
    yield "legacy-negative", legacy(1, 1, -2, 3)
    yield "legacy-beyond-31-bits", legacy(1, 1, 1 << 31, 1) + SIX_FLOATS
    yield "legacy-product-overflow", legacy(*[(1 << 31) - 1] * 4)
    yield "dim-2-to-the-63-minus-1", shape((1 << 63) - 1)
    yield "dim-beyond-64-bits", data(7, data(1, b"\x80" * 9 + b"\x02")) + data(5, b"")
    yield "dims-overflow", shape(1 << 32, 1 << 32)
    yield "dims-overflow-bytes", shape(1 << 31, 1 << 30)
    yield "dims-overflow-bytes-of-doubles-only", shape(1 << 30, 1 << 30)
    yield "dims-33-axes", shape(*[1] * 33) + data(5, floats([1]))
    yield "payload-of-7-bytes-double", data(8, b"1234567") + shape(1)
    yield "payload-of-5-bytes", data(5, b"12345") + shape(1)
    yield "payload-one-long", data(5, floats(SIX + [1.0])) + shape(2, 3)
    yield "diff-one-short", blob(2, 3) + data(6, floats(SIX[:5]))
    yield "diff-without-data", data(6, floats(SIX)) + shape(2, 3)
    yield "data-missing", shape(2, 3)
    yield "raw-without-type", shape(6) + data(12, SIX_HALVES)
    yield "raw-with-the-type-of-diff", shape(6) + number(11, FLOAT16) + data(12, SIX_HALVES)
    yield "raw-of-unknown-type", shape(6) + raw(5, SIX_HALVES)
    yield "raw-of-13-bytes", shape(6) + raw(FLOAT16, SIX_HALVES + b"\0")
    yield "raw-one-short", shape(6) + raw(FLOAT16, SIX_HALVES[:10])
    yield "bomb-repeated-shapes", shape(1) * 600 + data(5, floats([1]))
    yield "blobshape-unpacked-4x5x6", number(1, 4) + number(1, 5) + number(1, 6)
    yield "blobshape-overflow-of-doubles", data(1, int_varint(1 << 60))


BROKEN = [b"\0\0", b"\x80\x80\0\0", b"\x0e", b"\x80\x80\x80\x80\x10\x01", b"\xf4\xdd", nested(101),
          tag(8, END_GROUP),
          *(tag(field, VARINT) + value for field in (1, 8, 99) for value in (b"", b"\xff", b"\x80" * 10 + b"\0")),
          *(tag(field, kind) + b"\5\0\0" for field in (1, 5, 99) for kind in (FIXED32, FIXED64, BYTES, GROUP)),
          *(tag(field, BYTES) for field in (1, 5, 99))]


def seeds():
    for name, message in messages():
        yield "blob_proto", name, message
    for target in "blob_proto", "differential", "filler", "model_file":
        for at, field in enumerate(BROKEN):
            yield target, f"broken-{at}", field
            yield target, f"broken-in-group-{at}", tag(9, GROUP) + field


NUMBERS = [varint(1, 4), varint((1 << 31) - 1), varint(1 << 31), varint((1 << 63) - 1), int_varint(-1),
           b"\xff" * 9 + b"\x7f", b"\x82" + b"\x80" * 8 + b"\x02", b"\x80" * 10 + b"\0",
           b"\xf8\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x10", tag(99, GROUP), tag(99, END_GROUP)]


def words():
    single = [tag(field, VARINT) for field in (1, 2, 3, 4, 10, 11)]
    packed = [tag(field, BYTES) for field in (1, 5, 6, 7, 8, 9, 12, 13)]
    unpacked_tags = [tag(5, FIXED32), tag(6, FIXED32), tag(8, FIXED64), tag(9, FIXED64)]
    values = [shape(2, 3), data(5, floats([1])), data(8, doubles([1])), tag(5, GROUP), tag(5, END_GROUP),
              raw(FLOAT16, halves(0x3c00, 0x8001)), NAN, b"\1\0\0\0\0\0\xf4\x7f"]
    yield from (("blob_proto", word) for word in NUMBERS + single + packed + unpacked_tags + values)
