"""Makes files with Google's protobuf, one for each mistake that a reader could make."""

import math
import random
import struct

NAN, INF = math.nan, math.inf
FLT_MAX, DBL_MAX = 3.4028234663852886e38, 1.7976931348623157e308
FLT_DENORMAL, DBL_DENORMAL = 2.0**-149, 5e-324


def made_files(messages):
    for name, blob in blobs(messages):
        yield f"blob, {name}", "blob", blob.SerializeToString()
    yield from merged(messages)
    yield "V0 net", "caffemodel", v0_net(messages).SerializeToString()
    yield "V1 net, a layer of every type", "caffemodel", v1_net(messages).SerializeToString()
    yield "current net", "caffemodel", current_net(messages).SerializeToString()
    yield "net without layers", "caffemodel", messages.NetParameter(name="empty").SerializeToString()
    yield "solver state", "solverstate", solver_state(messages).SerializeToString()
    yield "solver state, legacy", "solverstate", solver_state(messages, legacy=True).SerializeToString()


def shaped(messages, dims, **payload):
    return messages.BlobProto(shape=messages.BlobShape(dim=dims), **payload)


def legacy(messages, dims, **payload):
    num, channels, height, width = dims
    return messages.BlobProto(num=num, channels=channels, height=height, width=width, **payload)


def normal(count, scale=1.0, seed=1):
    generator = random.Random(seed)
    return [generator.gauss(0, scale) for _ in range(count)]


def blobs(messages):
    raw_type = messages.BlobProto.DESCRIPTOR.enum_types_by_name["RawType"].values_by_name

    def raw(side, kind, code, *values):
        """Returns fields with NVCaffe's raw bytes."""
        return {f"raw_{side}_type": raw_type[kind].number,
                f"raw_{side}": struct.pack(f"<{len(values)}{code}", *values)}

    both = legacy(messages, (1, 1, 1, 2), data=[1, 2])
    both.shape.dim.extend([7, 7])
    yield "floats", shaped(messages, [2, 4], data=[NAN, INF, -INF, FLT_MAX, -FLT_MAX, FLT_DENORMAL, -0.0, 0.1])
    yield "doubles and diff", shaped(messages, [5], double_data=[NAN, -INF, DBL_MAX, DBL_DENORMAL, 0.1],
                                     double_diff=normal(5, 1e200))
    yield "legacy dimensions and diff", legacy(messages, (2, 1, 3, 1), data=normal(6), diff=normal(6, seed=2))
    yield "legacy dimensions beside a shape", both
    yield "double data beside float data", shaped(messages, [2], data=[1, 2], double_data=[0.1, 0.2])
    yield "neither shape nor dimensions", messages.BlobProto(data=[4.5])
    yield "a dimension of 0", shaped(messages, [3, 0, 2])
    yield "32 axes", shaped(messages, [1] * 31 + [2], data=[1, 2])
    yield "raw halves with a diff of integers", shaped(
        messages, [2], **raw("data", "FLOAT16", "e", 6e-8, 65504), **raw("diff", "INT", "i", 16777217, -1))
    yield "raw unsigned integers", legacy(messages, (1, 1, 2, 1), **raw("data", "UINT", "I", 7, 0xffffffff))
    yield "raw data beside float data", shaped(messages, [1], data=[3], **raw("data", "FLOAT16", "e", 4))


def merged(messages):
    """Yields concatenated messages, which are a message with the values of all of them, and the last bytes."""
    for name, *parts in (
            ("data in two pieces", {"data": [1, 2]}, {"data": [3, 4]}),
            ("raw data twice", {"raw_data_type": 3, "raw_data": bytes(8)},
             {"raw_data_type": 2, "raw_data": b"\0\x3c\0\x40\0\x3c\0\x40"})):
        message = shaped(messages, [4]).SerializeToString()
        for part in parts:
            message += messages.BlobProto(**part).SerializeToString()
        yield f"blob, {name}", "blob", message


def v0_net(messages):
    net = messages.NetParameter(name="V0")
    for name, layer_type, values in (("conv1", "conv", [1, 2]), ("relu1", "relu", []), ("ip", "innerproduct", [3])):
        layer = net.layers.add().layer
        layer.name, layer.type = name, layer_type
        if values:
            layer.blobs.append(legacy(messages, (1, 1, 1, len(values)), data=values))
    return net


def v1_net(messages):
    net = messages.NetParameter(name="V1")
    types = messages.V1LayerParameter.DESCRIPTOR.fields_by_name["type"].enum_type.values
    for number, value in enumerate(types):
        layer = net.layers.add(name=f"layer {number}", type=value.number)
        for axis in range(number % 3):
            layer.blobs.append(legacy(messages, (1, 1, axis + 1, 2), data=normal(2 * axis + 2)))
    return net


def current_net(messages):
    net = messages.NetParameter(name="\x1b[2J\u202e \"net\" \\ \u91cd\u307f\n")
    net.layer.add(name="data", type="Input")
    conv = net.layer.add(name="conv/1", type="Convolution", bottom=["data"], top=["conv/1"])
    conv.blobs.append(shaped(messages, [2, 3, 5, 5], data=normal(150)))
    conv.blobs.append(shaped(messages, [2], data=normal(2), diff=normal(2, seed=3)))
    conv.convolution_param.num_output = 2
    net.layer.add()
    half = net.layer.add(name="half", type="InnerProduct")
    half.blobs.append(shaped(messages, [2, 1], raw_data_type=2, raw_data=b"\0\x3c\0\xc0"))
    net.layer.add(name="conv/1", type="no such type").blobs.append(shaped(messages, [1], double_data=[0.1]))
    return net


def solver_state(messages, legacy=False):
    state = messages.SolverState(iter=4000, learned_net="a.caffemodel", current_step=2)
    for count in (3, 1, 4):
        make = globals()["legacy"] if legacy else shaped
        state.history.append(make(messages, (1, 1, 1, count), data=normal(count, 1e-6)))
    return state
