"""Tests that a backend can be loaded from a shared library and used as a device."""
import os
import pathlib
import shutil
import subprocess
import unittest

import files
import syncblob

COMPILER = shutil.which("cc")


@unittest.skipUnless(COMPILER, "no C compiler makes a backend")
class Backend(files.InFolder):
    def setUp(self):
        super().setUp()
        self.path = os.path.abspath("backend.so")
        subprocess.run([COMPILER, "-shared", "-fPIC", f"-I{files.ROOT}/c/include", "-o", self.path,
                        files.ROOT / "bindings/syncblob-tests/src/backend.c"], check=True)

    def test_a_loaded_backend_opens_by_its_name(self):
        with self.assertRaisesRegex(syncblob.UnsupportedError, r"syncblob\.load_backend"):
            syncblob.Blob(2, device="loaded:0")
        self.assertEqual(syncblob.load_backend(self.path), "loaded")
        self.assertEqual(syncblob.load_backend(pathlib.Path(self.path)), "loaded")
        blob = syncblob.Blob(2, device="loaded:0")
        blob.data[...] = [1.0, 2.0]
        blob.to_device()
        self.assertEqual((blob.device, blob.data_head), ("loaded:0", "SYNCED"))
        self.assertEqual(list(blob.copy(device="loaded:1").data), [1.0, 2.0])
        with self.assertRaises(syncblob.ArgumentError) as caught:  # another library with the same name
            syncblob.load_backend(shutil.copy(self.path, self.path + ".copy"))
        self.assertEqual(caught.exception.filename, self.path + ".copy")


class Refused(unittest.TestCase):
    def test_other_files_are_refused(self):
        with self.assertRaises(FileNotFoundError) as caught:
            syncblob.load_backend("missing/backend.so")
        self.assertEqual(caught.exception.filename, "missing/backend.so")
        for path in (__file__, os.path.dirname(__file__)):
            self.assertRaises(syncblob.FileError, syncblob.load_backend, path)
