"""PyTorch with the weights of real and made nets, where it is installed."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import files
import numpy as np
import syncblob

try:
    import torch
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed") from None


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "syncblob", *map(str, arguments)], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


class Tensors(unittest.TestCase):
    def test_a_state_dict_of_tensors_is_that_of_arrays(self):
        model = files.made()
        tensors, arrays = model.state_dict(framework="torch"), model.state_dict()
        self.assertEqual(list(tensors), list(arrays))
        for name, tensor in tensors.items():
            self.assertIsInstance(tensor, torch.Tensor)
            self.assertTrue((tensor.numpy() == arrays[name]).all())

    def test_memory_is_shared(self):
        blob = syncblob.Blob((2, 3), torch.float64)
        tensor = torch.from_dlpack(blob)
        tensor += 2
        self.assertEqual((blob.dtype, blob.asum_data()), ("float64", 12.0))
        array = torch.from_dlpack(blob.data)
        array *= 2
        self.assertEqual((tensor.sum(), blob.asum_data()), (24.0, 24.0))
        self.assertEqual(syncblob.from_dlpack(torch.ones(4)).asum_data(), 4.0)
        self.assertEqual(torch.from_dlpack(syncblob.Blob(2, "bfloat16")).dtype, torch.bfloat16)

    def test_a_stored_blob_is_a_tensor_of_its_own(self):
        model = files.made()
        tensor = torch.from_dlpack(model["conv_1"][0])
        tensor.zero_()
        self.assertTrue(np.asarray(model["conv_1"][0]).any())


def module_of(layer):
    """What holds the layer's weights in PyTorch, or None."""
    if layer.type == "Convolution":
        outputs, inputs, *kernel = layer[0].shape
        return torch.nn.Conv2d(inputs, outputs, kernel)
    if layer.type == "InnerProduct":
        outputs, inputs = layer[0].shape
        return torch.nn.Linear(inputs, outputs)
    return torch.nn.BatchNorm2d(layer[0].size) if layer.type == "BatchNorm" else None


def scale_of(layer):
    """A BatchNorm's name for the Scale behind it."""
    return layer.name.replace("scale_", "bn_", 1)


def convolution(pixels, weights, bias, stride, padding):
    """In NumPy, in doubles, by its definition."""
    padded = np.pad(pixels, ((0, 0), (padding, padding), (padding, padding)))
    height, width = weights.shape[2:]
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), (1, 2))
    windows = windows[:, ::stride, ::stride].astype("float64")
    out = np.tensordot(weights.astype("float64"), windows, ((1, 2, 3), (0, 3, 4)))
    return out + bias[:, None, None]


class ResNet(unittest.TestCase):
    """What the command made of the real net."""

    @classmethod
    def setUpClass(cls):
        if not files.resnet():
            raise unittest.SkipTest("PyTorch with a real net: SYNCBLOB_TEST_RESNET names none")
        import safetensors.torch
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "resnet.safetensors")
            command("convert", files.resnet(), path, "--names", "torch", "--apply-scale")
            cls.tensors = safetensors.torch.load_file(path)
        cls.model = syncblob.load(files.resnet())

    def test_every_layer_takes_its_weights(self):
        net, tensors = torch.nn.Module(), {}
        for name, layer in self.model.items():
            module = module_of(layer)
            if module:
                net.add_module(name, module)
            rename = scale_of(layer) if layer.type == "Scale" else name
            tensors.update({rename + key[len(name):]: tensor for key, tensor in self.tensors.items()
                            if key.startswith(f"{name}.")})
        self.assertEqual(len(tensors), len(self.tensors))
        net.load_state_dict(tensors)
        self.assertGreater(sum(value.numel() for value in net.parameters()), 5_900_000)

    def test_the_tensors_have_the_sums_that_info_tells(self):
        info = json.loads(command("info", "--json", files.resnet()))
        compared = 0
        for layer in info["layers"]:
            if layer["type"] not in ("Convolution", "InnerProduct", "Scale"):
                continue
            for blob, role in zip(layer["blobs"], ("weight", "bias")):
                tensor = self.tensors[f"{layer['name']}.{role}"].double()
                self.assertEqual(list(tensor.shape), blob["shape"])
                for what, value in (("sum", tensor.sum()), ("asum", tensor.abs().sum()),
                                    ("sumsq", tensor.square().sum())):
                    self.assertAlmostEqual(float(value), blob["data"][what],
                                           delta=1e-6 * blob["data"]["asum"])
                compared += 1
        self.assertGreater(compared, 200)

    def test_convolutions_are_numpys(self):
        random = np.random.default_rng(3)
        for name, stride, padding in (("conv_1", 2, 3), ("conv_stage0_block0_branch2b", 1, 1),
                                      ("conv_stage3_block2_branch2c", 1, 0)):
            weights, bias = (np.asarray(blob) for blob in self.model[name])
            pixels = random.normal(size=(weights.shape[1], 32, 32)).astype("float32")
            wanted = convolution(pixels, weights, bias, stride, padding)
            found = torch.nn.functional.conv2d(
                torch.from_numpy(pixels)[None], self.tensors[f"{name}.weight"],
                self.tensors[f"{name}.bias"], stride, padding)[0].numpy()
            self.assertEqual(found.shape, wanted.shape)
            self.assertLess(abs(found - wanted).max() / abs(wanted).max(), 1e-5, name)


if __name__ == "__main__":
    unittest.main()
