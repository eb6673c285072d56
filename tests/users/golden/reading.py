"""Computes independently what `syncblob info --json` should print about a file: Google's protobuf
decodes the file, and this module applies Caffe's rules.
"""

import hashlib
import math
import struct
import typing

DTYPE_OF = {"d": "f64", "f": "f32", "e": "f16", "i": "i32", "I": "u32"}
RAW_CODES = "dfeiI"  # by NVCaffe's numbers
LEGACY = ("num", "channels", "height", "width")
MESSAGE_OF = {"blob": "BlobProto", "caffemodel": "NetParameter", "solverstate": "SolverState"}


def expected(messages, data, file_format):
    """Returns the object that the program should print, without "schema" and "file"."""
    message = getattr(messages, MESSAGE_OF[file_format]).FromString(data)
    info = {"format": file_format}
    if file_format == "blob":
        info["blob"] = blob_info(message)
    elif file_format == "solverstate":
        info["iter"] = message.iter
        info["current_step"] = message.current_step
        info["learned_net"] = message.learned_net
        info["history"] = [blob_info(blob) for blob in message.history]
    else:
        info["name"] = message.name
        info["layers"] = layers_info(message)
    return info


def layers_info(net):
    if net.layer:
        return [layer_info(layer, layer.type) for layer in net.layer]
    return [old_layer_info(layer) for layer in net.layers]


def old_layer_info(layer):
    if layer.HasField("layer"):  # V0: the whole layer is nested
        return layer_info(layer.layer, layer.layer.type)
    type_values = layer.DESCRIPTOR.fields_by_name["type"].enum_type.values_by_number
    return layer_info(layer, type_values[layer.type].name)


def layer_info(layer, type_name):
    blobs = [blob_info(blob) for blob in layer.blobs]
    return {"name": layer.name, "type": type_name, "blobs": blobs}


def blob_info(blob):
    shape = shape_of(blob)
    data, diff = payload(blob, "data"), payload(blob, "diff")
    return {
        "shape": shape,
        "count": math.prod(shape),
        "dtype": DTYPE_OF[(data if data.values else diff).code],
        "data": stats(data),
        "diff": stats(diff),
    }


class Payload(typing.NamedTuple):
    """Values, their type as a code of the module struct, and their stored bytes."""

    values: list
    code: str
    stored: bytes


def payload(blob, name):
    """Returns the payload: doubles if present, else floats, else NVCaffe's bytes."""
    raw = getattr(blob, f"raw_{name}")
    for values, code in ((getattr(blob, f"double_{name}"), "d"), (getattr(blob, name), "f")):
        if len(values) or (code == "f" and not raw):
            return Payload(list(values), code, struct.pack(f"<{len(values)}{code}", *values))
    code = RAW_CODES[getattr(blob, f"raw_{name}_type")]
    return Payload([value for (value,) in struct.iter_unpack(f"<{code}", raw)], code, raw)


def is_legacy(blob):
    return any(blob.HasField(name) for name in LEGACY)


def shape_of(blob):
    return [getattr(blob, name) for name in LEGACY] if is_legacy(blob) else list(blob.shape.dim)


def stats(found):
    values = found.values
    if not values:
        return None
    finite = [value for value in values if math.isfinite(value)]
    return {
        "sum": total(finite),
        "asum": total(map(abs, finite)),
        "sumsq": total(value * value for value in finite),
        "nonfinite": len(values) - len(finite),
        "min": min(finite, default=None),
        "max": max(finite, default=None),
        "sha256": hashlib.sha256(found.stored).hexdigest(),
    }


def total(values):
    """Returns the exactly rounded sum, or None if the sum exceeds the range of a double."""
    try:
        result = math.fsum(values)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None
