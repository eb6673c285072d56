"""Compares `syncblob prototxt --upgrade` with Caffe's own upgrade_net_proto_text.

    upgrade.py PROGRAM CAFFE SYNCBLOB NETS

PROGRAM is Caffe's tool, CAFFE the folder of its sources, SYNCBLOB the command, NETS a folder of
prototxts. The results must be equal messages, and syncblob must refuse the nets that Caffe refuses.
"""

import difflib
import pathlib
import random
import subprocess
import sys
import tempfile

from google.protobuf import text_format

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/users/golden"))
from caffe_messages import Messages, read_descriptor  # noqa: E402

V0_TYPES = """accuracy bnll concat conv data dropout euclidean_loss flatten hdf5_data hdf5_output
    im2col images infogain_loss innerproduct lrn multinomial_logistic_loss pool relu sigmoid softmax
    softmax_loss split tanh window_data""".split()
# Caffe drops these fields of a V1 layer. syncblob keeps batch_norm_param.
FORGOTTEN = {"batch_norm_param", "bn_param"}
NET_FIELDS = ("name", "force_backward", "state", "debug_info")


CASES = 300
# Caffe's schema cannot parse the net.
UNKNOWN = object()


class Draw:
    def __init__(self, seed, messages):
        self.random = random.Random(seed)
        self.messages = messages

    def chance(self, part):
        return self.random.random() < part

    def net(self):
        net = self.any_net()
        while not net.IsInitialized():
            net = self.any_net()
        return net

    def any_net(self):
        net = self.messages.NetParameter()
        for name in NET_FIELDS:
            if self.chance(0.2):
                self.set(net, net.DESCRIPTOR.fields_by_name[name])
        self.add_inputs(net)
        generation = self.random.choice((self.v0_layers, self.v1_layers, self.current_layers))
        generation(net)
        return net

    def add_inputs(self, net):
        number = self.random.choice((1, 1, 2))
        net.input.extend(("data", "more")[:number])
        kind = self.random.choice(("dims", "shapes", "none"))
        for _ in range(number):
            if kind == "dims":
                net.input_dim.extend(self.random.randint(1, 9) for _ in range(4))
            elif kind == "shapes":
                net.input_shape.add().dim.extend(
                    self.random.randint(1, 9) for _ in range(self.random.randint(0, 5)))

    def v0_layers(self, net):
        blobs = ["data"]
        for index in range(self.random.randint(1, 5)):
            pads = self.chance(0.2)
            if pads:
                connection = net.layers.add(bottom=[self.random.choice(blobs)], top=[f"pad{index}"])
                connection.layer.name = connection.layer.type = "padding"
                connection.layer.pad = self.random.randint(0, 3)
            layer = net.layers.add()
            self.connect(layer, blobs, index)
            if pads and self.chance(0.9):
                layer.bottom[:] = [f"pad{index}"]
            layer.layer.name = f"layer{index}"
            wanted = ("conv", "pool") if pads and self.chance(0.9) else V0_TYPES
            layer.layer.type = self.random.choice(wanted) if self.chance(0.98) else "unknown"
            # Caffe drops a field that does not belong to the layer's type, and reports the field.
            self.fill(layer.layer, self.random.choice((2, 5)), {"name", "type", "new_num"})

    def v1_layers(self, net):
        blobs = ["data"]
        for index in range(self.random.randint(1, 5)):
            layer = net.layers.add(name=f"layer{index}")
            self.connect(layer, blobs, index)
            self.set(layer, layer.DESCRIPTOR.fields_by_name["type"])
            self.fill(layer, self.random.choice((2, 5)), {"name", "type", "layer", *FORGOTTEN})
            for parameters in ("data_param", "image_data_param", "window_data_param"):
                if self.chance(0.1):
                    layer.type = layer.LayerType.Value(parameters[:-6].upper())
                    self.fill(getattr(layer, parameters), 3, ())

    def current_layers(self, net):
        if self.chance(0.3):
            net.ClearField("input")
        for index in range(self.random.randint(0, 3)):
            layer = net.layer.add(name=f"layer{index}", type=self.random.choice(("BatchNorm", "ReLU")))
            for _ in range(self.random.choice((0, 2, 3, 3, 4))):
                self.fill(layer.param.add(), 2, ())
            self.fill(layer, 1, {"name", "type"})

    def connect(self, layer, blobs, index):
        layer.bottom.extend(self.random.choice(blobs) for _ in range(self.random.choice((1, 1, 1, 0, 2))))
        layer.top.extend(f"blob{index}_{top}" for top in range(self.random.choice((1, 1, 1, 0, 2))))
        blobs.extend(layer.top)

    def fill(self, message, number, without):
        fields = [field for field in message.DESCRIPTOR.fields if field.name not in without]
        for field in self.random.sample(fields, min(number, len(fields))):
            self.set(message, field)

    def set(self, message, field):
        repeated = hasattr(getattr(message, field.name), "append")
        for _ in range(self.random.randint(1, 3) if repeated else 1):
            if field.message_type:
                inner = getattr(message, field.name)
                inner = inner.add() if repeated else inner
                inner.SetInParent()
                self.fill(inner, self.random.randint(0, 3), ())
            elif repeated:
                getattr(message, field.name).append(self.value(field))
            else:
                setattr(message, field.name, self.value(field))

    def value(self, field):
        if field.enum_type:
            return self.random.choice(field.enum_type.values).number
        return {
            field.CPPTYPE_BOOL: self.chance(0.5),
            field.CPPTYPE_STRING: self.text(field),
            field.CPPTYPE_FLOAT: self.random.choice((0, 1, 0.5, -2, 1e-9, 0.1)),
            field.CPPTYPE_DOUBLE: self.random.choice((0, 1, 0.5, -2, 1e-9, 0.1)),
        }.get(field.cpp_type, self.random.choice((0, 1, 2, 3, 7, 100000)))

    def text(self, field):
        text = self.random.choice(("a", "b/c", "", "it's", 'a "b"', "z\\", "\u00e9"))
        return text.encode() if field.type == field.TYPE_BYTES else text


