"""Tests models as mappings of layers: lazy loads, changes, saves."""
import _thread
import collections.abc
import copy
import functools
import importlib.util
import io
import mmap
import operator
import os
import pathlib
import pickle
import signal
import sys
import time
import types
import unittest
import unittest.mock

import files
import numpy as np
import syncblob


class Looking(files.InFolder):
    def test_a_model_is_a_mapping_of_its_layers(self):
        model = files.made()
        names = ["data", "conv_1", "bn_1", "bn_0", "scale_1", "conv_1#2", "#6", "lstm"]
        self.assertIsInstance(model, collections.abc.Mapping)
        self.assertEqual((len(model), list(model), list(model.keys())), (8, names, names))
        self.assertEqual(model.keys() & {"lstm", "nothing"}, {"lstm"})
        self.assertIsInstance(model.items(), collections.abc.ItemsView)
        self.assertEqual([layer.name for layer in model.values()],
                         [layer.name for layer in model.layers])
        self.assertEqual([(name, layer.index) for name, layer in model.items()],
                         [(name, i) for i, name in enumerate(names)])
        self.assertEqual((model["conv_1#2"].name, model["#6"].name), ("conv_1", ""))
        self.assertTrue("lstm" in model and "nothing" not in model and 3 not in model)
        self.assertEqual((model.get("nothing"), model.get("nothing", 5), model.get("bn_1").type),
                         (None, 5, "BatchNorm"))
        self.assertEqual((model.name, model.format), ("made", "caffemodel"))
        with self.assertRaises(KeyError):
            model["nothing"]

    def test_a_layer_has_its_blobs_by_their_numbers(self):
        layer, shapes = files.made()["conv_1"], [(4, 3, 2, 2), (4,)]
        self.assertEqual((layer.name, layer.type, layer.index, len(layer)),
                         ("conv_1", "Convolution", 1, 2))
        for blobs in (layer, layer.blobs, reversed([*reversed(layer)]), (layer[-2], layer[-1])):
            self.assertEqual([blob.shape for blob in blobs], shapes)
        for index in (2, -3, 10**40, -10**40):
            with self.assertRaises(IndexError):
                layer[index]
        self.assertEqual((layer[1:], layer[::-1], layer[5:]), ((layer[1],), layer.blobs[::-1], ()))
        # A layer is not a Sequence, because its `index` is a number, not a method.
        self.assertNotIsInstance(layer, collections.abc.Sequence)
        with self.assertRaises(TypeError):
            layer[0:1] = [1.0]

    def test_stored_blobs_of_one_place_are_equal(self):
        model = files.made()
        layer = model["conv_1"]
        self.assertEqual((layer, layer[0]), (model["conv_1"], model["conv_1"][0]))
        self.assertEqual(len({layer[0], layer[1], layer[-1], layer, model["conv_1"]}), 3)
        self.assertIn(layer[1], layer)
        for other in (layer[1], files.made()["conv_1"][0], None, 3):
            self.assertNotEqual(layer[0], other)
        for other in (model["bn_1"], files.made()["conv_1"]):
            self.assertNotEqual(layer, other)
        self.assertTrue((np.asarray(layer[0]) == layer[0]).all())
        self.assertTrue((layer[0] == np.asarray(layer[0])).all())

    def test_a_stored_blob_becomes_an_array_on_request(self):
        model = files.made()
        blob = model["conv_1"][0]
        self.assertEqual((blob.shape, blob.ndim, blob.size, blob.dtype, blob.has_diff),
                         ((4, 3, 2, 2), 4, 48, "float32", False))
        array = np.asarray(blob)
        self.assertEqual((array.shape, array.dtype), ((4, 3, 2, 2), np.float32))
        for other in (blob[...], np.from_dlpack(blob), blob.load().data, np.array(blob)):
            self.assertTrue((other == array).all() and not np.shares_memory(other, array))
        self.assertTrue((blob[1:, 0] == array[1:, 0]).all())
        self.assertEqual([part.tolist() for part in blob], array.tolist())
        array[...] = 0
        self.assertTrue(np.asarray(blob).any(), "the array shares the blob's values")
        self.assertEqual(model["#6"][0].dtype, "float64")
        self.assertEqual(blob.load("float64").dtype, "float64")
        self.assertEqual(blob.load(device="sim:0").device, "sim:0")
        self.assertRaises(TypeError, blob.load, "bfloat16")

    def test_every_source_gives_the_same(self):
        content = files.made().to_bytes()
        path = pathlib.Path("net.caffemodel")
        path.write_bytes(content)
        with open(path, "rb") as file, \
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            for source in (path, str(path), content, bytearray(content), memoryview(content),
                           np.frombuffer(content, "uint8"), mapped, file, io.BytesIO(content)):
                model = syncblob.load(source)
                self.assertEqual(model.to_bytes(), content, type(source))

    def test_the_representation(self):
        model = files.made()
        odd = "\x1b[31m\n'\udce9"
        self.assertIn(repr(odd), repr(syncblob.Model(odd)))
        for found, wanted in ((model.add_layer(odd, odd), f"Layer {odd!r} {odd!r}, 0 blobs"),
                              (model, "Model caffemodel 'made', 9 layers"),
                              (model["bn_1"], "Layer 'bn_1' 'BatchNorm', 3 blobs"),
                              (model["bn_1"][2], "StoredBlob (1,) float32")):
            self.assertEqual(repr(found), f"<syncblob.{wanted}>")

    def test_texts_in_other_encodings(self):
        """Different texts that are not UTF-8 stay different and can be written again, as with os.fsdecode."""
        names = [os.fsdecode(b"caf\xe9"), os.fsdecode(b"caf\xe8"), os.fsdecode(b"caf\xe9")]
        model = syncblob.Model(names[0])
        for name in names:
            model.add_layer(name, name, [[1.0]])
        again = syncblob.load(model.to_bytes())
        self.assertEqual(again.name, names[0])
        self.assertEqual([(layer.name, layer.type) for layer in again.layers],
                         [(name, name) for name in names])
        self.assertEqual(list(again), [*names[:2], names[0] + "#2"])
        self.assertEqual((again[names[1]].index, again.get(names[1]).index), (1, 1))
        self.assertIn(names[1], again)
        self.assertEqual(list(again.state_dict()), [f"{name}.0" for name in again])
        for name in ("\ud800", "caf\ufffd"):
            self.assertNotIn(name, again)
        state = syncblob.Model(format="solverstate")
        for path in (names[0], os.fsencode(names[0]), pathlib.Path(names[0])):
            state.learned_net = path
            self.assertEqual(syncblob.load(state.to_bytes()).learned_net, names[0])


