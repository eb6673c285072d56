"""Connections between layers: inputs, layers in place, blobs that several layers read."""

from nets import counted


def input_layer(draw, net):
    """Draws an input that is declared in one of several ways."""
    shape = draw.shape(4)
    way = draw.choice(("input_dim", "input_shape", "layer", "two tops", "parameter twice"))
    net.inputs["data"] = draw.numbers(shape)
    if way == "input_dim":
        net.head = {"input": "data", "input_dim": shape}
    elif way == "input_shape":
        net.head = {"input": "data", "input_shape": {"dim": shape}}
    elif way == "layer":
        net.messages.append({"name": "in", "type": "Input", "top": "data",
                             "input_param": {"shape": {"dim": shape}}})
    else:
        net.inputs["other"] = draw.numbers(shape)
        shapes = [{"dim": shape}] * (2 if way == "parameter twice" else 1)
        net.messages.append({"name": "in", "type": "Input", "top": ["data", "other"],
                             "input_param": {"shape": shapes}})
        net.layer("Power", "other", "other_out", power_param={"scale": 3})
    net.layer("Power", "data", "out", power_param={"shift": 1})


def in_place_on_input(draw, net):
    """Draws a layer that works in place on an input; in ONNX the output cannot have the input's
    name."""
    net.names_differ = True
    net.layer("ReLU", draw.numbers(draw.shape(4)), "data")
    if draw.chance(50):
        net.layer("Power", "data", "data", power_param={"scale": 2})


def chain_in_place(draw, net):
    """Draws several layers that work in place on one blob, then layers that read the blob."""
    net.layer("Power", draw.numbers(draw.shape(4)), "x", power_param={"scale": 2})
    for kind in draw.sample(("ReLU", "TanH", "Sigmoid", "Dropout"))[:draw.between(1, 4)]:
        net.layer(kind, "x", "x")
    for number in range(draw.between(0, 2)):
        net.layer("Power", "x", f"y{number}", power_param={"shift": number + 1})


def shared(draw, net):
    """Draws a blob with several readers, one of which may be a Silence."""
    net.layer("Power", draw.numbers(draw.shape(4)), "x")
    net.layer("TanH", "x", "a")
    net.layer("Eltwise", ["x", "a"], "b", eltwise_param={"operation": draw.choice(("SUM", "PROD", "MAX"))})
    if draw.chance(50):
        net.layer("Silence", ["data", "x"], [])
    if draw.chance(50):
        net.layer("Eltwise", ["b", "b"], "c")


def phases(draw, net):
    """Draws layers that each run in only one phase and have the same top."""
    net.layer("Power", counted(draw.shape(3)), "x", name="for_train", include={"phase": "TRAIN"},
              power_param={"scale": 7})
    rule = draw.choice(({"include": {"phase": "TEST"}}, {"exclude": {"phase": "TRAIN"}}))
    net.layer("Power", "data", "x", name="for_test", **rule, power_param={"scale": 2})
    net.layer("Power", "x", "y", power_param={"shift": 1})


def parameter(draw, net):
    shape = draw.shape(draw.between(1, 4))
    net.input("data", draw.numbers(shape))
    net.layer("Parameter", [], "weight", [draw.numbers(shape)], parameter_param={"shape": {"dim": shape}})
    net.layer("Eltwise", ["data", "weight"], "out")


TABLE = {
    "Input": (40, input_layer),
    "InPlaceOnInput": (10, in_place_on_input),
    "InPlace": (40, chain_in_place),
    "SharedBlob": (40, shared),
    "Phases": (10, phases),
    "Parameter": (40, parameter),
}
