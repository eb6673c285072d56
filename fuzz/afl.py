#!/usr/bin/env python3
"""Runs AFL++ on the harnesses, from nothing but one byte, and keeps what it finds.

    afl.py --build build/afl --libfuzzer build/fuzz --work ~/.cache/syncblob/fuzz
    afl.py ... 600 reshape

The targets run 60 s each where no number is given. A target's corpus begins
empty, so that what it reaches owes nothing to libFuzzer; that of the run
before is thrown away (run.py --merge takes over what is new in it). A finding
ends its target's run, and is kept as run.py keeps its own. At the end
libFuzzer's build runs the corpus, and looks for leaks, which AFL++ does not.

Prints a table in Markdown, then the findings. Exit status: 0 nothing found, 1
a finding or an engine that failed, 2 wrong usage.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from run import (FUZZ, INPUT_TIMEOUT, afl_queue, c_targets, fuzzer, in_parallel, keep, parse,
                 report, run_fuzzer, story)

MOST_BYTES = 4096  # of an input: libFuzzer's own limit where it begins with nothing
ENVIRONMENT = {
    "AFL_BENCH_UNTIL_CRASH": "1",
    "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1",  # a program may take the core files
    "AFL_NO_AFFINITY": "1",
    "AFL_NO_COLOR": "1",
    "AFL_NO_UI": "1",
    "AFL_SKIP_CPUFREQ": "1",
}


class Failed(Exception):
    """afl-fuzz did not run: its last words."""


def mutator(build, target):
    """The library that changes messages, for a target that takes them."""
    library = build / "fuzz" / f"mutator.{target}.so"
    return library if library.exists() else None


def hunt(program, target, seconds, folder, library):
    """Runs a program of the preset afl in a folder that is new: AFL++'s figures."""
    seeds = folder / "seeds"
    seeds.mkdir(parents=True)
    (seeds / "zero").write_bytes(b"\0")
    environment = {**os.environ, **ENVIRONMENT}
    if library:
        environment["AFL_CUSTOM_MUTATOR_LIBRARY"] = str(library)
    ran = subprocess.run(["afl-fuzz", "-i", str(seeds), "-o", str(folder), "-V", str(seconds),
                          "-t", str(1000 * INPUT_TIMEOUT), "-m", "none", "-G", str(MOST_BYTES),
                          "-x", str(FUZZ / "dictionaries" / f"{target}.dict"), "--", str(program)],
                         env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, errors="replace")
    figures = folder / "default" / "fuzzer_stats"
    if ran.returncode != 0 or not figures.exists():
        raise Failed("\n".join(ran.stdout.splitlines()[-20:]))
    return dict(re.findall(r"^(\w+) +: (.*)$", figures.read_text(), re.MULTILINE))


def found(folder, kind):
    """The inputs that AFL++ put among the crashes, or the hangs."""
    return sorted((folder / "default" / kind).glob("id:*"))


def keep_finding(libfuzzer, target, kind, path):
    """Keeps an input; gives the report. It may fail after others alone."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copyfile(path, pathlib.Path(folder) / f"{kind}-afl")
        place = keep(libfuzzer, target, copy)
    replay = libfuzzer / "fuzz" / f"replay.{target}"
    try:
        ran = subprocess.run([replay, place], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace", timeout=2 * INPUT_TIMEOUT)
        what = story(ran.stdout) if ran.returncode else "it does not fail by itself"
    except subprocess.TimeoutExpired:
        what = f"it takes more than {INPUT_TIMEOUT} s"
    return report(libfuzzer, target, place, what)


def fuzz(build, libfuzzer, work, target, seconds):
    """One target's run: (row of the table, reports of findings)."""
    folder = work / "afl" / target
    shutil.rmtree(folder, ignore_errors=True)
    try:
        figures = hunt(fuzzer(build, target), target, seconds, folder, mutator(build, target))
    except Failed as failed:
        return f"| {target} | failed |", [f"FAILED  {target}: {failed}"]
    crashes, hangs = found(folder, "crashes"), found(folder, "hangs")
    reports = [keep_finding(libfuzzer, target, kind, paths[0])
               for kind, paths in (("crash", crashes), ("timeout", hangs)) if paths]
    _, again = run_fuzzer(libfuzzer, target, "-runs=0", str(afl_queue(work, target)))
    if again:
        reports.append(again)
    numbers = {name: f"{int(figures[name]):,}" for name in
               ("run_time", "execs_done", "edges_found", "total_edges", "corpus_count")}
    what = [f"{name}: {len(paths)}" for name, paths in (("crashes", crashes), ("hangs", hangs))
            if paths] + ["only in libFuzzer's build: 1"] * bool(again)
    return "| {} | {run_time} | {execs_done} | {edges_found} of {total_edges} | {corpus_count} " \
        "| {} |".format(target, ", ".join(what) or "nothing", **numbers), reports


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path,
                        help="build folder of the preset afl")
    parser.add_argument("--libfuzzer", required=True, type=pathlib.Path,
                        help="build folder of the preset fuzz: minimises, replays")
    args = parse(parser, c_targets())
    print("| target | seconds | executions | edges | inputs kept | found |",
          "|---|---|---|---|---|---|", sep="\n", flush=True)
    reports = []
    for row, more in in_parallel(fuzz, [(args.build, args.libfuzzer, args.work, target,
                                         args.seconds) for target in args.targets]):
        print(row, flush=True)
        reports += more
    if reports:
        print("", *reports, sep="\n")
    return int(bool(reports))


if __name__ == "__main__":
    sys.exit(main())
