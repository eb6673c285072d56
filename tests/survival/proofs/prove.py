#!/usr/bin/env python3
"""Has ESBMC prove every harness of this folder, and refuse every planted error.

    prove.py --esbmc PROGRAM [--selftest] [NAME...]

A harness NAME.c says in its first comment how often loops are unwound
("--unwind N"); that N suffices is proved with the rest. With --selftest each
error of errors.json replaces a text that occurs once in a source of the library;
the proof must then find a claim that does not hold. An error that is not
refused, or whose text is not there any more, fails.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
SECONDS = 900
CHECKS = ["--overflow-check", "--ub-shift-check", "--std", "c17", "--64"]


class Broken(Exception):
    """Neither proved nor refused: a harness or an error that is wrong."""


def command(esbmc, proof, folders):
    harness = FOLDER / f"{proof}.c"
    unwind = re.search(r"--unwind (\d+)", harness.read_text())
    if not unwind:
        raise Broken("the harness does not say --unwind N")
    includes = [*folders, FOLDER, ROOT / "c/src", ROOT / "c/include", ROOT / "tests/support"]
    return [esbmc, str(harness), "--unwind", unwind[1], *CHECKS, "-DSB_EXPERIMENTAL",
            *(word for folder in includes for word in ("-I", str(folder)))]


def story(output):
    """The claim that does not hold, on a line."""
    lines = output[output.index("Violated property:"):].splitlines()[1:3]
    return ": ".join(line.strip() for line in lines).replace(f"{ROOT}/", "")


def refusal(esbmc, proof, folders=()):
    """None if everything was proved, else the claim that does not hold."""
    try:
        ran = subprocess.run(command(esbmc, proof, folders), capture_output=True, text=True,
                             errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Broken(f"no answer within {SECONDS} s") from None
    output = ran.stdout + ran.stderr
    # Any value is what such a function gives, but nothing is what it does to memory.
    unknown = set(re.findall(r"no body for function (\S+)", output))
    unknown = sorted(name for name in unknown if not name.startswith("any_"))
    if unknown:
        raise Broken("functions without a body: " + ", ".join(unknown))
    if ran.returncode == 0 and "VERIFICATION SUCCESSFUL" in output:
        return None
    if "VERIFICATION FAILED" in output and "Violated property:" in output:
        return story(output)
    raise Broken(" ".join(output.split()[-60:]))


def plant(error, folder):
    """The source with the error in it, before the library's own on the search path."""
    text = (ROOT / error["file"]).read_text()
    if text.count(error["old"]) != 1:
        raise Broken(f"occurs {text.count(error['old'])} times: {error['old']!r}")
    changed = folder / pathlib.Path(error["file"]).relative_to("c/src")
    changed.parent.mkdir(parents=True)
    changed.write_text(text.replace(error["old"], error["new"]))


def prove(esbmc, proof):
    """(line for people, whether it is proved)"""
    start = time.monotonic()
    try:
        claim = refusal(esbmc, proof)
    except Broken as broken:
        return f"BROKEN          {proof}: {broken}", False
    seconds = time.monotonic() - start
    if claim:
        return f"FAILED  {seconds:4.0f} s  {proof}: {claim}", False
    return f"proved  {seconds:4.0f} s  {proof}", True


def refuse(esbmc, error):
    start = time.monotonic()
    what = f"{error['proof']}: {error['name']}"
    try:
        with tempfile.TemporaryDirectory() as folder:
            plant(error, pathlib.Path(folder))
            claim = refusal(esbmc, error["proof"], [folder])
    except Broken as broken:
        return f"BROKEN          {what}: {broken}", False
    seconds = time.monotonic() - start
    if not claim:
        return f"MISSED  {seconds:4.0f} s  {what}", False
    return f"refused {seconds:4.0f} s  {what} ({claim})", True


def without_error(proofs, errors):
    return [p for p in proofs if not any(e["proof"] == p for e in errors)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--esbmc", required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--selftest", action="store_true", help="the planted errors too")
    parser.add_argument("names", nargs="*", help="proofs whose names have one of these in them")
    args = parser.parse_args()
    proofs = [p for p in sorted(p.stem for p in FOLDER.glob("*.c"))
              if not args.names or any(name in p for name in args.names)]
    errors = [e for e in json.loads((FOLDER / "errors.json").read_text()) if e["proof"] in proofs]
    lacking = without_error(proofs, errors)
    if lacking or not proofs:
        sys.exit(f"prove: without a planted error: {', '.join(lacking)}" if proofs else
                 "prove: there is no such proof")
    good = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = [pool.submit(prove, args.esbmc, proof) for proof in proofs]
        jobs += [pool.submit(refuse, args.esbmc, e) for e in errors if args.selftest]
        for job in concurrent.futures.as_completed(jobs):
            line, fine = job.result()
            good += fine
            print(line, flush=True)
    print(f"{good} passed, {len(jobs) - good} failed")
    return int(good != len(jobs))


if __name__ == "__main__":
    sys.exit(main())
