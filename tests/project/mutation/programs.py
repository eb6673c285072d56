"""Runs the test programs of a build under limits, so that no mutant harms the machine."""

import contextlib
import functools
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time

MEMORY = 4 << 30, 16 << 30  # some tests reserve much more memory than they use
FAST = 0.05
# Failing tests leave files in /tmp. A mutant cannot replace /dev/null if /dev/null is a mount point.
OWN_TMP = ["unshare", "--mount", "sh", "-c",
           'mount --bind "$0" /tmp && mount --bind /dev/null /dev/null && exec "$@"']


class Unusable(SystemExit):
    """A program fails although no mutant is chosen."""


class Program:
    def __init__(self, test, only=None):
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        self.test, self.name, self.command = test, test["name"], test["command"]
        self.environment = dict(word.split("=", 1) for word in properties.get("ENVIRONMENT", []))
        if only:
            self.name += f":{only}"
            self.environment["SYNCBLOB_TEST_ONLY"] = only
        self.folder = properties.get("WORKING_DIRECTORY", "")
        self.seconds, self.memory = 0.0, MEMORY[0]
        self.reached = ""


def tests_of(build, pattern):
    """Until a test is built, ctest describes the test without its command."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                           capture_output=True, text=True).stdout
    return [t for t in json.loads(shown)["tests"] if re.fullmatch(pattern, t["name"])]


def targets(build, pattern):
    def name(test):
        test = re.sub(r"^fuzz\.", "replay.", test)
        return re.sub(r"^fake\.(.+?)(?:\.(?:eager|lazy|random))?$", r"fake.\1", test)
    known = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], check=True,
                           capture_output=True, text=True).stdout
    known = set(re.findall(r"^([^:\n]+):", known, flags=re.M))
    return sorted({name(t["name"]) for t in tests_of(build, pattern)} & known)


def listed(build, pattern):
    return [Program(t) for t in tests_of(build, pattern)
            if pathlib.Path(t["command"][0]).is_relative_to(build)]


class Runner:
    def __init__(self, build, environment, limits_memory=True):
        self.build, self.environment, self.limits_memory = build, environment, limits_memory
        self.mounts = os.getuid() == 0 and not str(build).startswith("/tmp/") and subprocess.run(
            [*OWN_TMP, build, "true"], capture_output=True).returncode == 0

    def run(self, program, limit, extra):
        with tempfile.TemporaryDirectory(dir=self.build) as folder, \
                tempfile.TemporaryFile() as output:
            environment = {**os.environ, **self.environment, **program.environment, **extra,
                           "TMPDIR": "/tmp" if self.mounts else folder}
            os.chmod(folder, 0o1777)
            start = time.monotonic()
            child = subprocess.Popen(
                [*OWN_TMP, folder, *program.command] if self.mounts else program.command,
                env=environment, cwd=program.folder or folder, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                preexec_fn=lambda: self.limit(2 * int(limit) + 2, program.memory))
            try:
                status = child.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                status = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            seconds = time.monotonic() - start
            output.seek(0)
            printed = output.read(1 << 20).decode(errors="replace")
        return failure(status), seconds, printed

    def limit(self, seconds, memory):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        if self.limits_memory:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def failure(status):
    if status is None:
        return "does not end"
    if status == 0:
        return None
    return f"signal {-status}" if status < 0 else f"status {status}"


@functools.cache
def baseline(file):
    """Returns the measurements in the file, which measure changes. Reads the file once."""
    return json.loads(file.read_text()) if file.exists() else {}


def measure(runner, programs, count, announce):
    file = pathlib.Path(runner.build) / "baseline.json"
    kept, is_changed = baseline(file), False
    for program in programs:
        made = [os.stat(program.command[0]).st_mtime_ns, count, runner.environment]
        row = kept.get(program.name)
        if not row or row["made"] != made:
            row = kept[program.name] = {"made": made, **first_run(runner, program, count)}
            is_changed = True
            announce(f"{row['seconds']:6.1f} s  {row['reached'].count('1'):6} reached  {program.name}")
        program.seconds, program.memory = row["seconds"], row["memory"]
        program.reached, program.tests = row["reached"], row["tests"]
    if is_changed:
        file.write_text(json.dumps(kept))


def divided(runner, programs, count):
    """Divides programs into tests, except programs with a test that passes only after other tests."""
    for program in programs:
        parts = [Program(program.test, test) for test in program.tests if program.seconds > FAST]
        try:
            measure(runner, parts, count, lambda line: None)
        except Unusable:
            parts = []
        yield from parts if len(parts) > 1 else [program]


def first_run(runner, program, count):
    with tempfile.NamedTemporaryFile(dir=runner.build) as reached:
        reached.truncate(count)
        for program.memory in MEMORY:
            why, seconds, printed = runner.run(program, 1800,
                                               {"SYNCBLOB_MUTANTS_REACHED": reached.name})
            if not why:
                break
        marks = "".join("1" if byte else "0" for byte in reached.read())
    if why:
        raise Unusable(f"mutate: {program.name} fails before anything is changed: "
                       f"{why}\n{printed[-2000:]}")
    return {"seconds": seconds, "memory": program.memory, "reached": marks,
            "tests": re.findall(r"^\[ +OK \] (\w+)$", printed, flags=re.M)}
