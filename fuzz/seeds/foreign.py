"""Seeds that are no messages of Caffe's: how web pages, archives and other programs' files begin,
and messages of Caffe's that begin like them."""

import io
import struct
import tarfile

from wire import BYTES, data, floats, legacy, number, tag, varint


def zip_member(name):
    return b"PK\3\4\x14" + bytes(21) + struct.pack("<HH", len(name), 0) + name + b"\x80\2}q"


def tar():
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("net/deploy.prototxt"))
    return made.getvalue()[:512]


def texts():
    yield "html", b"\xef\xbb\xbf\n\n<!DOCTYPE html>\n<html>\n"
    yield "xml", b'<?xml version="1.0"?>\n<Error>'
    yield "lfs", (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"
                  b"size 243862418\n")
    yield "prototxt", b'# a net\nname: "CaffeNet"\nlayer {\n'
    yield "json", b'{\n  "message": "Not Found"\n}\n'
    yield "json-short", b'{"a":1}'
    yield "text", b"404: Not Found"


def archives():
    yield "gzip", b"\x1f\x8b\x08\x08\xbf\x15\x03\x6b\0\3a.txt\0"
    yield "bzip2", b"BZh91AY&SY\xc1\xc0\x80\xe2"
    yield "xz", b"\xfd7zXZ\0\0\4\xe6\xd6\xb4\x46"
    yield "zstd", b"\x28\xb5\x2f\xfd\x24\6\x31\0\0hello\n"
    yield "7z", b"7z\xbc\xaf\x27\x1c\0\4"
    yield "rar", b"Rar!\x1a\7\1\0"
    yield "tar", tar()
    yield "zip", zip_member(b"a.txt")
    yield "zip-empty", b"PK\5\6" + bytes(18)
    yield "npz", zip_member(b"w.npy")
    yield "torch", zip_member(b"archive/data.pkl")


def arrays():
    yield "hdf5", b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0"
    yield "npy", b"\x93NUMPY\1\0v\0{'descr': '<f4'"
    yield "torch-old", bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
    yield "pickle", b"\x80\4\x95\x09" + bytes(7) + b"]\x94(K\1K\2e."
    yield "safetensors", struct.pack("<Q", 56) + b'{"w":{"dtype":"F32"'
    yield "tflite", b"\x1c\0\0\0TFL3\x14\0"
    yield "events", struct.pack("<QI", 24, 0x9d4892fe) + b"\x09" + bytes(8) + b"\x1a\x0dbrain.Event:2"
    yield "appledouble", b"\0\5\x16\7\0\2\0\0Mac OS X        "
    yield "zeros", bytes(64)


def messages():
    node = data(1, data(1, "input") + data(2, "Placeholder"))
    yield "graph", node
    yield "saved-model", (number(1, 1) + data(2, data(1, data(2, data(1, data(1, "Add")))) +
                                              data(2, node)))
    yield "onnx", (number(1, 7) + data(2, "pytorch") +
                   data(7, data(1, data(1, "x") + data(2, "y")) + data(2, "g")) +
                   data(8, number(2, 13)))


def look_alikes():
    """Accepted; over a narrow limit they are refused, and still nothing foreign."""
    yield "net-like-a-pickle", number(32, 0x7d) + data(1, "a name too long")
    yield "net-like-bzip2", data(8, b"h91AY&SY" + bytes(82)) + data(1, "a name too long")
    yield "net-like-json", (tag(15, 3) + tag(4, BYTES) + varint(2) + b"\n}" + tag(15, 4) +
                            data(1, "a name too long"))
    yield "blob-cut", legacy(1, 1, 2, 3) + data(5, floats(range(6)))[:-3]


def seeds():
    kinds = [kind for all_of in (texts, archives, arrays, messages, look_alikes) for kind in all_of()]
    for target in ("blob_proto", "model_file"):
        for name, content in kinds:
            yield target, f"foreign-{name}", content


def words():
    beginnings = [b"<html", b"\nsize 1\n", b'{"', b"PK\3\4", b".npy", b"/data.pkl", b"\x80\2}", b"BZh91AY&SY",
                  b"ustar", bytes(8)]
    yield from ((target, word) for target in ("blob_proto", "model_file") for word in beginnings)
