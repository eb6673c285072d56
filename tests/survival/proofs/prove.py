#!/usr/bin/env python3
"""Runs ESBMC on every harness of this folder. With --selftest, each proof must fail with each planted error.

    prove.py --esbmc PROGRAM [--jobs N] [--selftest] [NAME...]

README.md describes how to write a harness.
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
CHECKS = ["--overflow-check", "--ub-shift-check", "--std", "c17", "--64", "-DSB_EXPERIMENTAL"]
PROOF = re.compile(r"/\*((?:(?!\*/).)*--unwind (\d+)(?:(?!\*/).)*)\*/.*?^void (\w+)\(void\) \{",
                   re.DOTALL | re.MULTILINE)
ERROR = re.compile(r'planted: (".*")\s*-> (".*")')


class Broken(Exception):
    """A run that neither proves nor refutes the claims: the harness or the planted error is wrong."""


class Proof:
    def __init__(self, harness, name, unwind, comment):
        self.harness, self.name, self.unwind = harness, name, unwind
        self.errors = [[json.loads(text) for text in error] for error in ERROR.findall(comment)]

    def refusal(self, esbmc, folders=()):
        """Returns the claim that does not hold, or None."""
        includes = [*folders, FOLDER, ROOT / "c/src", ROOT / "c/include", ROOT / "tests/support"]
        command = [esbmc, str(self.harness), "--function", self.name, "--unwind", self.unwind, *CHECKS,
                   *(word for folder in includes for word in ("-I", str(folder)))]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, errors="replace",
                                 timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise Broken(f"ESBMC gave no answer within {SECONDS} s") from None
        output = ran.stdout + ran.stderr
        # ESBMC assumes that a function without a body returns any value and changes no memory.
        unknown = sorted({name for name in re.findall(r"no body for function (\S+)", output)
                          if not name.startswith("any_")})
        if unknown:
            raise Broken("functions without a body: " + ", ".join(unknown))
        if ran.returncode == 0 and "VERIFICATION SUCCESSFUL" in output:
            return None
        if "VERIFICATION FAILED" in output and "Violated property:" in output:
            lines = output[output.index("Violated property:"):].splitlines()[1:3]
            return ": ".join(line.strip() for line in lines).replace(f"{ROOT}/", "")
        raise Broken(" ".join(output.split()[-60:]))

    def plant(self, old, new, folder):
        for name in re.findall(r'#include "(\w+/\w+\.[ch])"', self.harness.read_text()):
            source = ROOT / "c/src" / name
            if source.exists() and source.read_text().count(old) == 1:
                changed = pathlib.Path(folder, name)
                changed.parent.mkdir(parents=True)
                changed.write_text(source.read_text().replace(old, new))
                return
        raise Broken("the text does not occur exactly once in a source of the harness")


def prove(esbmc, proof):
    claim = proof.refusal(esbmc)
    return ("FAILED", f"{proof.name}: {claim}", False) if claim else ("proved", proof.name, True)


def refuse(esbmc, proof, old, new):
    with tempfile.TemporaryDirectory() as folder:
        proof.plant(old, new, folder)
        claim = proof.refusal(esbmc, [folder])
    what = f"{proof.name}: {json.dumps(old)} -> {json.dumps(new)}"
    return ("refused", f"{what} ({claim})", True) if claim else ("MISSED", what, False)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--esbmc", required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--selftest", action="store_true", help="also check that proofs find planted errors")
    parser.add_argument("names", nargs="*", help="run only proofs whose names contain one of these words")
    args = parser.parse_args()
    proofs = [Proof(path, name, unwind, comment) for path in sorted(FOLDER.glob("*.c"))
              for comment, unwind, name in PROOF.findall(path.read_text())]
    proofs = [p for p in proofs if not args.names or any(name in p.name for name in args.names)]
    unchecked = [proof.name for proof in proofs if not proof.errors]
    if unchecked or not proofs:
        sys.exit(f"prove: no planted error in {unchecked}" if proofs else "prove: no proof has this name")
    jobs = [(prove, proof) for proof in proofs]
    if args.selftest:
        jobs += [(refuse, proof, old, new) for proof in proofs for old, new in proof.errors]

    def timed(job):
        start = time.monotonic()
        try:
            verdict, what, fine = job[0](args.esbmc, *job[1:])
        except Broken as broken:
            verdict, what, fine = "BROKEN", f"{job[1].name} {job[2:]}: {broken}", False
        print(f"{verdict:7} {time.monotonic() - start:4.0f} s  {what}", flush=True)
        return fine

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        good = list(pool.map(timed, jobs))
    print(f"{sum(good)} passed, {good.count(False)} failed")
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
