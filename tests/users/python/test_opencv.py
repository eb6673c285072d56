"""Tests the bytes that OpenCV receives, with a fake OpenCV; tests/users/opencv uses the real OpenCV."""
import sys
import tempfile
import types
import unittest
import unittest.mock

import files
import numpy as np
import syncblob


def fake():
    """Returns a module whose readNetFromONNX returns its argument."""
    module = types.ModuleType("cv2")
    module.dnn = types.SimpleNamespace(readNetFromONNX=lambda array: array)
    return module


class OpenCV(unittest.TestCase):
    def read(self, *arguments, **named):
        with unittest.mock.patch.dict(sys.modules, cv2=fake()):
            return syncblob.opencv.readNetFromCaffe(*arguments, **named)

    def test_files_and_buffers(self):
        text, content = files.PROTOTXT, files.carrying()
        wanted = np.frombuffer(syncblob.Net(text, content).to_onnx(), "uint8")
        with tempfile.NamedTemporaryFile() as prototxt, tempfile.NamedTemporaryFile() as model:
            for file, content_of in ((prototxt, text), (model, content)):
                file.write(content_of)
                file.flush()
            for arguments in ((prototxt.name, model.name), (text, content),
                              (bytearray(text), bytearray(content)),
                              (np.frombuffer(text, "uint8"), np.frombuffer(content, "uint8"))):
                given = self.read(*arguments)
                self.assertEqual((given.dtype, given.ndim), ("uint8", 1))
                self.assertEqual(given.tobytes(), syncblob.Net(*arguments).to_onnx())
            self.read(prototxt=prototxt.name, caffeModel=model.name)
        self.assertTrue((self.read(bufferProto=text, bufferModel=content) == wanted).all())
        self.assertTrue((self.read(text, bufferModel=content) == wanted).all())

    def test_a_net_is_passed_once(self):
        text, content = files.PROTOTXT, files.carrying()
        for arguments, named, reason in (((), {}, "needs a prototxt"),
                                         ((text,), {"bufferProto": text}, "not both"),
                                         ((text, content), {"bufferModel": content}, "not both")):
            with self.assertRaisesRegex(TypeError, reason):
                self.read(*arguments, **named)

    def test_a_text_is_not_a_path(self):
        with self.assertRaisesRegex(ValueError, "pass it as bytes"):
            self.read(files.PROTOTXT.decode(), files.carrying())

    def test_shapes_of_inputs(self):
        text = files.PROTOTXT.replace(b"dim: 2 dim: 3 dim: 4 dim: 4", b"")
        given = self.read(text, files.carrying(), inputs={"x": (2, 3, 4, 4)})
        self.assertGreater(given.size, 0)

    def test_a_net_without_weights(self):
        self.assertGreater(self.read(b"""input: "x" input_shape { dim: 1 }
            layer { type: "ReLU" bottom: "x" top: "y" }""").size, 0)

    def test_no_opencv(self):
        with unittest.mock.patch.dict(sys.modules, cv2=None), \
                self.assertRaisesRegex(ImportError, "pip install opencv-python"):
            syncblob.opencv.readNetFromCaffe(files.PROTOTXT, files.carrying())
