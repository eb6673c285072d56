"""The test programs of a build, and how one is run so that no mutant harms the machine."""

import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

LEAST_SECONDS = 2
MEMORY = 4 << 30, 16 << 30  # some tests reserve much and use little

# A folder as /tmp, which tests leave files in when they fail. Who is not root is it for the mount.
MOUNT = 'mount --bind "$0" /tmp && exec "$@"'
AS_ROOT = ["unshare", "--mount", "sh", "-c", MOUNT]
AS_USER = ["unshare", "--map-root-user", "--mount", "sh", "-c", MOUNT]
AGAIN = ["unshare", "--user", f"--map-user={os.getuid()}", f"--map-group={os.getgid()}"]


def in_own_tmp(folder, command):
    if os.getuid() == 0:
        return [*AS_ROOT, folder, *command]
    return [*AS_USER, folder, *AGAIN, *command]


class Outcome:
    """Why a program failed, or None; its time, and what it said."""

    def __init__(self, why, seconds, output):
        self.why, self.seconds, self.output = why, seconds, output


class Program:
    """One test of ctest's."""

    def __init__(self, test):
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        self.name, self.command = test["name"], test["command"]
        self.environment = dict(word.split("=", 1) for word in properties.get("ENVIRONMENT", []))
        self.folder = properties.get("WORKING_DIRECTORY", "")
        self.seconds, self.memory, self.reached, self.functions = 0.0, MEMORY[0], set(), []


def tests_of(build, pattern):
    """What ctest knows of those whose names match; without commands until they are built."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                           capture_output=True, text=True).stdout
    return [t for t in json.loads(shown)["tests"] if re.fullmatch(pattern, t["name"])]


def targets(build, pattern):
    """What has to be built for them: the program is named after the test, or nearly so."""
    def name(test):
        test = re.sub(r"^fuzz\.", "replay.", test)
        return re.sub(r"^standin\.(.+?)(?:\.(?:eager|lazy|random))?$", r"standin_\1", test)
    known = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], check=True,
                           capture_output=True, text=True).stdout
    known = set(re.findall(r"^([^:\n]+):", known, flags=re.M))
    return sorted({name(t["name"]) for t in tests_of(build, pattern)} & known)


def listed(build, pattern):
    """The programs among the tests."""
    return [Program(t) for t in tests_of(build, pattern)
            if pathlib.Path(t["command"][0]).is_relative_to(build)]


class Runner:
    """Runs programs, each with folders of its own and under limits."""

    def __init__(self, build, environment, limits_memory=True):
        self.build, self.environment, self.limits_memory = build, environment, limits_memory
        self.has_own_tmp = not str(build).startswith("/tmp/") and self.can_mount()

    @staticmethod
    def can_mount():
        if not shutil.which("unshare"):
            return False
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(in_own_tmp(folder, ["true"]), capture_output=True).returncode == 0

    def run(self, program, limit, extra=None):
        with tempfile.TemporaryDirectory(dir=self.build) as folder:
            environment = {**os.environ, **self.environment, **program.environment,
                           "TMPDIR": folder, **(extra or {})}
            command = program.command
            if self.has_own_tmp:
                environment["TMPDIR"] = "/tmp"
                os.chmod(folder, 0o1777)
                command = in_own_tmp(folder, command)
            return self.watch(command, environment, program.folder or folder, limit, program.memory)

    def watch(self, command, environment, folder, limit, memory):
        start = time.monotonic()
        with tempfile.TemporaryFile() as output:
            child = subprocess.Popen(command, env=environment, cwd=folder, start_new_session=True,
                                     stdin=subprocess.DEVNULL, stdout=output,
                                     stderr=subprocess.STDOUT,
                                     preexec_fn=lambda: self.limit(limit, memory))
            try:
                status = child.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                status = None
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
            seconds = time.monotonic() - start
            output.seek(0)
            said = output.read(1 << 20).decode(errors="replace")
        return Outcome(story(status, said), seconds, said)

    def limit(self, seconds, memory):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        cpu = int(seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (2 * cpu, 2 * cpu))
        if self.limits_memory:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def story(status, said):
    if status == 0:
        return None
    if status is None:
        return "does not end"
    if "ThreadSanitizer" in said:
        return "ThreadSanitizer"
    return f"signal {-status}" if status < 0 else f"status {status}"


def failed_functions(said):
    """Those of a cmocka program; of one that ended in one of them, that one."""
    failed = sorted(set(re.findall(r"^\[  FAILED  \] (?:\w+: )?(\w+)$", said, flags=re.M)))
    if failed:
        return failed
    begun = re.findall(r"^\[ RUN      \] (\w+)$", said, flags=re.M)
    return begun[-1:]


class Baseline:
    """What each program does as things are: its time, its memory, and the mutants that it reaches.
    Kept as long as neither the program nor its environment changes."""

    def __init__(self, runner, count, say):
        self.runner, self.count, self.say = runner, count, say
        self.file = pathlib.Path(runner.build) / "baseline.json"
        self.kept = json.loads(self.file.read_text()) if self.file.exists() else {}

    def measure(self, programs):
        for program in programs:
            made = [os.stat(program.command[0]).st_mtime_ns, self.count, self.runner.environment]
            row = self.kept.get(program.name)
            if not row or row["made"] != made:
                row = self.kept[program.name] = {"made": made, **self.run(program)}
                self.file.write_text(json.dumps(self.kept))
            program.seconds, program.memory = row["seconds"], row["memory"]
            program.functions = row["functions"]
            program.reached = {n for n, mark in enumerate(row["reached"]) if mark == "1"}

    def run(self, program):
        with tempfile.NamedTemporaryFile(dir=self.runner.build) as reached:
            reached.truncate(self.count)
            for program.memory in MEMORY:
                outcome = self.runner.run(program, 1800, {"SYNCBLOB_MUTANTS_REACHED": reached.name})
                if not outcome.why:
                    break
            marks = "".join("1" if byte else "0" for byte in reached.read())
        if outcome.why:
            raise SystemExit(f"mutate: {program.name} fails before anything is changed: "
                             f"{outcome.why}\n{outcome.output[-2000:]}")
        self.say(f"{outcome.seconds:6.1f} s  {marks.count('1'):6} reached  {program.name}")
        functions = re.findall(r"^\[ RUN      \] (\w+)$", outcome.output, flags=re.M)
        return {"seconds": outcome.seconds, "memory": program.memory, "functions": functions,
                "reached": marks}