class Changing(files.InFolder):
    def test_a_blob_is_replaced_and_the_rest_stays(self):
        before = files.made()
        model = syncblob.load(before.to_bytes())
        model["conv_1"][1] = [1, 2, 3, 4]
        model["bn_1"][-1] = np.float32([7])
        blob = syncblob.Blob(np.full(5, 2.0))
        blob.diff[...] = 1  # a file does not store the diff
        model["scale_1"].set_blob(0, blob, replace=True)
        for stored in (model["scale_1"][0], model.add_layer("a", "X", [blob])[0]):
            self.assertFalse(stored.has_diff)
        again = syncblob.load(model.to_bytes()).state_dict(names="caffe")
        self.assertEqual(again["a.0"].tolist(), [2] * 5)
        changed = {"conv_1.1": [1, 2, 3, 4], "bn_1.2": [7], "scale_1.0": [2] * 5}
        for name, array in before.state_dict(names="caffe").items():
            self.assertEqual(again[name].tolist(), changed.get(name, array.tolist()), name)

    def test_values_that_fit_float32_become_float32(self):
        model = files.made()
        for value, dtype in ((np.float16([1]), "float32"), (np.uint8([1]), "float32"),
                             (np.float64([1]), "float64"), (np.int32([1 << 30]), "float64"),
                             (syncblob.Blob(2, "float16"), "float32"),
                             (syncblob.Blob(2, "int32"), "float64"),
                             (True, "float32"), (np.float32(3), "float32")):
            model["conv_1"].set_blob(1, value, replace=True)
            self.assertEqual(model["conv_1"][1].dtype, dtype)
        for value in (np.complex64([1]), np.array(["b"]), object(), None,
                      syncblob.Blob(2, "bfloat16")):
            with self.assertRaises((TypeError, ValueError)):
                model["conv_1"].set_blob(1, value, replace=True)
        self.assertEqual(model["conv_1"][1].shape, ())

    def test_values_that_no_file_stores_exactly_are_refused(self):
        model = syncblob.Model()
        fine = np.array([-2**53, 0, 2**60, 2**62 + 2**10])
        layer = model.add_layer("a", "X", [fine, np.array([2**63], "uint64"), np.zeros(0, int)])
        self.assertEqual([int(value) for value in layer[0][...]], fine.tolist())
        self.assertEqual(int(layer[1][0]), 2**63)
        for bad in ([2**53 + 1], np.array([2**64 - 1], "uint64"), [-2**53 - 1, 0]):
            for call in (lambda: layer.set_blob(0, bad, replace=True), lambda: model.add_blob(bad),
                         lambda: model.add_layer("b", "X", [[1.0], bad])):
                self.assertRaises(syncblob.DtypeError, call)
        self.assertEqual((len(model), layer[0].shape), (1, (4,)))

    def test_a_solver_state(self):
        state = syncblob.Model(format="solverstate")
        self.assertEqual((state.iteration, state.current_step, state.learned_net), (0, 0, ""))
        state.iteration, state.current_step = 5000, -2
        state.learned_net = pathlib.Path("net.caffemodel")
        state.add_blob(np.float32([1, 2]))
        state.add_blob(syncblob.Blob((2, 2), "float64"))
        again = syncblob.load(state.to_bytes())
        self.assertEqual((again.format, len(again), again.iteration, again.current_step,
                          again.learned_net), ("solverstate", 0, 5000, -2, "net.caffemodel"))
        self.assertEqual([(blob.shape, blob.dtype) for blob in again.blobs],
                         [((2,), "float32"), ((2, 2), "float64")])
        again.set_blob(-1, np.float32([7]), replace=True)
        self.assertEqual({name: array.tolist() for name, array in again.state_dict().items()},
                         {"history.0": [1, 2], "history.1": [7]})
        for index in (2, -3, 10**40):
            self.assertRaises(IndexError, again.set_blob, index, [1.0])
        for bad in (1 << 31, "x", None):
            self.assertRaises((ValueError, TypeError), setattr, state, "iteration", bad)
        model = files.made()
        for call in (lambda: model.iteration, lambda: setattr(model, "iteration", 3),
                     lambda: state.add_layer("none")):
            self.assertRaises(syncblob.UnsupportedError, call)

    def test_pickled_and_copied(self):
        """A copy keeps the model's format and limit of memory, but not its other limits."""
        state, vector = (syncblob.Model(format=name) for name in ("solverstate", "blobvector"))
        for model in (state, vector):
            model.add_blob([0.5])
        long = syncblob.load(syncblob.Model("n" * 65537).to_bytes(), format="caffemodel",
                             max_name_bytes=70_000)
        large = syncblob.Model("large")
        large.add_layer("fc", "InnerProduct", [np.ones((1000, 1000), "float32")])
        limited = syncblob.load(large.to_bytes(), max_memory=100_000)
        for model in (limited, files.made(), state, vector, long, syncblob.Model("empty")):
            for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
                self.assertEqual((again.format, again.to_bytes()), (model.format, model.to_bytes()))
                if model is limited:
                    self.assertRaises(syncblob.LimitError, again.state_dict)
            self.assertNotIn(b"_syncblob", pickle.dumps(model))  # no private name
        again.add_layer("more")
        self.assertEqual((len(again), len(model)), (1, 0))

    def test_layers_added_one_by_one_have_the_names_of_a_file(self):
        names = ["a", "b", "a", "", "a#2", "c", "", "#3", "a#3", "b", "a#2", "a.weight"]
        model = syncblob.Model()
        for name in names:
            model.add_layer(name, "X", [[1.0]])
            self.assertEqual(list(model), list(syncblob.load(model.to_bytes())))
            for index, unique in enumerate(model):
                self.assertEqual(model[unique].index, index)
        self.assertEqual(len(model.state_dict()), len(names))

    def test_an_array_is_not_accepted_as_a_list_of_blobs(self):
        model = files.made()
        for array in (np.ones(64), np.ones((2, 3)), syncblob.Blob(2), model["conv_1"][0]):
            with self.assertRaisesRegex(TypeError, "list of arrays"):
                model.add_layer("late", "Scale", array)
        self.assertEqual(len(model.add_layer("late", "Scale", model["conv_1"])), 2)

    def test_a_layer_is_not_added_if_memory_runs_out(self):
        """Runs in a process with a limited address space and an untouched blob of a gigabyte."""
        done = files.run_code("""if True:
            import resource, syncblob
            blob = syncblob.Blob(1 << 28)
            blob.data
            with open("/proc/self/statm") as file:
                bound = int(file.read().split()[0]) * resource.getpagesize() + (1 << 28), -1
            resource.setrlimit(resource.RLIMIT_AS, bound)
            if resource.getrlimit(resource.RLIMIT_AS) != bound:
                raise SystemExit(77)
            model = syncblob.Model()
            for name in ("late", ""):
                try: model.add_layer(name, "X", [[1.0], blob])
                except MemoryError: print(list(model), model.layers, model.to_bytes())
            model.add_layer("late")
            print(list(model))
        """)
        if done.returncode == 77:
            self.skipTest("out of memory: this system does not limit the address space")
        self.assertEqual((done.stdout, done.stderr), ("[] () b''\n" * 2 + "['late']\n", ""))

    def test_many_layers_of_one_name_take_no_longer_than_others(self):
        def seconds(name):
            model, begin = syncblob.Model(), time.process_time()
            for i in range(3000):
                model.add_layer(name.format(i))
            return time.process_time() - begin

        self.assertLess(min(seconds("same") for _ in range(3)),
                        8 * min(seconds("layer{}") for _ in range(3)))

    def test_large_models_of_a_program_are_pickled(self):
        model = syncblob.Model()
        for i in range(100_001):
            model.add_layer(str(i))
        self.assertEqual(len(pickle.loads(pickle.dumps(copy.copy(model)))), 100_001)


