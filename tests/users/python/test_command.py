"""Tests the command in the wheel, and compares its conversions with state_dict."""
import pathlib
import subprocess
import sys

import files
import numpy as np
import syncblob

COMMAND = str(pathlib.Path(sys.executable).parent / "syncblob")


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

    def test_the_output_is_whole(self):
        path = pathlib.Path("net.caffemodel")
        model = files.made()
        for i in range(2000):
            model.add_layer(f"more{i}")
        model.save(path)
        done = run("info", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("more1999", done.stdout)

    def test_an_interrupt_ends_it(self):
        """SIGINT ends the program at once, as it ends programs in C: Python's handler does not run."""
        code = ("import os, signal, threading, syncblob.__main__ as m;"
                "m.run_command = lambda _: os.kill(os.getpid(), signal.SIGINT);"
                "m.main()")
        done = files.run_code(code)
        self.assertEqual((done.returncode, done.stderr), (-2, ""))

    def test_state_dict_is_what_it_converts(self):
        made = pathlib.Path("made.caffemodel")
        files.made().save(made)
        for path in [made, *files.real_models()]:
            for names in ("torch", "caffe"):
                with self.subTest(path=path.name, names=names):
                    out = pathlib.Path("out.npz")
                    done = run("convert", path, out, "--names", names, "--force")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.compare(out, syncblob.load(path).state_dict(names=names))

    def compare(self, out, arrays):
        with np.load(out) as converted:
            self.assertEqual(list(converted), list(arrays))
            for name, array in arrays.items():
                self.assertEqual((converted[name].dtype, converted[name].shape),
                                 (array.dtype, array.shape), name)
                self.assertEqual(converted[name].tobytes(), array.tobytes(), name)
