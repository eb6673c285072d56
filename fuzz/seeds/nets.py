"""Words of nets: the names of fields, enum values and types of layers."""

import pathlib
import re

CRATE = pathlib.Path(__file__).resolve().parents[2] / "bindings/syncblob-net"
TEXT = ["{ ", "} ", "[ ", "] ", ": 1 ", ": -1 ", ": 0 ", ": 2147483647 ", ": 1e38 ", ": nan ",
        "layer { ", "layers { ", "input: 'd' ", "shape { dim: 1 dim: 3 dim: 8 dim: 8 } "]


def schema():
    for line in (CRATE / "schema/caffe.schema").read_text().splitlines():
        yield line.split("#")[0].split()


def types():
    sources = sorted((CRATE / "src/layers").glob("*.rs"))
    return sorted({name for source in sources
                   for name in re.findall(r'layer_type: "(\w+)"', source.read_text())})


def names():
    """Of fields, with what must follow, and of the values of enums."""
    messages = {words[1] for words in schema() if words[:1] == ["message"]}
    for words in schema():
        if len(words) == 2 and words[0] not in ("message", "enum"):
            yield f"{words[1]} "
        elif len(words) > 2:
            yield f"{words[1]} {'{ ' if words[2] in messages else ': '}"


def words():
    texts = [*sorted(set(names())), *(f"'{name}' " for name in types()), *TEXT]
    yield from (("prototxt", f"word_{at}", text.encode()) for at, text in enumerate(texts))
    for at, name in enumerate(types()):
        yield "net_of_model", f"type_{at}", bytes([0x12, len(name)]) + name.encode()