def of_caffe(program, net, folder):
    """Returns (text, whether Caffe converted the whole net). The text of a refused net is None."""
    out = folder / "caffe.prototxt"
    out.unlink(missing_ok=True)
    ran = subprocess.run([program, net, out], capture_output=True)
    if ran.returncode not in (0, 1):
        return UNKNOWN if ran.returncode == 2 else None, False
    return out.read_text(), ran.returncode == 0


def of_syncblob(command, net):
    ran = subprocess.run([command, "prototxt", "--upgrade", net], capture_output=True, text=True)
    return (None, False) if ran.returncode else (ran.stdout, not ran.stderr)


def difference(caffe, ours, messages):
    (caffe, is_whole), (ours, without_notes) = caffe, ours
    if caffe is UNKNOWN:
        return None
    if caffe is None or ours is None:
        return None if caffe == ours else f"refused by {'Caffe' if caffe is None else 'syncblob'} alone"
    try:
        nets = [text_format.Parse(text, messages.NetParameter()) for text in (caffe, ours)]
    except text_format.ParseError as error:
        return f"not Caffe's message: {error}"
    if nets[0] != nets[1]:
        lines = [text_format.MessageToString(net).splitlines() for net in nets]
        return "\n".join(["not the same", *difflib.unified_diff(*lines, "Caffe", "syncblob", lineterm="")])
    # Caffe drops fields that only V1 layers have, and does not report them.
    return None if is_whole or not without_notes else "only Caffe reports that it dropped a field"


def main():
    program, sources, syncblob, nets = sys.argv[1:]
    messages = Messages(read_descriptor(pathlib.Path(sources, "src/caffe/proto/caffe.proto")))
    failed = refused = count = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        nets = sorted(pathlib.Path(nets).glob("*.prototxt"))
        for case in range(CASES):
            nets.append(folder / f"case_{case}.prototxt")
            nets[-1].write_text(text_format.MessageToString(Draw(case, messages).net()))
        for net in nets:
            caffe = of_caffe(program, net, folder)
            found = difference(caffe, of_syncblob(syncblob, net), messages)
            refused += caffe[0] is None
            count += caffe[0] is not UNKNOWN
            if found:
                failed += 1
                print(f"{net.name}: {found}\n{net.read_text() if net.parent == folder else ''}")
    print(f"{count} nets in Caffe's current form, {refused} refused, {failed} differ; "
          f"{len(nets) - count} of forks")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
