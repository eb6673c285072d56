#!/usr/bin/env python3
"""Plants the bugs of mutations.txt one at a time; a fuzzer must find each in a minute of processor time.

    selftest.py BUILDS [WORD...]         all bugs, or those with a WORD in their names
    selftest.py --check                  checks that the old text of each bug occurs once in its source

The program fails if a fuzzer misses a bug, or if a bug cannot be planted.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

FUZZ = pathlib.Path(__file__).resolve().parent
ROOT = FUZZ.parent
CARGO = threading.Lock()
REASONS = re.compile(r"broken promise|runtime error:|panicked at|^==\d+==ERROR|^SUMMARY|out-of-memory")


class Broken(Exception):
    """A bug cannot be planted."""


def mutations():
    found = []
    for line in (FUZZ / "mutations.txt").read_text().splitlines():
        header = re.fullmatch(r"(\w+) (\S+?): (.*)", line)
        if line[0] in "-+":
            found[-1][3 if line[0] == "-" else 4].append(line[1:])
        elif header:
            found.append((*header.groups(), [], []))
    return [(*each[:3], "\n".join(each[3]), "\n".join(each[4])) for each in found]


def mutated(source, old, new):
    text = (ROOT / source).read_text()
    if text.count(old) != 1:
        raise Broken(f"{source} contains this text {text.count(old)} times, not once: {old!r}")
    return text.replace(old, new)


def run(command, **options):
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    return ran.returncode, ran.stdout


def must(command, **options):
    status, output = run(command, **options)
    if status:
        raise Broken(output)
    return output


def plant_c(build, target, source, text, folder, program):
    """The linker finds the object of the changed source before the object in the library."""
    changed, made = folder / pathlib.Path(source).name, folder / "mutated.o"
    changed.write_text(text)
    made_there = f"c/CMakeFiles/syncblob_objects.dir/{source.removeprefix('c/')}.o"

    def last_command(made_file):
        output = must(["ninja", "-C", build, "-t", "commands", "-s", made_file])
        return output.strip().splitlines()[-1]
    compiled = last_command(made_there).replace(f"-o {made_there}", f"-o {made} -w -iquote {(ROOT / source).parent}")
    must(["sh", "-c", compiled.replace(f"-c {ROOT / source}", f"-c {changed}")], cwd=build)
    linked = last_command(f"fuzz/fuzz.{target}").replace(f"-o fuzz/fuzz.{target}", f"-o {program}")
    must(["sh", "-c", linked.replace(" c/libsyncblob", f" {made} c/libsyncblob", 1)], cwd=build)


def plant_rust(builds, target, source, text, program):
    with CARGO:
        tree, made = builds / "mutated/tree", builds / "mutated"
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(ROOT, tree, ignore=lambda folder, _: (
            {"target", "build", ".git"} if folder == str(ROOT) else {"target", "corpus"}))
        (tree / source).write_text(text)
        must([tree / "bindings/sanitize.sh", "fuzzers", "syncblob-net", made],
             env={**os.environ, "CARGO_TARGET_DIR": str(made / "target"), "RUSTC_WORKSPACE_WRAPPER": ""})
        shutil.copy(made / f"fuzz.{target}", program)


def hunt(made, target, folder, program):
    """Limits processor time, because other work may slow the machine down."""
    inputs = [made / "seeds" / target, FUZZ / "corpus" / target, FUZZ / "regressions" / target]
    (folder / "corpus").mkdir()
    status, output = run(["prlimit", "--cpu=60:70", program, "-timeout=10", "-rss_limit_mb=2048",
                          "-max_total_time=900", f"-dict={made / target}.dict", f"-artifact_prefix={folder}/",
                          folder / "corpus", *filter(pathlib.Path.is_dir, inputs)])
    return output if status not in (0, -signal.SIGXCPU) else None


def attempt(builds, mutation):
    target, source, name, old, new = mutation
    with tempfile.TemporaryDirectory() as place:
        folder, start = pathlib.Path(place), time.monotonic()
        try:
            text = mutated(source, old, new)
            if source.endswith(".rs"):
                plant_rust(builds, target, source, text, folder / "fuzzer")
            else:
                plant_c(builds / "fuzz", target, source, text, folder, folder / "fuzzer")
            start = time.monotonic()
            output = hunt(builds / "fuzz/fuzz", target, folder, folder / "fuzzer")
        except Broken as broken:
            print(f"BROKEN  {name}: {broken}", flush=True)
            return False
    why = next((line for line in (output or "").splitlines() if REASONS.search(line)), output)
    print(f"{'found  ' if output else 'MISSED '} {time.monotonic() - start:4.0f} s  {target}: {name}\n"
          f"         {(why or '')[:200]}", flush=True)
    return bool(output)


def check():
    bad = 0
    for _, source, name, old, new in mutations():
        try:
            mutated(source, old, new)
        except Broken as broken:
            print(f"BROKEN  {name}: {broken}")
            bad += 1
    return int(bad != 0)


def main():
    if sys.argv[1:] == ["--check"]:
        return check()
    builds, words = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    chosen = [each for each in mutations() if not words or any(word in each[2] for word in words)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda each: attempt(builds, each), chosen))
    print(f"{len(found)} bugs, {found.count(False)} not found")
    return int(not all(found) or not found)


if __name__ == "__main__":
    sys.exit(main())
