"""Layers with one bottom that compute each value independently."""


def in_place_or_not(draw, net, kind, values, top, **parameters):
    """Adds a layer that reads an input, or reads another layer's top, or changes another layer's top
    in place."""
    net.input("data", values)
    way = draw.choice(("plain", "plain", "in place", "above"))
    if way == "plain":
        net.layer(kind, "data", top, **parameters)
        return
    net.layer("Power", "data", "middle")
    net.layer(kind, "middle", "middle" if way == "in place" else top, **parameters)


def any_shape(draw, least_axes=1, most_axes=5):
    return draw.shape(draw.between(least_axes, most_axes), 6)


def axis_of(draw, axis, axes, default=1, percent=30, old=None):
    """Draws a field that numbers an axis from either end; a field for the default axis may be left out. `old`
    is the name of a field that counts only from the first axis."""
    if axis == default and not draw.chance(percent):
        return {}
    if old and draw.chance(30):
        return {old: axis}
    return {"axis": draw.choice((axis, axis - axes))}


def some(draw, **options):
    """Draws some of the options, each with one of its possible values."""
    return {name: draw.choice(values) for name, values in options.items() if draw.chance(70)}


def function(kind, deviation=1.0, **options):
    """Returns a function that draws a layer with some of these options as parameters."""
    def draw_case(draw, net):
        parameters = some(draw, **options)
        in_place_or_not(draw, net, kind, draw.numbers(any_shape(draw), deviation), kind.lower(),
                        **{f"{kind.lower()}_param": parameters})
    return draw_case


def prelu(draw, net):
    shape = any_shape(draw, 2, 4)
    shared = draw.chance(40)
    slopes = draw.numbers([] if shared else [shape[1]], 0.5)
    net.layer("Power", draw.numbers(shape), "middle")
    net.layer("PReLU", "middle", draw.choice(("prelu", "middle")), [slopes],
              prelu_param={"channel_shared": True} if shared else {})


def elu(draw, net):
    in_place_or_not(draw, net, "ELU", draw.numbers(any_shape(draw)), "elu",
                    elu_param=some(draw, alpha=(0.5, 1.7, 0, -0.3)))


def absval(draw, net):
    """Draws an AbsVal, which Caffe does not run in place."""
    net.layer("AbsVal", draw.numbers(any_shape(draw)), "absval")


def power(draw, net):
    parameters = some(draw, power=(1, 2, 3, 0, 0.5, -1, -0.75, 1.5), scale=(1, 0.5, -2, 0, 3),
                      shift=(0, 1, -0.5, 2.5))
    values = draw.numbers(any_shape(draw))
    if parameters.get("power", 1) not in (0, 1, 2, 3):  # such a power requires a positive base
        parameters["scale"] = abs(parameters.get("scale", 1))
        parameters["shift"] = abs(parameters.get("shift", 0))
        if not parameters["scale"]:
            parameters["shift"] += 1
        values = abs(values) + 0.25
    in_place_or_not(draw, net, "Power", values, "power", power_param=parameters)


def log(draw, net):
    parameters = some(draw, base=(2, 10, 0.5, -1), scale=(0.5, 3), shift=(1, 0.25))
    in_place_or_not(draw, net, "Log", draw.uniform(any_shape(draw), 0.25, 8), "log",
                    log_param=parameters)


TABLE = {
    "ReLU": (40, function("ReLU", negative_slope=(0.1, 0.25, 0, 1.5, -0.5))),
    "PReLU": (40, prelu),
    "ELU": (40, elu),
    "Sigmoid": (40, function("Sigmoid", 2.0)),
    "TanH": (40, function("TanH", 1.5)),
    "AbsVal": (40, absval),
    "BNLL": (40, function("BNLL", 3.0)),
    "Power": (60, power),
    "Exp": (40, function("Exp", base=(2, 10, 0.5, -1), scale=(0.5, -1, 0), shift=(1, -0.5))),
    "Log": (40, log),
    "Threshold": (40, function("Threshold", threshold=(0.5, -0.5, 0, 1))),
    "Dropout": (40, function("Dropout", dropout_ratio=(0.2, 0.5, 0.9))),
}
