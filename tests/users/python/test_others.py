"""Tests the command in the wheel, backends in shared libraries, and the module for OpenCV with a fake OpenCV."""
import os
import pathlib
import shutil
import subprocess
import sys
import types
import unittest
import unittest.mock

import files
import numpy as np
import syncblob

COMMAND = str(pathlib.Path(sys.executable).parent / "syncblob")
COMPILER = shutil.which("cc")


def run(*words, program=(COMMAND,)):
    return subprocess.run([*program, *map(str, words)], capture_output=True, text=True,
                          timeout=files.DEADLINE)


class Command(files.InFolder):
    def test_both_ways_to_call_it(self):
        for program in ((COMMAND,), (sys.executable, "-m", "syncblob")):
            done = run("--version", program=program)
            self.assertEqual((done.returncode, done.stdout),
                             (0, f"syncblob {syncblob.__version__}\n"))
            self.assertEqual(run("nothing", program=program).returncode, 2)
            self.assertEqual(run("info", "/nonexistent", program=program).returncode, 1)

    def test_an_interrupt_ends_it(self):
        """SIGINT ends the program at once, as in C programs, because Python's handler does not run."""
        code = ("import os, signal, threading, syncblob.__main__ as m;"
                "m.run_command = lambda _: os.kill(os.getpid(), signal.SIGINT);"
                "m.main()")
        done = files.run_code(code)
        self.assertEqual((done.returncode, done.stderr), (-2, ""))

    def test_state_dict_is_what_it_converts(self):
        """The command info lists every layer of a file with many layers."""
        made, out = pathlib.Path("made.caffemodel"), pathlib.Path("out.npz")
        model = files.made()
        for i in range(2000):
            model.add_layer(f"more{i}")
        model.save(made)
        done = run("info", made)
        self.assertEqual((done.returncode, done.stderr, "more1999" in done.stdout), (0, "", True))
        for path in [made, *files.real_models()]:
            for names in ("torch", "caffe"):
                with self.subTest(path=path.name, names=names):
                    done = run("convert", path, out, "--names", names, "--force")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    arrays = syncblob.load(path).state_dict(names=names)
                    with np.load(out) as found:
                        self.assertEqual(
                            [(name, found[name].dtype, found[name].shape, found[name].tobytes()) for name in found],
                            [(name, array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()])


class Backend(files.InFolder):
    @unittest.skipUnless(COMPILER, "no C compiler makes a backend")
    def test_a_loaded_backend_opens_by_its_name(self):
        path = os.path.abspath("backend.so")
        subprocess.run([COMPILER, "-shared", "-fPIC", f"-I{files.ROOT}/c/include", "-o", path,
                        files.ROOT / "bindings/syncblob-tests/src/backend.c"], check=True)
        with self.assertRaisesRegex(syncblob.UnsupportedError, r"syncblob\.load_backend"):
            syncblob.Blob(2, device="loaded:0")
        self.assertEqual(syncblob.load_backend(path), "loaded")
        self.assertEqual(syncblob.load_backend(pathlib.Path(path)), "loaded")
        blob = syncblob.Blob(2, device="loaded:0")
        blob.data[...] = [1.0, 2.0]
        blob.to_device()
        self.assertEqual((blob.device, blob.data_head), ("loaded:0", "SYNCED"))
        self.assertEqual(list(blob.copy(device="loaded:1").data), [1.0, 2.0])
        with self.assertRaises(syncblob.ArgumentError) as caught:  # another library with the same name
            syncblob.load_backend(shutil.copy(path, path + ".copy"))
        self.assertEqual(caught.exception.filename, path + ".copy")

    def test_other_files_are_refused(self):
        with self.assertRaises(FileNotFoundError) as caught:
            syncblob.load_backend("missing/backend.so")
        self.assertEqual(caught.exception.filename, "missing/backend.so")
        for path in (__file__, os.path.dirname(__file__)):
            self.assertRaises(syncblob.FileError, syncblob.load_backend, path)


class OpenCV(files.InFolder):
    def read(self, *arguments, **named):
        module = types.ModuleType("cv2")
        module.dnn = types.SimpleNamespace(readNetFromONNX=lambda array: array)
        with unittest.mock.patch.dict(sys.modules, cv2=module):
            return syncblob.opencv.readNetFromCaffe(*arguments, **named)

    def test_files_and_buffers(self):
        text, content = files.PROTOTXT, files.carrying()
        pathlib.Path("text").write_bytes(text)
        pathlib.Path("content").write_bytes(content)
        for arguments in (("text", "content"), (text, content), (bytearray(text), bytearray(content)),
                          (np.frombuffer(text, "uint8"), np.frombuffer(content, "uint8"))):
            wanted = syncblob.Net(*arguments).to_onnx()
            for given in (self.read(*arguments), self.read(prototxt=arguments[0], caffeModel=arguments[1]),
                          self.read(bufferProto=arguments[0], bufferModel=arguments[1]),
                          self.read(arguments[0], bufferModel=arguments[1])):
                self.assertEqual((given.dtype, given.ndim, given.tobytes()), ("uint8", 1, wanted))
        shapeless = text.replace(b"dim: 2 dim: 3 dim: 4 dim: 4", b"")
        self.assertGreater(self.read(shapeless, content, inputs={"x": (2, 3, 4, 4)}).size, 0)
        self.assertGreater(self.read(b"""input: "x" input_shape { dim: 1 }
            layer { type: "ReLU" bottom: "x" top: "y" }""").size, 0)

    def test_mistakes(self):
        text, content = files.PROTOTXT, files.carrying()
        for error, reason, arguments, named in (
                (TypeError, "needs a prototxt", (), {}), (TypeError, "not both", (text,), {"bufferProto": text}),
                (TypeError, "not both", (text, content), {"bufferModel": content}),
                (ValueError, "pass it as bytes", (text.decode(), content), {})):
            with self.assertRaisesRegex(error, reason):
                self.read(*arguments, **named)
        with unittest.mock.patch.dict(sys.modules, cv2=None), \
                self.assertRaisesRegex(ImportError, "pip install opencv-python"):
            syncblob.opencv.readNetFromCaffe(text, content)
