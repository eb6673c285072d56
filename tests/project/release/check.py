#!/usr/bin/env python3
"""Checks that the repository is ready for a release. Prints the version, and the crates in the order to publish."""

import graphlib
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NUMBERS = r"\d+\.\d+\.\d+"


def output(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def versions():
    found = {}

    def look(name, pattern):
        for at, match in enumerate(re.finditer(pattern, (ROOT / name).read_text(), re.M)):
            found[f"{name} ({at + 1})"] = ".".join(match.groups())
        if not any(place.startswith(name + " ") for place in found):
            found[name] = "nothing"

    look("Cargo.toml", rf'^version = "({NUMBERS})"')
    look("CMakeLists.txt", rf"^project\(syncblob VERSION ({NUMBERS}) ")
    look("c/include/syncblob/base.h",
         r"define SB_VERSION_MAJOR (\d+)[^@]*?SB_VERSION_MINOR (\d+)[^@]*?SB_VERSION_PATCH (\d+)")
    look("Cargo.lock", rf'^name = "syncblob[a-z-]*"\nversion = "({NUMBERS})"')
    for manifest in sorted((ROOT / "bindings").glob("syncblob*/Cargo.toml")):
        if re.search(r"^syncblob[a-z-]* = \{ version", manifest.read_text(), re.M):
            name = str(manifest.relative_to(ROOT))
            look(name, rf'^syncblob[a-z-]* = \{{ version = "({NUMBERS})"')
    return found


def wrong_versions(version):
    return [f"{place} has {found}, not {version}"
            for place, found in versions().items() if found != version]


def wrong_changelog(version):
    headings = re.findall(r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    first = headings[0] if headings else "nothing"
    if first == f"Unreleased ({version})" or re.match(rf"{re.escape(version)} \(\d{{4}}-", first):
        return []
    return [f"CHANGELOG.md begins with {first!r}, not with {version}"]


def wrong_abi(version):
    major, minor, _ = version.split(".")
    wrong = []
    maps = [path.relative_to(ROOT) for folder in ("c", "bindings")
            for path in sorted((ROOT / folder).glob("*/libsyncblob*.map"))]
    for name in maps:
        nodes = set(re.findall(r"^SYNCBLOB_\w*?(\d[\d.]*) \{", (ROOT / name).read_text(), re.M))
        if f"{major}.{minor}" not in nodes or (major == "0" and len(nodes) > 1):
            wrong.append(f"{name} has nodes of {', '.join(sorted(nodes))}, not of {major}.{minor}")
    return wrong


def wrong_tree():
    printed = output("git", "status", "--porcelain")
    return [f"not committed: {line}" for line in printed.splitlines()]


def published():
    printed = output("cargo", "metadata", "--format-version=1", "--no-deps")
    return [package for package in json.loads(printed)["packages"] if package["publish"] != []]


def wrong_manifests(packages):
    shown = ("description", "license", "repository", "readme", "keywords", "categories",
             "rust_version")
    wrong = [f"{package['name']} has no {name}"
             for package in packages for name in shown if not package[name]]
    places = sorted({package["repository"] for package in packages if package["repository"]})
    return wrong + ([f"repositories: {', '.join(places)}"] if len(places) > 1 else [])


def in_order(packages):
    needs = {package["name"]: {need["name"] for need in package["dependencies"]} for package in packages}
    return graphlib.TopologicalSorter({name: needs[name] & needs.keys() - {name} for name in needs}).static_order()


def main():
    version = versions().get("Cargo.toml (1)", "0.0.0")
    packages = published()
    wrong = [*wrong_versions(version), *wrong_changelog(version),
             *wrong_abi(version), *wrong_manifests(packages), *wrong_tree()]
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    print(version)
    print(*in_order(packages))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
