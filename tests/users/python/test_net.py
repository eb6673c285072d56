"""Tests nets: their attributes, their weights for PyTorch, and their conversion."""
import os
import pathlib
import unittest

import files
import numpy as np
import syncblob
from syncblob import Net

TEXT = files.PROTOTXT


class Reading(files.InFolder):
    def test_the_properties_of_a_net(self):
        net, model = Net(TEXT), syncblob.load(files.carrying())
        self.assertEqual((net.name, net.inputs, net.outputs, net.warnings, repr(net)),
                         ("small", ("x",), ("z",), (), "<syncblob.Net 'small', 6 layers>"))
        self.assertEqual(net.shapes,
                         {"x": (2, 3, 4, 4), "a": (2, 2, 4, 4), "y": (2, 5), "z": (2, 5)})
        wanted = [
            ("first", "Convolution", "x", "a",
             {"convolution_param": {"num_output": 2, "kernel_size": [1], "engine": "CAFFE"}}),
            ("second", "BatchNorm", "a", "a", {"batch_norm_param": {"eps": 0.001}}),
            ("third", "Scale", "a", "a", {"scale_param": {"bias_term": True}}),
            ("act", "ReLU", "a", "a", {"relu_param": {"negative_slope": 0.1}}),
            ("fc", "InnerProduct", "a", "y", {"inner_product_param": {"num_output": 5, "transpose": True}}),
            ("alone", "BatchNorm", "y", "z", {})]
        for layers in (net.layers, [model[layer.name] for layer in net.layers]):
            self.assertEqual([(layer.name, layer.type, *layer.bottoms, *layer.tops, layer.params)
                              for layer in layers], wanted)
        self.assertEqual(repr(net.layers[0]), "<syncblob.NetLayer 'first' 'Convolution'>")
        layer = files.made()["conv_1"]
        self.assertEqual((layer.bottoms, layer.tops, layer.params), ((), (), {}))
        content = files.field(2, files.field(4, b"c") + files.field(2, b"x") + files.field(3, b"y")
                              + b"\x28\x04" + files.field(10, b"\x08\x02"))
        (layer,) = syncblob.load(content, format="caffemodel").layers
        self.assertEqual((layer.name, layer.type, layer.bottoms, layer.tops, layer.params),
                         ("c", "CONVOLUTION", ("x",), ("y",),
                          {"convolution_param": {"num_output": 2}}))

    def test_sources_of_a_net(self):
        content = files.carrying()
        text, weights = pathlib.Path("a.prototxt"), pathlib.Path("a.caffemodel")
        text.write_bytes(TEXT)
        weights.write_bytes(content)
        wanted = Net(TEXT, content).to_onnx()
        for prototxt in (text, str(text), bytearray(TEXT), np.frombuffer(TEXT, "uint8")):
            for model in (weights, str(weights), bytearray(content), syncblob.load(content)):
                found, paths = Net(prototxt, model).to_onnx(), (text, str(text), weights, str(weights))
                self.assertIn(wanted[64:], found)  # the graph
                for key, source in ((b"caffe.prototxt", prototxt), (b"caffe.model", model)):
                    known = any(source is path for path in paths)
                    self.assertEqual((key in found, key + b".blake3" in found), (known, known))
        alone = Net(None, content, inputs={"x": (2, 3, 4, 4)})
        self.assertEqual((alone.to_onnx(), alone.shapes), (wanted, Net(TEXT).shapes))

    def test_options(self):
        self.assertEqual(Net(TEXT, batch=7).shapes["y"], (7, 5))
        self.assertEqual(Net(TEXT, inputs={"x": [1, 3, 8, 2]}).shapes["a"], (1, 2, 8, 2))
        ruled = b"""input: "x" input_shape { dim: 1 }
            layer { name: "a" type: "ReLU" bottom: "x" top: "a" include { min_level: 2 } }
            layer { name: "b" type: "ReLU" bottom: "x" top: "b" include { stage: "s" } }"""
        loss = b"""layer { name: "d" type: "Data" top: "label" } layer {
            name: "loss" type: "SoftmaxWithLoss" bottom: "z" bottom: "label" top: "l" }"""
        self.assertIn("layer 'loss' (SoftmaxWithLoss)", "".join(Net(TEXT + loss).warnings))
        for options, outputs in (({}, ("x",)), ({"level": 2}, ("a",)), ({"stages": ["s"]}, ("b",))):
            self.assertEqual(Net(ruled, **options).outputs or ("x",), outputs)

    def test_a_net_has_its_model_as_it_was(self):
        model = syncblob.load(files.carrying())
        net = Net(TEXT, model)
        before = net.to_onnx()
        model["first"][0] = np.zeros((2, 3, 1, 1), "float32")
        self.assertEqual(net.to_onnx(), before)
        self.assertNotEqual(Net(TEXT, model).to_onnx(), before)
        self.assertFalse(np.asarray(model["first"][0]).any())

    def test_values_of_parameters(self):
        text = b"""layer { name: "l" type: "Pooling" bottom: "s" top: "t"
            param { lr_mult: 0.1 } param { name: "p" }
            mine_param { a: 1 } loss_weight: 1e-30 pooling_param { pool: AVE } }
            layer { name: "r" type: "ReLU" bottom: "t" top: "u" phase: TEST mine: 3 mine: "x" }"""
        first, second = Net(text, inputs={"s": (1,)}).layers
        self.assertEqual(first.params, {
            "param": [{"lr_mult": 0.1}, {"name": "p"}], "loss_weight": [1e-30],
            "pooling_param": {"pool": "AVE"}, "mine_param": [b"{ a: 1 }"]})
        self.assertEqual(second.params, {"phase": "TEST", "mine": [b": 3", b': "x"']})
        more = files.field(7777, b"\x01") + files.field(6, b"\x1d\xcd\xcc\xcc\x3d")
        model = syncblob.load(files.carrying() + files.layer("l", "Mine", [], [], more=more))
        self.assertEqual(model["l"].params, {"7777": [b"\x01"], "param": [{"lr_mult": 0.1}]})


