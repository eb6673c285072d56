#!/usr/bin/env python3
"""Plants errors in a copy of the last commit and in a bill of materials; check.py and
check_materials.py must report them."""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import check_materials

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]

# File, replaced pattern, replacement, expected complaint.
PLANTED = [
    ("CMakeLists.txt", r"VERSION 0\.", "VERSION 7.", r"CMakeLists\.txt \(1\) has 7\."),
    ("Cargo.toml", r'^version = "0\.', 'version = "7.', r"CMakeLists\.txt \(1\) has .*, not 7\."),
    ("Cargo.lock", r'(name = "syncblob-sys"\nversion = ")0', r"\g<1>7", r"Cargo\.lock .* has 7\."),
    ("c/include/syncblob/base.h", r"(VERSION_PATCH )\d+", r"\g<1>77", r"base\.h .* has .*\.77"),
    ("bindings/syncblob/Cargo.toml", r'(syncblob-sys = { version = ")0', r"\g<1>7",
     r"bindings/syncblob/Cargo\.toml \(1\) has 7\."),
    ("bindings/syncblob-cli/Cargo.toml", r"^description = .*\n", "",
     "syncblob-cli has no description"),
    ("bindings/syncblob/Cargo.toml", r"^repository.workspace = true",
     'repository = "https://example.org/another"', "repositories: .*another"),
    ("CHANGELOG.md", r"^## .*", "## 7.7.7 (2030-01-01)", r"CHANGELOG\.md begins with '7\.7\.7 "),
    ("c/abi/libsyncblob.map", r"^SYNCBLOB_\d[\d.]* {", "SYNCBLOB_7.7 {",
     r"libsyncblob\.map has nodes of .*7\.7, not of"),
    ("c/mpi/libsyncblob-mpi.map", r"SYNCBLOB_MPI_\d[\d.]* {", "SYNCBLOB_MPI_7.7 {",
     r"libsyncblob-mpi\.map has nodes of 7\.7, not of"),
]


def git(copy, *words):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=copy,
                   check=True, stdout=subprocess.DEVNULL)


def check(copy):
    done = subprocess.run([sys.executable, "-B", HERE / "check.py", copy], capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stderr, done.stdout


def planted(copy, name, pattern, text, wanted):
    path = copy / name
    whole = path.read_text()
    changed = re.sub(pattern, text, whole, flags=re.M)
    path.write_text(changed)
    git(copy, "commit", "-qam", "planted")
    status, errors, _ = check(copy)
    git(copy, "reset", "-q", "--hard", "HEAD~")
    return changed != whole and status == 1 and re.search(wanted, errors) is not None


def bills():
    """Returns {expected complaint: wrong bill of materials}; None: a correct bill."""
    parts = [{"name": name, "version": version, "licenses": ["MIT"], "purl": "file:///bindings/syncblob"}
             for name, version in sorted(check_materials.crates_of_command())]
    first = parts[0]["name"]
    another = {"name": "another", "version": "1.0.0", "licenses": ["MIT"]}
    return {
        None: parts,
        f"not listed: {first} {parts[0]['version']}": parts[1:],
        "not in it: another 1.0.0": [*parts, another],
        f"without a licence: {first}": [{**parts[0], "licenses": []}, *parts[1:]],
        "no folder of the repository: home/me": [{**parts[0], "purl": "file:///home/me#1"}, *parts[1:]],
    }


def problems_of_bill(parts):
    program, *others = parts[::-1]
    return list(check_materials.wrong(json.dumps({"metadata": {"component": program},
                                                  "components": others})))


def main():
    results = {f"a bill: {problem}": problems_of_bill(parts) == ([problem] if problem else [])
               for problem, parts in bills().items()}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        subprocess.run(["git", "clone", "-q", "--shared", ROOT, copy], check=True)
        results["nothing planted"] = check(copy)[:2] == (0, "")
        order = check(copy)[2].splitlines()[-1]
        results["crates in order"] = order == "syncblob-sys syncblob syncblob-net syncblob-cli"
        for name, *planting in PLANTED:
            results[f"{name}: {planting[-1]}"] = planted(copy, name, *planting)
        (copy / "CHANGELOG.md").write_text("## Unreleased (0.1.0)\n")
        results["a change that is not committed"] = "not committed:  M CHA" in check(copy)[1]
    for name, passed in results.items():
        print("ok    " if passed else "FAILED", name)
    print(f"{sum(results.values())} passed, {len(results) - sum(results.values())} failed")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
