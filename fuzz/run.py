#!/usr/bin/env python3
"""Runs the fuzzers for a bounded time and keeps what they find.

    run.py --build build/fuzz --work ~/.cache/syncblob/fuzz            every target, 60 s each
    run.py --build build/fuzz --work ~/.cache/syncblob/fuzz 600 reshape
    run.py --build build/fuzz --work ~/.cache/syncblob/fuzz --merge    adds to the corpora what
                                                                       past runs found

A finding ends its target's run: the input is minimised, kept under
regressions/TARGET/, and the command that reproduces it is printed. Inputs
that reach new code are kept in the work folder and are where the next run
begins. Exit status: 0 nothing found, 1 a finding, 2 wrong usage.
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FUZZ = pathlib.Path(__file__).resolve().parent
RUST = FUZZ.parent / "bindings/syncblob-net/fuzz/fuzz_targets"
INPUT_TIMEOUT = 10  # seconds for one input: far beyond what any of them needs
MEMORY_MB = 2048
MINIMISE_SECONDS = 30


def c_targets():
    return sorted(path.stem for path in (FUZZ / "targets").glob("*.c"))


def rust_targets():
    return sorted(path.stem for path in RUST.glob("*.rs"))


def targets():
    return [*c_targets(), *rust_targets()]


def kept_inputs(target):
    """The folders of the tree that hold inputs of a target."""
    folders = [FUZZ / "corpus" / target, FUZZ / "regressions" / target]
    return [str(folder) for folder in folders if folder.is_dir()]


def fuzzer(build, target):
    return str(build / "fuzz" / f"fuzz.{target}")


def limits(target):
    options = [f"-timeout={INPUT_TIMEOUT}", f"-rss_limit_mb={MEMORY_MB}"]
    dictionary = FUZZ / "dictionaries" / f"{target}.dict"
    return options + ([f"-dict={dictionary}"] if dictionary.exists() else [])


def story(log):
    """The lines of a fuzzer's log that say what was found."""
    lines = log.splitlines()
    for i, line in enumerate(lines):
        if "broken promise" in line:
            return f"{line}\n{lines[i + 1] if i + 1 < len(lines) else ''}"
        if "runtime error:" in line:
            return line
        if re.match(r"thread '.*' .*panicked at", line):
            return f"{line}\n{lines[i + 1] if i + 1 < len(lines) else ''}"
    found = [line for line in lines if re.match(r"==\d+==ERROR|SUMMARY", line)]
    return "\n".join(found[:2]) or "\n".join(lines[-20:])


def minimise(build, target, found):
    """A smaller input that still fails, or the same one."""
    smaller = found.with_name(found.name + ".min")
    subprocess.run([fuzzer(build, target), "-minimize_crash=1", *limits(target),
                    f"-max_total_time={MINIMISE_SECONDS}", f"-exact_artifact_path={smaller}",
                    str(found)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return smaller if smaller.exists() else found


def keep(build, target, found):
    """Puts the finding among the regressions; gives its place."""
    kind = found.name.split("-")[0]
    if kind == "crash":
        found = minimise(build, target, found)
    digest = hashlib.sha256(found.read_bytes()).hexdigest()[:12]
    place = FUZZ / "regressions" / target / f"{kind}-{digest}"
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(found, place)
    return place


def report(build, target, place, what):
    place = os.path.relpath(place)
    driver = "replay" if target in c_targets() else "fuzz"
    return (f"FOUND   {target}: {place}\n{what}\n"
            f"to reproduce: {os.path.relpath(build)}/fuzz/{driver}.{target} {place}")


def run_fuzzer(build, target, *words):
    """Runs it with more options and folders of inputs: (its log, what it found or None)."""
    with tempfile.TemporaryDirectory() as folder:
        command = [fuzzer(build, target), *limits(target), f"-artifact_prefix={folder}/", *words]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace")
        if ran.returncode == 0:
            return ran.stdout, None
        found = sorted(path for path in pathlib.Path(folder).iterdir())
        if not found:
            return ran.stdout, f"FAILED  {target}: {story(ran.stdout)}"
        place = keep(build, target, found[0])
    return ran.stdout, report(build, target, place, story(ran.stdout))


def fuzz(build, work, target, seconds):
    """One target's run: (line for people, whether something was found)."""
    corpus = work / target
    corpus.mkdir(parents=True, exist_ok=True)
    log, found = run_fuzzer(build, target, f"-max_total_time={seconds}", "-print_final_stats=1",
                            str(corpus), *kept_inputs(target))
    return found or summary(target, log), found is not None


def summary(target, log):
    def figure(name):
        numbers = re.findall(name + r": +(\d+)", log)
        return int(numbers[-1]) if numbers else 0
    runs, rate = figure("number_of_executed_units"), figure("average_exec_per_sec")
    return (f"ok      {target:16}{runs:>12,} runs{rate:>9,} a second"
            f"{figure('cov'):>8,} edges{figure('corp'):>7,} inputs")


def afl_queue(work, target):
    """Where afl.py leaves a target's corpus."""
    return work / "afl" / target / "default" / "queue"


def merge(build, work, target):
    """Adds to the corpus the past finds that reach something new."""
    corpus = FUZZ / "corpus" / target
    before = len(list(corpus.iterdir()))
    # Of AFL++'s, which are more, those that reach a new edge; how often one is passed is not asked.
    for finds, options in ((work / target, []), (afl_queue(work, target), ["-use_counters=0"])):
        if finds.is_dir():
            subprocess.run([fuzzer(build, target), "-merge=1", *limits(target), *options,
                            str(corpus), str(finds)], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    return f"{target}: {len(list(corpus.iterdir())) - before} inputs added"


def parse(parser, known):
    """The arguments, with what a run of either engine is told: targets of those known, seconds."""
    parser.add_argument("--work", required=True, type=pathlib.Path,
                        help="where inputs are kept from run to run")
    parser.add_argument("rest", nargs="*", metavar="SECONDS|TARGET")
    args = parser.parse_args()
    numbers = [word for word in args.rest if word.isdigit()]
    args.targets = [word for word in args.rest if not word.isdigit()] or known
    args.seconds = int(numbers[0]) if numbers else 60
    unknown = set(args.targets) - set(known)
    if unknown or len(numbers) > 1 or args.seconds == 0:
        parser.error(f"SECONDS is one number above 0, TARGET one of {', '.join(known)}")
    return args


def in_parallel(run, calls):
    """The results of run(*call), as they come."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = [pool.submit(run, *call) for call in calls]
        for done in concurrent.futures.as_completed(runs):
            yield done.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path,
                        help="build folder of the preset fuzz")
    parser.add_argument("--merge", action="store_true", help="merge instead of fuzzing")
    args = parse(parser, targets())
    if args.merge:
        for target in args.targets:
            print(merge(args.build, args.work, target), flush=True)
        return 0
    any_found = False
    runs = [(args.build, args.work, target, args.seconds) for target in args.targets]
    for line, found in in_parallel(fuzz, runs):
        any_found |= found
        print(line, flush=True)
    return int(any_found)


if __name__ == "__main__":
    sys.exit(main())
