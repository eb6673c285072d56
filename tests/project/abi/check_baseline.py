#!/usr/bin/env python3
"""The shared library's ABI, as libabigail reads it from the debug information, beside the recorded
one: any difference fails. Structs that the public headers do not define may change, and so may
experimental functions.

    check_baseline.py --cc CC --include FOLDER --baseline FILE [--update [--reviewed]] LIBRARY

--update records the library's, if it only adds functions to what is recorded; with --reviewed,
also what somebody has found to be allowed.
Exits with 77, and says why, where it cannot be told.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

import declarations

SKIPPED = 77
MACHINES = {"libsyncblob-x86_64.abi": "X86-64"}


def why_not(library, baseline):
    """Why there is nothing to compare, or nothing."""
    for tool in ("abidw", "abidiff"):
        if not shutil.which(tool):
            return f"{tool} is not installed (abigail-tools)"
    header = subprocess.run(["readelf", "-hSW", library], check=True, text=True,
                            capture_output=True).stdout
    machine = re.search(r"Machine:\s*(.*)", header)[1]
    if MACHINES[baseline.name] not in machine:
        return f"{baseline.name} is for another machine, the library for {machine}"
    return "" if ".debug_info" in header else "the library has no debug information"


def drop_experimental(corpus):
    """Functions that promise nothing."""
    for parent in corpus.iter():
        for child in list(parent):
            version = child.get("version") or child.get("elf-symbol-id", "").partition("@@")[2]
            if version.startswith("SYNCBLOB_EXPERIMENTAL"):
                parent.remove(child)


def name_symbols(corpus):
    """Every exported function has one declaration that names its symbol, without which abidiff
    would not compare it: abidw leaves the name out where another file calls the function."""
    symbols = {symbol.get("name"): f"{symbol.get('name')}@@{symbol.get('version')}"
               for symbol in corpus.iter("elf-symbol")}
    found = {function.get("name") for function in corpus.iter("function-decl")
             if function.get("elf-symbol-id")}
    for function in corpus.iter("function-decl"):
        name = function.get("name")
        if name in symbols and name not in found:
            function.set("mangled-name", name)
            function.set("elf-symbol-id", symbols[name])
            found.add(name)
    if found != set(symbols):
        sys.exit(f"no declarations in the debug information: {', '.join(set(symbols) - found)}")


def close_private_structs(corpus, public):
    """Leaves of a struct that callers do not see its name. libabigail does this by the folders of
    headers, but compares the names of files alone, and c/src has a blob.h, too."""
    for struct in list(corpus.iter("class-decl")):
        if struct.get("name") not in public:
            for child in list(struct):
                struct.remove(child)
            struct.text = None
            struct.attrib.pop("size-in-bits", None)
            struct.set("is-declaration-only", "yes")


def reachable(corpus):
    """Ids of the types that exported functions lead to."""
    types = {element.get("id"): element for element in corpus.iter() if element.get("id")}
    waiting = [function for function in corpus.iter("function-decl")
               if function.get("elf-symbol-id")]
    found = set()
    while waiting:
        for element in waiting.pop().iter():
            for key in ("type-id", "naming-typedef-id"):
                reference = element.get(key)
                if reference in types and reference not in found:
                    found.add(reference)
                    waiting.append(types[reference])
    return found


def drop_unreachable(corpus):
    kept = reachable(corpus)
    for unit in list(corpus.iter("abi-instr")):
        for child in list(unit):
            is_type = child.get("id") is not None
            if child.get("id") not in kept if is_type else not child.get("elf-symbol-id"):
                unit.remove(child)
        if len(unit) == 0:
            corpus.remove(unit)
        else:  # wherever it was compiled
            unit.set("path", re.sub(r".*/(?=(?:c/src|cuda|proto)/)", "", unit.get("path")))


def record(cc, include, library):
    """The library's ABI as XML, without what callers do not see."""
    command = ["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs",
               "--no-elf-needed", "--type-id-style", "hash", library]
    text = subprocess.run(command, check=True, text=True, capture_output=True).stdout
    corpus = ElementTree.fromstring(text)
    drop_experimental(corpus)
    name_symbols(corpus)
    close_private_structs(corpus, declarations.structs(cc, include))
    drop_unreachable(corpus)
    ElementTree.indent(corpus, " ")
    return ElementTree.tostring(corpus, encoding="unicode") + "\n"


def difference(baseline, recorded, *options):
    """abidiff's report, empty when there is nothing to report."""
    with tempfile.NamedTemporaryFile("w", suffix=".abi") as found:
        found.write(recorded)
        found.flush()
        run = subprocess.run(["abidiff", *options, baseline, found.name], text=True,
                             capture_output=True)
    if run.returncode == 0:
        return ""
    return run.stdout + run.stderr or f"abidiff ended with {run.returncode}"


def update(baseline, recorded, reviewed):
    if baseline.exists() and not reviewed:
        report = difference(baseline, recorded, "--no-added-syms")
        if report:
            print(f"{report}\nnot recorded: more than functions that are new; see c/abi/README.md")
            return 1
    baseline.write_text(recorded)
    return 0


def check(baseline, recorded):
    report = difference(baseline, recorded)
    if report:
        print(f"{report}\nThe ABI is not the recorded one: c/abi/README.md says what may change "
              "and how that is recorded.")
    return bool(report)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--baseline", required=True, type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--reviewed", action="store_true")
    parser.add_argument("library")
    given = parser.parse_args()
    reason = why_not(given.library, given.baseline)
    if reason:
        print(f"skipped: {reason}")
        return SKIPPED
    recorded = record(given.cc, given.include, given.library)
    if given.update:
        return update(given.baseline, recorded, given.reviewed)
    return check(given.baseline, recorded)


if __name__ == "__main__":
    sys.exit(main())
