"""Seeds that are files of other programs, and messages of Caffe whose first bytes resemble such files."""

import pathlib

from wire import BYTES, data, floats, legacy, number, tag, varint

TABLE = pathlib.Path(__file__).resolve().parents[2] / "tests/support/foreign.txt"


def files():
    for line in TABLE.read_text().splitlines():
        columns = line.split("\t")
        if not line.startswith("#") and len(columns) == 4:
            yield columns[3].encode().decode("unicode_escape").encode("latin-1")[:512]


def look_alikes():
    """Errors must not claim that these messages of Caffe have another format."""
    yield number(32, 0x7d) + data(1, "a name too long")
    yield data(8, b"h91AY&SY" + bytes(82)) + data(1, "a name too long")
    yield (tag(15, 3) + tag(4, BYTES) + varint(2) + b"\n}" + tag(15, 4) + data(1, "a name too long"))
    yield legacy(1, 1, 2, 3) + data(5, floats(range(6)))[:-3]


def cut_zip():
    return b"PK\3\4" + bytes(22) + b"\xff\xff" + bytes(2) + b"a.npy"


def seeds():
    for at, content in enumerate([*files(), *look_alikes(), cut_zip(), bytes(64)]):
        for target in ("blob_proto", "model_file"):
            yield target, f"foreign-{at}", content


def words():
    beginnings = [b"<html", b"\nsize 1\n", b'{"', b"PK\3\4", b".npy", b"/data.pkl", b"\x80\2}", b"BZh91AY&SY",
                  b"ustar", bytes(8)]
    yield from ((target, word) for target in ("blob_proto", "model_file") for word in beginnings)
