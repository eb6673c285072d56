#!/usr/bin/env python3
"""check_materials.py BILL: checks that a bill of materials lists exactly the crates from which the command
`syncblob` is built, on any system.

The list must equal cargo's list of the program's crates, and each entry must have a licence. Paths
must be relative to the repository's root, not paths of the machine where the bill was made.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[3]
TREE = ["cargo", "tree", "--locked", "--package=syncblob-cli", "--edges=normal,build",
        "--target=all", "--prefix=none", "--format={p}"]


def crates_of_command():
    lines = subprocess.run(TREE, cwd=HERE, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^(\S+) v(\S+)", lines, re.M))


def wrong(text):
    bill = json.loads(text)
    parts = [bill["metadata"]["component"], *bill["components"]]
    listed = {(part["name"], part["version"]) for part in parts}
    made_of = crates_of_command()
    yield from (f"not listed: {name} {version}" for name, version in sorted(made_of - listed))
    yield from (f"not in it: {name} {version}" for name, version in sorted(listed - made_of))
    yield from (f"without a licence: {part['name']}" for part in parts if not part.get("licenses"))
    folders = set(re.findall(r'file:///([^"#?]*)', text))
    yield from (f"no folder of the repository: {name}" for name in sorted(folders)
                if not (HERE / name).is_dir())


def main():
    found = list(wrong(Path(sys.argv[1]).read_text()))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
