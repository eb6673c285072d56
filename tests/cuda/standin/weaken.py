#!/usr/bin/env python3
"""Shows that the tests on the stand-ins notice when a wait, a push or a pop of
the CUDA backend is missing.

In a copy of the sources each is left out, one at a time, found by pattern in
cuda/*.c; the test programs must then fail. A site passes when a test fails; one
that no test notices, or that cannot be built, fails.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/survival/threads"))
from weaken import Site, blank, call_end, edit  # noqa: E402

TIME_LIMIT = 120
DONE = "((sb__cu_result)SB__CUDA_SUCCESS)"

# (kind, pattern, what it becomes given the call's text)
PATTERNS = [
    ("wait", r"device->cu->cu(?:StreamSynchronize|EventSynchronize|StreamWaitEvent|EventRecord)\s*\(",
     lambda call: DONE),
    ("push", r"(?<!sb__cu_result )sb__cuda_enter(?:_stream|_to_free)?\s*\(",
     lambda call: f"(*({call[call.rindex(',') + 1:-1].strip()}) = 0, {DONE})"),
    ("pop", r"(?<!sb__cu_result )sb__cuda_leave\s*\(",
     lambda call: f"({call.split(',', 2)[2].strip()}"),
    ("push", r"device->cu->cuCtxPushCurrent_v2\s*\(", lambda call: DONE),
    ("pop", r"device->cu->cuCtxPopCurrent_v2\s*\(", lambda call: f"((void)&ours, {DONE})"),
    ("capture mode", r"device->cu->cuThreadExchangeStreamCaptureMode\s*\(",
     lambda call: f"((void){call[call.index('(') + 1:-1]}, {DONE})"),
    ("capture check", r"device->cu->cuStreamIsCapturing\s*\(", lambda call: DONE),
]

# (program, schedule), those that notice most first
PROGRAMS = [("rules", "lazy"), ("faults", "lazy"), ("behaviour.mem_states", ""), ("conformance", "lazy"),
            ("threads.waits", ""), ("behaviour.mem_async", ""), ("behaviour.blob_arithmetic", ""),
            ("open", ""), ("rules", "eager"), ("faults", "eager"), ("faults", "random"),
            ("behaviour.mem_rules", ""), ("behaviour.blob_copy", ""), ("faults.mem_faults", ""),
            ("faults.blob_faults", "")]

PROJECT = """cmake_minimum_required(VERSION 3.22)
project(syncblob VERSION 0.1.0 LANGUAGES C DESCRIPTION "a weakened copy")
option(BUILD_SHARED_LIBS "" ON)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
enable_testing()
add_subdirectory(c)
add_subdirectory(fuzz)
add_subdirectory(tests)
"""


def find_sites(source):
    for file in sorted((source / "cuda").glob("*.c")):
        text = file.read_text()
        code = blank(text)
        path = str(file.relative_to(source))
        for kind, pattern, weaker in PATTERNS:
            for m in re.finditer(pattern, code):
                end = call_end(code, m.start())
                if code[end:].lstrip().startswith("{"):
                    continue  # the definition
                call = text[m.start():end]
                name = re.split(r"->", m[0])[-1].rstrip("( ")
                yield Site(kind, path, text, m.start(), f"{kind}: {name} left out",
                           edit(text, [(m.start(), end, weaker(call))]))


def build(folder):
    targets = sorted({"standin_" + name for name, _ in PROGRAMS})
    done = subprocess.run(["cmake", "--build", folder, "-j2", "--target", *targets],
                          capture_output=True, text=True)
    return None if done.returncode == 0 else done.stdout[-2000:]


def run(folder, name, schedule):
    """Why the program fails, or None."""
    standins = folder / "tests/cuda/standin"
    path = ":".join(str(standins / part) for part in ("lib", "lib13", "lib12"))
    environment = {**os.environ, "LD_LIBRARY_PATH": path, "STANDIN_SCHEDULE": schedule}
    if name == "threads.waits":
        environment["STANDIN_FORGIVE"] = "1"
    try:
        done = subprocess.run([standins / f"standin_{name}"], env=environment, timeout=TIME_LIMIT,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return "does not end"
    if done.returncode == 127:
        raise SystemExit(f"weaken: {name} cannot be run")
    return None if done.returncode == 0 else f"status {done.returncode}"


def judge(folder, source, site):
    file = source / site.path
    original = file.read_text()
    try:
        file.write_text(site.mutated)
        story = build(folder)
        if story:
            error = re.search(r"error: .*", story)
            return False, "does not build: " + (error[0] if error else story[-200:])
        for name, schedule in PROGRAMS:
            why = run(folder, name, schedule)
            if why:
                return True, f"{name} {schedule} ({why})"
        return False, "no test notices"
    finally:
        file.write_text(original)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--headers", required=True, help="folders of the CUDA headers, by ;")
    parser.add_argument("--list", action="store_true", help="print the sites and end")
    parser.add_argument("--only", metavar="REGEX", default="", help="sites whose line matches")
    options = parser.parse_args()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="weaken-"))
    try:
        source, folder = scratch / "source", scratch / "build"
        for part in ("c", "proto", "tests", "cuda", "bindings", "fuzz"):
            shutil.copytree(ROOT / part, source / part)
        (source / "CMakeLists.txt").write_text(PROJECT)
        sites = [s for s in find_sites(source) if re.search(options.only, str(s))]
        if options.list:
            print(*sites, sep="\n")
            return 0
        if not sites:
            sys.exit("weaken: no site was found")
        subprocess.run(["cmake", "-G", "Ninja", "-S", source, "-B", folder,
                        "-DCMAKE_BUILD_TYPE=Debug", f"-DSYNCBLOB_CUDA_HEADERS={options.headers}"],
                       check=True, stdout=subprocess.DEVNULL)
        story = build(folder)
        if story:
            sys.exit("weaken: does not build before anything is changed:\n" + story)
        for name, schedule in PROGRAMS:
            why = run(folder, name, schedule)
            if why:
                sys.exit(f"weaken: {name} {schedule} fails before anything is changed: {why}")
        failed = 0
        for site in sites:
            passed, story = judge(folder, source, site)
            failed += not passed
            print(f"{'ok    ' if passed else 'FAILED'}  {site}: {story}", flush=True)
        print(f"\n{len(sites) - failed} passed, {failed} failed")
        return failed != 0
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    sys.exit(main())
