"""What `syncblob info --json` should say about a file, found independently:
the file is decoded by Google's protobuf, and Caffe's rules are applied here.
"""

import hashlib
import math
import struct

MESSAGE_OF = {"blob": "BlobProto", "caffemodel": "NetParameter", "solverstate": "SolverState"}


def expected(messages, data, file_format):
    """The object that the program should print, without "schema" and "file"."""
    message = getattr(messages, MESSAGE_OF[file_format]).FromString(data)
    info = {"format": file_format}
    if file_format == "blob":
        info["blob"] = blob_info(message)
    elif file_format == "solverstate":
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
    doubles = len(blob.double_data) > 0 or (len(blob.data) == 0 and len(blob.double_diff) > 0)
    data = blob.double_data if len(blob.double_data) else blob.data
    diff = blob.double_diff if len(blob.double_diff) else blob.diff
    return {
        "shape": shape,
        "count": math.prod(shape),
        "dtype": "f64" if doubles else "f32",
        "data": stats(data, doubles),
        "diff": stats(diff, doubles),
    }


def shape_of(blob):
    legacy = ("num", "channels", "height", "width")
    if any(blob.HasField(name) for name in legacy):
        return [getattr(blob, name) for name in legacy]
    return list(blob.shape.dim)


def stats(values, doubles):
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
        "sha256": digest(values, "d" if doubles else "f"),
    }


def total(values):
    """The exactly rounded sum; None beyond the range of a double."""
    try:
        result = math.fsum(values)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def digest(values, code):
    return hashlib.sha256(struct.pack(f"<{len(values)}{code}", *values)).hexdigest()
