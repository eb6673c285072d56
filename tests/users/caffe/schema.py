"""Compares bindings/syncblob-net/schema/caffe.schema with the caffe.proto of Caffe's sources:
    schema.py CAFFE

The schema must have every field of a net's messages, and every value of their enums.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/users/golden"))
from caffe_messages import read_descriptor  # noqa: E402

SCHEMA = ROOT / "bindings/syncblob-net/schema/caffe.schema"
SHARED_ENUMS = ("Engine", "PoolMethod", "DimCheckMode")
# {name in this Caffe: name in the schema}
RENAMED = {"OldResizeParameter": "ResizeParameter", "ResizeParameter": "ResizeParameter.Layer"}
# The defaults of these fields differ between versions of Caffe (see caffe.schema).
OTHER_DEFAULTS = {
    "ConvolutionParameter.stride_h",
    "ConvolutionParameter.stride_w",
    "PriorBoxParameter.clip",
}


def read_proto(path):
    """Returns messages as {name: [(number, name, type, repeated, default)]} and enums as {name: [(number, name)]}."""
    messages, enums = {}, {}

    def read(scope, enum_types, message_types):
        for enum in enum_types:
            enums[scope + enum.name] = [(value.number, value.name) for value in enum.value]
        for message in message_types:
            name = scope + message.name
            messages[name] = [read_field(field) for field in message.field]
            read(f"{name}.", message.enum_type, message.nested_type)

    file = read_descriptor(path)
    read("", file.enum_type, file.message_type)
    return messages, enums


def read_field(field):
    kind = field.type_name.removeprefix(".caffe.") or field.Type.Name(field.type)[len("TYPE_"):].lower()
    default = field.default_value if field.HasField("default_value") else None
    return field.number, field.name, kind, field.label == field.LABEL_REPEATED, default


def read_schema(text):
    """In caffe.schema, the number of a field may repeat."""
    messages, enums, lines = {}, {}, None
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if words[:1] in (["message"], ["enum"]):
            lines = (messages if words[0] == "message" else enums).setdefault(words[1], [])
        elif len(words) == 2:
            lines.append((int(words[0]), words[1]))
        elif words:
            default = words[words.index("=") + 1] if "=" in words else None
            lines.append((int(words[0]), *words[1:3], "repeated" in words, default))
    return messages, enums


def schema_name(name):
    last = name.rsplit(".", 1)[-1]
    if "." in name and last in SHARED_ENUMS:
        return last
    outer, dot, inner = name.partition(".")
    renamed = RENAMED.get(outer, outer)
    return f"{outer.removeprefix('Old')}.{inner}" if dot else renamed


def same_default(ours, theirs):
    try:
        return float(ours) == float(theirs)
    except (TypeError, ValueError):
        return (ours or None) == (theirs or None)


def in_nets(messages, enums):
    found, rest = set(), ["NetParameter"]
    while rest:
        name = rest.pop()
        if name not in found and (name in messages or name in enums):
            found.add(name)
            rest += [kind for _, _, kind, *_ in messages.get(name, [])]
    return found


def differences(ours, theirs):
    (our_messages, our_enums), (messages, enums) = ours, theirs
    for name in sorted(in_nets(messages, enums)):
        target = schema_name(name)
        for value in enums.get(name, []):
            if value not in our_enums.get(target, []):
                yield f"enum {target}: {value[0]} {value[1]} is missing"
        for number, field, kind, repeated, default in messages.get(name, []):
            kind = schema_name(kind)
            lines = [line for line in our_messages.get(target, []) if line[:2] == (number, field)]
            lines = [line for line in lines if line[2] == kind and line[3] >= repeated]
            if not lines:
                yield f"{target}.{field}: no line '{number} {field} {kind}'"
            elif not any(same_default(line[4], default) for line in lines):
                if f"{target}.{field}" not in OTHER_DEFAULTS:
                    yield f"{target}.{field}: the default is {default}, not {lines[0][4]}"


def main():
    theirs = read_proto(pathlib.Path(sys.argv[1]) / "src/caffe/proto/caffe.proto")
    found = list(differences(read_schema(SCHEMA.read_text()), theirs))
    compared = sum(len(block.get(name, [])) for name in in_nets(*theirs) for block in theirs)
    print(f"caffe.schema: {compared} fields and values of Caffe's, {len(found)} differ")
    for line in found:
        print(f"    {line}")
    return 1 if found or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