class StateDict(unittest.TestCase):
    def test_names_shapes_and_values_are_pytorchs(self):
        content = files.carrying()
        model, arrays = syncblob.load(content), Net(TEXT, content).state_dict()
        first, second, third, fc, alone = ([np.asarray(blob) for blob in model[name]] for name in (
            "first", "second", "third", "fc", "alone"))
        wanted = {
            "first.weight": first[0], "first.bias": first[1].reshape(2),
            "second.weight": third[0], "second.bias": third[1],
            "second.running_mean": second[0] / 0.5, "second.running_var": second[1] / 0.5,
            "fc.weight": fc[0].T, "fc.bias": fc[1], "alone.weight": np.ones(5),
            "alone.bias": np.zeros(5), "alone.running_mean": alone[0] / 0.5,
            "alone.running_var": alone[1] / 0.5}
        self.assertEqual(Net(TEXT).state_dict(), {})
        for found in (arrays, model.state_dict()):
            self.assertEqual(list(found), list(wanted))
            for name, array in found.items():
                self.assertTrue(array.flags.c_contiguous, name)
                np.testing.assert_array_equal(array, wanted[name], name)


class Converting(files.InFolder):
    def test_a_file_has_the_bytes(self):
        net = Net(TEXT, files.carrying())
        for name in ("a.onnx", os.fsencode("b.onnx"), pathlib.Path("c.onnx")):
            path = os.fsdecode(name)
            self.assertIsNone(net.to_onnx(path))
            self.assertEqual(pathlib.Path(path).read_bytes(), net.to_onnx())

    def test_a_failure_keeps_the_old_file(self):
        net = Net(TEXT + b'layer { name: "m" type: "Mine" bottom: "z" top: "m" }', files.carrying())
        path = pathlib.Path("a.onnx")
        path.write_bytes(b"old")
        with self.assertRaisesRegex(syncblob.UnsupportedError, r"^layer 'm' \(Mine\): "):
            net.to_onnx(path)
        self.assertEqual((path.read_bytes(), os.listdir()), (b"old", ["a.onnx"]))
        self.assertRaises(syncblob.MissingFileError, net.to_onnx, "none/a.onnx", outputs=["z"])
        self.assertRaises(syncblob.FileError, net.to_onnx, os.curdir, outputs=["z"])
        with self.assertRaisesRegex(syncblob.DataError, r"set the shape by shapes=\{'m': SHAPE\}"):
            net.to_onnx(custom=True)
        self.assertIn(b"Mine", net.to_onnx(custom=True, shapes={"m": (2, 5)}))

    def test_options_change_the_file(self):
        net = Net(TEXT, files.carrying())
        mean = syncblob.Blob((1, 3, 4, 4))
        found = {net.to_onnx(**options) for options in (
            {}, {"outputs": ["y"]}, {"batch": "n"}, {"fp16": True}, {"scale": 0.5},
            {"swap_rb": True}, {"mean": [1, 2, 3.5]}, {"mean": mean})}
        self.assertEqual(len(found), 8)
        self.assertEqual(net.to_onnx(outputs="y"), net.to_onnx(outputs=("y",)))
        self.assertEqual(net.to_onnx(mean=(1, 2, 3)), net.to_onnx(mean=np.arange(1, 4)))
        self.assertEqual(net.to_onnx(mean=mean), net.to_onnx(mean=mean.data[0]))

    def test_errors_describe_the_cause(self):
        content = files.carrying()
        without = TEXT.replace(b'name: "third"', b'name: "other"').replace(
            b"bias_term: true }", b'bias_term: true filler { type: "xavier" } }', 1)
        cases = (
            (syncblob.DataError, "^line 1, column 8: ", lambda: Net(b"layer {")),
            (syncblob.DataError, r"inputs=\{'q': SHAPE\}$",
             lambda: Net(b'layer { name: "a" type: "ReLU" bottom: "q" top: "a" }')),
            (syncblob.LimitError, "limit", lambda: Net(b" " * (1 << 25))),
            (syncblob.MissingFileError, "", lambda: Net("/none/a.prototxt")),
            (syncblob.MissingFileError, "", lambda: Net(TEXT, "/none/a.caffemodel")),
            (syncblob.DataError, "", lambda: Net(TEXT, b"<!DOCTYPE html>")),
            (syncblob.ArgumentError, "no input 'q'", lambda: Net(TEXT, inputs={"q": [1]})),
            (syncblob.ArgumentError, "", lambda: Net(None)),
            (syncblob.ArgumentError, "out of range", lambda: Net(TEXT, batch=1 << 70)),
            (syncblob.ArgumentError, "no blob 'q'", lambda: Net(TEXT, content).to_onnx(outputs="q")),
            (syncblob.ArgumentError, "mean", lambda: Net(TEXT, content).to_onnx(mean=[1])),
            (syncblob.ArgumentError, "mean", lambda: Net(TEXT, content).to_onnx(mean=np.ones(()))),
            (TypeError, "load_blob", lambda: Net(TEXT, content).to_onnx(mean="mean.binaryproto")),
            (syncblob.UnsupportedError, "^layer 'other'", lambda: Net(without, content).to_onnx()),
        )
        for error, words, call in cases:
            self.assertRaisesRegex(error, words, call)

    def test_an_error_names_the_file(self):
        path = pathlib.Path("a.prototxt")
        for code in ("SB_ERR_IO", "SB_ERR_MALFORMED"):
            with self.assertRaises(syncblob.Error) as caught:
                Net(path)
            self.assertEqual((caught.exception.filename, caught.exception.code), (str(path), code))
            path.write_bytes(b"layer {")
