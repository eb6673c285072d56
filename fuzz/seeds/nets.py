"""Seeds that are nets with every type of layer, and words of prototxts and caffemodels."""

import functools
import pathlib
import re

from wire import data, fixed32, number

CRATE = pathlib.Path(__file__).resolve().parents[2] / "bindings/syncblob-net"
TEXT = ["{ ", "} ", "[ ", "] ", ": 1 ", ": -1 ", ": 0 ", ": 2147483647 ", ": 1e38 ", ": nan ",
        "layer { ", "layers { ", "input: 'd' ", "shape { dim: 1 dim: 3 dim: 8 dim: 8 } "]


@functools.cache
def schema():
    """A message is a list of (number, field, type, types of layers)."""
    messages, enums, into = {}, {}, None
    for line in (CRATE / "schema/caffe.schema").read_text().splitlines():
        words = line.split("#")[0].split()
        if words[:1] == ["message"]:
            into = messages.setdefault(words[1], [])
        elif words[:1] == ["enum"]:
            into = enums.setdefault(words[1], {})
        elif isinstance(into, dict) and words:
            into[words[1]] = int(words[0])
        elif words:
            when = words[words.index("when") + 1].split("|") if "when" in words else []
            into.append((int(words[0]), words[1], words[2], when))
    return messages, enums


@functools.cache
def types():
    rule = re.compile(r'layer_type:\s*"(\w+)",(?:\s*parameters:\s*Some\("(\w+)"\))?')
    found = sorted(found for source in (CRATE / "src/layers").glob("*.rs")
                   for found in rule.findall(source.read_text()))
    return dict(found).items()


def field_of(message, name, kind=""):
    fields = [field for field in schema()[0][message] if field[1] == name]
    exact = [field for field in fields if kind in field[3]] or [f for f in fields if not f[3]]
    return (exact or fields)[0][::2]


# --- a net is a list of (field, value); a value is a number, a text, an Enum or another net ----------


class Enum(str):
    """A word that a prototxt writes without quotes: the name of an enum's value, true, or false."""


def text(net):
    for name, value in net:
        if isinstance(value, list):
            yield f"{name} {{ {''.join(text(value))}}} "
        else:
            yield f"{name}: {value if isinstance(value, (int, float, Enum)) else repr(value)} "


def wire(message, net):
    kind = next((value for name, value in net if name == "type"), "")
    out = b""
    for name, value in net:
        at, form = field_of(message, name, kind)
        if isinstance(value, list):
            out += data(at, wire(form, value))
        elif isinstance(value, Enum):
            out += number(at, value == "true" if form == "bool" else schema()[1][form][value])
        elif form in ("float", "double"):
            out += fixed32(at, value)
        else:
            out += data(at, value) if isinstance(value, str) else number(at, value)
    return out


# --- nets -------------------------------------------------------------------------------------------

IMAGE, BOXES = [2, 4, 8, 8], [3, 5]
INPUTS = [field for name, dims in (("d", IMAGE), ("e", IMAGE), ("r", BOXES))
          for field in (("input", name), ("input_shape", [("dim", dim) for dim in dims]))]
SHAPE = [("dim", 2), ("dim", -1)]
NEEDED = {"num_output": [3], "kernel_size": [2], "pyramid_height": [2], "stride": [1], "pool_size": [4],
          "order": [0, 2, 3, 1], "min_size": [3], "input_dim": [9], "pooled_w": [2], "pooled_h": [2],
          "output_dim": [1], "group_size": [2], "num_classes": [2], "height": [4], "width": [4],
          "shape": [SHAPE], "spatial_scale": [0.5], "tiles": [2], "group": [1], "scale": [2]}
BOUNDS = {"axis": [len(IMAGE), -len(IMAGE) - 1]}
BOTTOMS = {"Axpy": "bde", "Eltwise": "de", "Concat": "de", "Crop": "de", "ROIPooling": "dr",
           "PSROIPooling": "dr", "PriorBox": "de", "BatchReindex": "di", "LSTM": "tc", "RNN": "tc",
           "DetectionOutput": "xyz", "Unpooling": "de"}


def values(form):
    messages, enums = schema()
    if form in enums:
        return [Enum(name) for name in enums[form]]
    if form in messages:
        fields = [(name, value) for _, name, kind, _ in messages[form] if kind not in messages
                  for value in values(kind)[:1]]
        return [fields[:3]]
    return {"bool": [Enum("true"), Enum("false")], "float": [0.5, -2.0], "string": ["xavier"],
            "bytes": ["b"]}.get(form, [1, 2, 0])


def variants(message):
    fields = schema()[0][message]
    base = [(name, value) for name in dict.fromkeys(name for _, name, _, _ in fields)
            for value in NEEDED.get(name, [])]
    yield base
    for _, name, form, _ in fields:
        for value in values(form) + BOUNDS.get(name, []):
            yield [field for field in base if field[0] != name] + [(name, value)]


def parameters(layer, kind, name):
    guess = name or re.sub(r"(?<=[a-z])(?=[A-Z])|3D$|_LOSS$", "_", kind).strip("_").lower() + "_param"
    known = [field[1] for field in schema()[0][layer]]
    guess = guess if guess in known else guess.replace("_", "", guess.count("_") - 1)
    return (guess, field_of(layer, guess, kind)[1]) if guess in known else (None, None)


def layer(kind, bottoms, fields):
    return [("name", "l"), ("type", kind), *(("bottom", bottom) for bottom in bottoms), ("top", "t"),
            *fields]


V0_TYPES = ["conv", "pool", "lrn", "innerproduct", "relu", "dropout", "data", "images", "window_data",
            "hdf5_data", "hdf5_output", "concat", "im2col", "softmax_loss", "padding", "unknown"]


def nets():
    for kind, name in types():
        bottoms = BOTTOMS.get(kind, "d")
        field, message = parameters("LayerParameter", kind, name)
        for variant in variants(message) if field else [[]]:
            fields = [(field, variant)] if field else []
            yield kind, [*INPUTS, ("layer", layer(kind, bottoms, fields))]
    for kind in schema()[1]["V1LayerParameter.LayerType"]:
        field, message = parameters("V1LayerParameter", kind, None)
        fields = [(field, next(variants(message)))] if field else []
        yield f"v1-{kind}", [*INPUTS, ("layers", layer(Enum(kind), "d", fields))]
    messages = schema()[0]
    fields = [(name, values(form)[0]) for _, name, form, _ in messages["V0LayerParameter"]
              if name not in ("name", "type")]
    for kind in V0_TYPES:
        inner = [("name", "l"), ("type", kind), *fields]
        yield f"v0-{kind}", [*INPUTS, ("layers", [("layer", inner), ("bottom", "d"), ("top", "t")])]


def seeds():
    for at, (name, net) in enumerate(nets()):
        yield "prototxt", f"{at:04}-{name}", "".join(text(net)).encode()
        yield "net_of_model", f"{at:04}-{name}", wire("NetParameter", net)


def words():
    messages, enums = schema()
    names = {f"{name} {'{ ' if form in messages else ': '}"
             for fields in messages.values() for _, name, form, _ in fields}
    names |= {f"{name} " for values in enums.values() for name in values}
    names |= {f"'{name}' " for name, _ in types()}
    yield from (("prototxt", word.encode()) for word in [*sorted(names), *TEXT])
    yield from (("net_of_model", data(2, name)) for name, _ in types())