def module_of(layer, nn):
    kind = layer.type.replace("_", "").lower()  # INNER_PRODUCT in an old file
    if kind == "convolution":
        outputs, inputs, *kernel = layer[0].shape
        return nn.Conv2d(inputs, outputs, kernel, bias=len(layer) > 1)
    if kind == "innerproduct":
        return nn.Linear(*reversed(layer[0].shape[-2:]))
    if kind == "prelu":
        return nn.PReLU(layer[0].size)
    return nn.BatchNorm2d(layer[0].size) if kind == "batchnorm" else None


class StateDict(unittest.TestCase):
    def test_names_and_values_are_pytorchs(self):
        """The model has no connections, so no Scale is merged with a BatchNorm."""
        model = files.made()
        arrays = model.state_dict()
        norm = ["weight", "bias", "running_mean", "running_var"]
        self.assertEqual(list(arrays), [
            "conv_1.weight", "conv_1.bias", *(f"bn_1.{name}" for name in norm),
            *(f"bn_0.{name}" for name in norm), "scale_1.weight", "scale_1.bias",
            "conv_1#2.weight", "#6.weight", "lstm.0", "lstm.1", "lstm.2"])
        factor = np.float64(np.float32(1) / np.float32(0.3))
        raw = np.asarray(model["bn_1"][0])
        self.assertTrue((arrays["bn_1.running_mean"] == (raw * factor).astype("float32")).all())
        self.assertFalse(arrays["bn_0.running_var"].any(), "as Caffe: times 0")
        self.assertTrue((arrays["bn_1.weight"] == 1).all() and (arrays["bn_1.bias"] == 0).all())

    def test_each_array_is_a_copy(self):
        model = files.made()
        for array in model.state_dict().values():
            self.assertTrue(array.flags.writeable and array.flags.c_contiguous)
            array[...] = 0
        self.assertTrue(model.state_dict()["conv_1.weight"].any())

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
    def test_tensors_are_the_arrays(self):
        import torch
        tensors, arrays = files.made().state_dict(framework="torch"), files.made().state_dict()
        self.assertEqual(list(tensors), list(arrays))
        for name, tensor in tensors.items():
            self.assertIsInstance(tensor, torch.Tensor)
            self.assertTrue((tensor.numpy() == arrays[name]).all())
        for name in ("float64", "bfloat16"):
            dtype = getattr(torch, name)
            self.assertEqual(torch.from_dlpack(syncblob.Blob(2, dtype)).dtype, dtype)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
    def test_modules_named_after_layers_load_the_weights_of_real_nets(self):
        import torch
        found = [path for path in files.real_models() if path.suffix == ".caffemodel"]
        if not found:
            self.skipTest("no real files: SYNCBLOB_TEST_DATA has none")
        for path in found:
            model, net = syncblob.load(path), torch.nn.Module()
            for layer in model.layers:
                if len(layer) and (module := module_of(layer, torch.nn)):
                    net.add_module(layer.name, module)
            net.load_state_dict(model.state_dict(framework="torch"), strict=True)
            self.assertGreater(sum(value.numel() for value in net.parameters()), 1000, path)

    def test_an_interrupt_ends_it_between_two_blobs(self):
        """No bytecode runs during the call, so Python itself does not check for signals."""
        names = ("torch", "torch.utils", "torch.utils.dlpack")
        torch = types.ModuleType(names[0])
        torch.from_dlpack = functools.partial(next, iter(_thread.interrupt_main, None))
        ended, before = [], signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with unittest.mock.patch.dict(sys.modules, dict.fromkeys(names, torch)), \
                    self.assertRaises(KeyboardInterrupt):
                load = operator.methodcaller("state_dict", framework="torch")
                ended.extend(map(load, [files.made()]))
        finally:
            signal.signal(signal.SIGINT, before)
        self.assertEqual(ended, [])
