#!/usr/bin/env python3
"""The functions of the public headers, those of the version script and those that the shared
library exports are the same, tier by tier; the script is sorted; the SONAME is ours. Of a library
over the core, libsyncblob-NAME, all functions are in one node, SYNCBLOB_NAME_VERSION.

    check_exports.py --cc CC --include FOLDER --map FILE LIBRARY
    check_exports.py --cc CC --include FOLDER --over NAME --headers FOLDER --map FILE LIBRARY
"""
import argparse
import pathlib
import re
import subprocess
import sys

import declarations


def nodes_of_map(text):
    """The names that each version exports, in their order."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    found = {}
    for name, body in re.findall(r"(\S+)\s*\{([^}]*)\}[^;]*;", text):
        found[name] = re.findall(r"([\w*]+);", re.sub(r"local:.*", "", body, flags=re.DOTALL))
    return found


def nodes_of_library(library):
    output = subprocess.run(["nm", "-D", "--with-symbol-versions", "--defined-only", library],
                            check=True, text=True, capture_output=True).stdout
    found = {}
    for line in output.splitlines():
        _, kind, name = line.split()
        name, _, node = name.partition("@@")
        if kind != "A":  # a version itself
            found.setdefault(node or "no version", []).append(name)
    return found


def soname(library):
    output = subprocess.run(["readelf", "-d", "-W", library], check=True, text=True,
                            capture_output=True).stdout
    found = re.search(r"\(SONAME\).*\[(.*)\]", output)
    return found[1] if found else "none"


def tier_of(node, version):
    """Whose node it is. Each has the library's number in it: as long as the major version is 0, that
    is this version; from 1.0 on a stable node may be that of an earlier minor version."""
    stable = re.fullmatch(r"SYNCBLOB_(\d+)\.(\d+)", node)
    major, minor = (int(part) for part in version.split("."))
    minors = range(0 if major else minor, minor + 1)
    if stable and int(stable[1]) == major and int(stable[2]) in minors:
        return declarations.STABLE
    return {f"SYNCBLOB_BACKEND_{version}": declarations.BACKEND,
            f"SYNCBLOB_EXPERIMENTAL_{version}": declarations.EXPERIMENTAL}.get(node)


def compare(version, expected, found, what):
    complaints, exported = [], {tier: [] for tier in expected}
    for node, names in found.items():
        tier = tier_of(node, version)
        if tier:
            exported[tier] += names
        else:
            complaints.append(f"{what} has {node}, which is no tier's of version {version}")
    for tier, names in exported.items():
        complaints += [f"{name} is {tier} in the headers, but not in {what}"
                       for name in sorted(expected[tier] - set(names))]
        complaints += [f"{name} is {tier} in {what}, but not in the headers"
                       for name in sorted(set(names) - expected[tier])]
        complaints += [f"{name} is more than once in {what}"
                       for name in sorted(set(names)) if names.count(name) > 1]
    return complaints


def unsorted(script):
    return [f"{node} is not sorted: {name} comes after {before}"
            for node, exported in script.items()
            for before, name in zip(exported, exported[1:]) if before >= name]


def wrong_soname(library, expected):
    return [] if soname(library) == expected else [f"the SONAME is {soname(library)}, not {expected}"]


def check(cc, include, version_script, library):
    """What is wrong."""
    script = nodes_of_map(pathlib.Path(version_script).read_text())
    expected = declarations.tiers(cc, include)
    version = declarations.version(include)
    complaints = unsorted(script)
    complaints += compare(version, expected, script, "the version script")
    complaints += compare(version, expected, nodes_of_library(library), "the library")
    return complaints + wrong_soname(library, declarations.soname(include))


def check_over(cc, include, name, headers, version_script, library):
    """The same of a library over the core."""
    script = nodes_of_map(pathlib.Path(version_script).read_text())
    node = f"SYNCBLOB_{name.upper()}_{declarations.version(include)}"
    expected = {node: sorted(declarations.functions_over(cc, include, headers))}
    complaints = unsorted(script)
    for what, found in (("the version script", script), ("the library", nodes_of_library(library))):
        if {node: sorted(names) for node, names in found.items()} != expected:
            complaints.append(f"{what} has {found}, the headers {expected}")
    return complaints + wrong_soname(library, declarations.soname(include, f"-{name}"))


def main():
    parser = argparse.ArgumentParser()
    for option in ("--cc", "--include", "--map"):
        parser.add_argument(option, required=True)
    for option in ("--over", "--headers"):
        parser.add_argument(option)
    parser.add_argument("library")
    given = parser.parse_args()
    if given.over:
        complaints = check_over(given.cc, given.include, given.over, given.headers, given.map,
                                given.library)
    else:
        complaints = check(given.cc, given.include, given.map, given.library)
    print("\n".join(complaints))
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
