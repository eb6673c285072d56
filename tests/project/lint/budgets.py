#!/usr/bin/env python3
"""Compares the sizes and words of the tree with budgets.toml: budgets.py [--update]

Fails if a figure is above its budget or far below its budget. --update writes the tree's figures to budgets.toml.
"""
import collections
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUDGETS = pathlib.Path(__file__).with_name("budgets.toml")
SOURCE = {".c", ".h", ".cpp", ".hpp", ".inc", ".py", ".sh", ".rs", ".js", ".mjs", ".cmake", ""}
COUNTED = ("tests", "fuzz", "dev", ".ci")
LISTS = {".txt", ".json", ".tsv", ".toml", ".dict", ".options", ".supp"}
PROSE = {".c", ".h", ".cpp", ".hpp", ".py", ".sh", ".rs", ".js", ".mjs", ".cmake", ".md", ".yml", ""}


def tracked():
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True,
                           text=True).stdout.split("\0")
    return [pathlib.Path(name) for name in names if name and (ROOT / name).is_file()
            and not (ROOT / name).is_symlink()]


def folder(path):
    if path.parts[0] == "c" and "tests" in path.parts:
        return "/".join(path.parts[:path.parts.index("tests") + 1])
    if path.parts[0] not in COUNTED or "corpus" in path.parts:
        return ""
    depth = 3 if path.parts[:2] in {("tests", "survival"), ("tests", "project"), ("tests", "users")} else 2
    return "/".join(path.parts[:depth][:max(1, len(path.parts) - 1)])


def figures(patterns):
    files = tracked()
    found = {"lines": collections.Counter(), "total": collections.Counter(), "words": {}}
    prose = []
    for path in files:
        is_source = path.suffix in SOURCE or path.name == "CMakeLists.txt"
        if not (is_source or path.suffix in LISTS | PROSE):
            continue
        text = (ROOT / path).read_text(errors="replace")
        if row := folder(path):
            found["lines"][row] += is_source and text.count("\n")
            if is_source or path.suffix in LISTS:
                found["total"]["lines" if is_source else "lines of lists"] += text.count("\n")
        if path.suffix == ".md":
            found["total"]["words of pages"] += len(text.split())
        if path.suffix in PROSE and path.parts[0] != "proto":
            prose.append(text)
    found["total"]["files"] = len(files)
    every = re.sub(r"\n[\s*/#!>]*", " ", "\n".join(prose))  # a phrase may continue on the next line
    found["words"] = {pattern: len(re.findall(rf"(?<![\w/.-]){pattern}(?![\w/-])", every, re.IGNORECASE))
                      for pattern in patterns}
    return {table: {name: int(number) for name, number in sorted(rows.items()) if number}
            for table, rows in found.items()}


def write(found):
    text = BUDGETS.read_text()
    head = text[:text.index("[")]
    tables = [f"[{table}]\n" + "".join(f"'{name}' = {number}\n" for name, number in rows.items())
              for table, rows in found.items()]
    BUDGETS.write_text(head + "\n".join(tables))


def main():
    budgets = tomllib.loads(BUDGETS.read_text())
    found = figures(budgets["words"])
    if sys.argv[1:] == ["--update"]:
        found["words"] = {pattern: found["words"].get(pattern, 0) for pattern in budgets["words"]}
        write(found)
        return 0
    problems = []
    for table in budgets:
        for name in sorted(budgets[table].keys() | found[table].keys()):
            budget, now = budgets[table].get(name, 0), found[table].get(name, 0)
            if now > budget:
                hint = f": git grep -niP '{name}'" if table == "words" else ""
                problems.append(f"{table}: {name}: {now}, {now - budget} above its budget{hint}")
            elif budget - now > 20 + budget // 20:
                problems.append(f"{table}: {name}: {now}; lower its budget of {budget}")
    print("\n".join(problems))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
