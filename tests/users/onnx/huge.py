"""A net with more weights than an ONNX file holds itself, nearly all of them zeros: a file with holes."""

import numpy

import nets

WIDTH = 22820  # its square is the number of weights
STEP = 997     # of the rows that have a weight that is not 0, on the diagonal
TEXT = f"""layer {{ name: "in" type: "Input" top: "data" input_param {{ shape {{ dim: 1 dim: {WIDTH} }} }} }}
layer {{ name: "fc" type: "InnerProduct" bottom: "data" top: "out"
  inner_product_param {{ num_output: {WIDTH} bias_term: false }} }}
"""


def key(number, size):
    """Before a field's bytes."""
    return nets.varint(number << 3 | 2) + nets.varint(size)


def write_model(path):
    """Of each STEP-th row the weight on the diagonal is the row's number and 1."""
    size = 4 * WIDTH * WIDTH
    data, dims = key(5, size), nets.field(7, nets.field(1, 2 * nets.varint(WIDTH)))
    blob = key(7, len(data) + size + len(dims)) + data
    names = nets.field(1, b"fc") + nets.field(2, b"InnerProduct")
    layer = key(100, len(names) + len(blob) + size + len(dims)) + names + blob
    with path.open("wb") as file:
        file.write(layer)
        for row in range(0, WIDTH, STEP):
            file.seek(len(layer) + 4 * row * (WIDTH + 1))
            file.write(numpy.float32(row + 1).tobytes())
        file.seek(len(layer) + size)
        file.write(dims)


def outputs():
    """Of an input of ones."""
    wanted = numpy.zeros((1, WIDTH), numpy.float32)
    wanted[0, ::STEP] = numpy.arange(0, WIDTH, STEP) + 1
    return {"out": wanted}
