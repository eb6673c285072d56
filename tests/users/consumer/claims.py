import atexit
import functools
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path


def check(claim, *explanation):
    if not claim:
        raise AssertionError(" ".join(str(part) for part in explanation))


def run(*command, cwd=None, status=0, environment=None):
    """If `status` is not 0, the command must fail."""
    environment = {name: str(value) for name, value in (environment or os.environ).items()}
    done = subprocess.run([str(word) for word in command], cwd=cwd or work(), env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check((done.returncode == 0) == (status == 0), *command, "ended with", done.returncode, "\n" + done.stdout)
    return done.stdout


@functools.cache
def work():
    """The folder is outside the repository and is removed at exit."""
    folder = Path(tempfile.mkdtemp(prefix="syncblob-"))
    atexit.register(shutil.rmtree, folder)
    return folder


def fresh(name):
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=work()))


def run_tests(functions, chosen):
    tests = {name[5:]: unittest.FunctionTestCase(test) for name, test in functions.items()
             if name.startswith("test_")}
    suite = unittest.TestSuite(tests[name] for name in chosen or tests)
    return not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful()
