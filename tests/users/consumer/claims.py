"""Runs functions as tests. If a test fails, the remaining tests still run."""
import atexit
import functools
import os
import shutil
import subprocess
import tempfile
import time
import traceback
from pathlib import Path


def check(claim, *explanation):
    if not claim:
        raise AssertionError(" ".join(str(part) for part in explanation))


def run(*command, cwd=None, status=0, environment=None):
    """Runs a command; returns its output. If `status` is not 0, the command must fail."""
    environment = {name: str(value) for name, value in (environment or os.environ).items()}
    done = subprocess.run([str(word) for word in command], cwd=cwd or work(), env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check((done.returncode == 0) == (status == 0), *command, "ended with", done.returncode, "\n" + done.stdout)
    return done.stdout


@functools.cache
def work():
    """Returns a folder outside the repository, which is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="syncblob-"))
    atexit.register(shutil.rmtree, folder)
    return folder


def fresh(name):
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=work()))


def run_tests(functions, chosen):
    """Runs the functions named test_*, or only the chosen tests; returns the exit status."""
    tests = {name[5:]: test for name, test in functions.items() if name.startswith("test_")}
    failed = 0
    for name in chosen or tests:
        start = time.monotonic()
        verdict = "ok    "
        try:
            tests[name]()
        except Exception:  # run the remaining tests
            verdict, failed = "FAILED", failed + 1
            traceback.print_exc()
        print(f"{verdict} {time.monotonic() - start:5.0f} s  {name.replace('_', ' ')}", flush=True)
    print(f"{len(chosen or tests) - failed} passed, {failed} failed")
    return 1 if failed else 0
