"""Tests PyTorch, if installed, with the weights of real nets and of nets made here."""
import unittest

import files
import syncblob

try:
    import torch
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed") from None


class Tensors(unittest.TestCase):
    def test_a_state_dict_of_tensors_is_that_of_arrays(self):
        model = files.made()
        tensors, arrays = model.state_dict(framework="torch"), model.state_dict()
        self.assertEqual(list(tensors), list(arrays))
        for name, tensor in tensors.items():
            self.assertIsInstance(tensor, torch.Tensor)
            self.assertTrue((tensor.numpy() == arrays[name]).all())

    def test_element_types(self):
        self.assertEqual(syncblob.Blob(2, torch.float64).dtype, "float64")
        for name in ("float64", "bfloat16"):
            found = torch.from_dlpack(syncblob.Blob(2, name))
            self.assertEqual(found.dtype, getattr(torch, name))


def module_of(layer):
    """Returns the PyTorch module for the layer's weights, or None."""
    kind = layer.type.replace("_", "").lower()  # INNER_PRODUCT in an old file
    if kind == "convolution":
        outputs, inputs, *kernel = layer[0].shape
        return torch.nn.Conv2d(inputs, outputs, kernel, bias=len(layer) > 1)
    if kind == "innerproduct":
        outputs, inputs = layer[0].shape[-2:]
        return torch.nn.Linear(inputs, outputs)
    if kind == "prelu":
        return torch.nn.PReLU(layer[0].size)
    return torch.nn.BatchNorm2d(layer[0].size) if kind == "batchnorm" else None


def modules(model):
    """Returns a module whose parts have the layers' names."""
    net = torch.nn.Module()
    for layer in model.layers:
        module = module_of(layer) if len(layer) else None
        if module:
            net.add_module(layer.name, module)
    return net


class Loading(unittest.TestCase):
    def test_modules_named_after_layers_load_the_weights_of_real_nets(self):
        found = [path for path in files.real_models() if path.suffix == ".caffemodel"]
        if not found:
            self.skipTest("no real files: SYNCBLOB_TEST_DATA has none")
        for path in found:
            model = syncblob.load(path)
            net = modules(model)
            net.load_state_dict(model.state_dict(framework="torch"), strict=True)
            self.assertGreater(sum(value.numel() for value in net.parameters()), 1000, path)
