#!/usr/bin/env python3
"""Shows that the fuzzers find bugs: plants one at a time and waits for the find.

    selftest.py --build build/fuzz
    selftest.py --build build/afl --afl    those for AFL++, which begins with one byte
    selftest.py --check                    only says whether each text occurs once

Each mutation of mutations.json replaces a text that occurs once in a source of
the library or of a crate. The source is compiled anew, linked before the library
into its target's fuzzer, or the crate built with it, and must be found within a minute, beginning with the inputs
of the tree. AFL++ begins with one byte, and has to find those marked "afl". A
mutation that is not found, or whose text is not there any more, fails, and so
does a target that finds something in the library as it is.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

import afl
from rust import build_mutation
from run import fuzzer, kept_inputs, limits, story

ROOT = pathlib.Path(__file__).resolve().parents[1]
SECONDS = 60


class Broken(Exception):
    """A mutation that cannot be planted."""


def mutated(mutation):
    """The source's text with the bug in it."""
    if not mutation["file"].endswith((".c", ".rs")):
        raise Broken(f"{mutation['file']} is compiled in other sources: name one of these")
    text = (ROOT / mutation["file"]).read_text()
    if text.count(mutation["old"]) != 1:
        raise Broken(f"occurs {text.count(mutation['old'])} times: {mutation['old']!r}")
    return text.replace(mutation["old"], mutation["new"])


def compile_command(build, source):
    """The words that compile a source, without input and output."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["file"] == str(source):
            words = shlex.split(entry["command"])
            return [word for i, word in enumerate(words)
                    if word not in ("-c", "-o", str(source)) and words[i - 1] != "-o"]
    raise Broken(f"{source} is not part of the library")


def compile_mutation(build, mutation, folder):
    source = ROOT / mutation["file"]
    changed, made = folder / source.name, folder / "mutated.o"
    changed.write_text(mutated(mutation))
    run(build, [*compile_command(build, source), "-iquote", str(source.parent), "-w",
                "-o", str(made), "-c", str(changed)])
    return made


def link_mutation(build, target, made, program):
    """The target's own link command with our object before the library's."""
    name = f"fuzz/fuzz.{target}"
    commands = subprocess.run(["ninja", "-C", str(build), "-t", "commands", "-s", name], check=True,
                              capture_output=True, text=True).stdout.strip().splitlines()
    link = commands[-1].replace(f"-o {name}", f"-o {program}", 1)
    if str(program) not in link:
        raise Broken(f"no link command for {name}")
    # The archive's own member is left out, as nothing is missing any more.
    run(build, ["sh", "-c", link.replace(" c/libsyncblob", f" {made} c/libsyncblob", 1)])


def plant(build, mutation, folder, program):
    """Makes the target's fuzzer with the bug."""
    if mutation["file"].endswith(".rs"):
        error = build_mutation(build, mutation, mutated(mutation), program)
        if error:
            raise Broken(f"cannot be built: {error}")
    else:
        made = compile_mutation(build, mutation, folder)
        link_mutation(build, mutation["target"], made, program)


def run(build, command):
    ran = subprocess.run(command, cwd=build, capture_output=True, text=True)
    if ran.returncode != 0:
        raise Broken(f"cannot be built: {ran.stderr.strip() or ran.stdout.strip()}")


def hunt(program, target, folder, *options):
    """(seconds, the fuzzer's story or None)."""
    corpus = folder / "corpus"
    corpus.mkdir()
    start = time.monotonic()
    ran = subprocess.run([program, *limits(target), *options, f"-artifact_prefix={folder}/",
                          str(corpus), *kept_inputs(target)],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         errors="replace")
    return time.monotonic() - start, story(ran.stdout) if ran.returncode else None


def libfuzzer_hunt(_, program, target, folder):
    return hunt(program, target, folder, f"-max_total_time={SECONDS}")


def afl_hunt(build, program, target, folder):
    """The same of AFL++, with what the program says of the first crash."""
    start = time.monotonic()
    try:
        afl.hunt(program, target, SECONDS, folder / "afl", afl.mutator(build, target))
    except afl.Failed as failed:
        raise Broken(f"afl-fuzz failed: {failed}") from failed
    crashes = afl.found(folder / "afl", "crashes")
    if not crashes:
        return time.monotonic() - start, None
    ran = subprocess.run([program, str(crashes[0])], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, errors="replace")
    return time.monotonic() - start, story(ran.stdout) if ran.returncode else None


def try_mutation(build, mutation, engine):
    """(line for people, whether it was found)."""
    name, target = mutation["name"], mutation["target"]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        program = folder / "fuzzer"
        try:
            plant(build, mutation, folder, program)
            seconds, found = engine(build, program, target, folder)
        except Broken as broken:
            return f"BROKEN  {name}: {broken}", False
    if not found:
        return f"MISSED  {name} ({target}, {SECONDS} s)", False
    return f"found   {seconds:4.0f} s  {target:14}  {name}\n              {first_line(found)}", True


def first_line(text):
    line = text.strip().splitlines()[0]
    return line[line.find("broken promise"):] if "broken promise" in line else line


def is_clean(build, target):
    """Without a bug the tree's inputs find nothing."""
    with tempfile.TemporaryDirectory() as folder:
        _, found = hunt(fuzzer(build, target), target, pathlib.Path(folder), "-runs=0")
    return (f"FAILED  {target} finds something as it is: {found}", False) if found else (
        f"clean           {target}", True)


def check(mutations):
    """Every mutation can be planted; nothing is built."""
    bad = 0
    for mutation in mutations:
        try:
            mutated(mutation)
        except Broken as broken:
            print(f"BROKEN  {mutation['name']}: {broken}")
            bad += 1
    print(f"{len(mutations)} mutations, {bad} cannot be planted")
    return int(bad != 0 or not mutations)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--build", type=pathlib.Path, help="build folder of a preset, built")
    how.add_argument("--check", action="store_true", help="plant nothing")
    parser.add_argument("--afl", action="store_true", help="the folder is of the preset afl")
    parser.add_argument("words", nargs="*", help="only the mutations with a word in their names")
    args = parser.parse_args()
    mutations = [m for m in json.loads((ROOT / "fuzz" / "mutations.json").read_text())
                 if (not args.words or any(word in m["name"] for word in args.words))
                 and (not args.afl or m.get("afl"))]
    if args.check:
        return check(mutations)
    build = args.build.resolve()
    good = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        # afl.py says whether AFL++ finds something as it is.
        clean = [] if args.afl else sorted({m["target"] for m in mutations})
        jobs = [pool.submit(is_clean, build, target) for target in clean]
        engine = afl_hunt if args.afl else libfuzzer_hunt
        jobs += [pool.submit(try_mutation, build, mutation, engine) for mutation in mutations]
        for job in concurrent.futures.as_completed(jobs):
            line, fine = job.result()
            good += fine
            print(line, flush=True)
    print(f"{len(jobs)} checks, {len(jobs) - good} failed")
    return int(good != len(jobs) or not mutations)


if __name__ == "__main__":
    sys.exit(main())
