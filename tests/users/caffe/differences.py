#!/usr/bin/env python3
"""Compares a program's lines "case: result" with a column of the guide's table.

    check.py c/guide/caffe.md Caffe PROGRAM
    check.py c/guide/caffe.md syncblob PROGRAM
"""

import pathlib
import subprocess
import sys

HEADING = "## Where the two differ"


def rows(page, column):
    """Returns {case: the column's cell}, without backticks."""
    text = pathlib.Path(page).read_text(encoding="utf-8")
    section = text.partition(f"\n{HEADING}\n")[2].partition("\n## ")[0].replace("`", "")
    table = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in section.splitlines() if line.startswith("|")]
    if not table:
        sys.exit(f'{page}: no table under "{HEADING}"')
    at = table[0].index(column)
    return {row[0]: row[at] for row in table[2:]}


def main():
    page, column, program = sys.argv[1:]
    expected = rows(page, column)
    output = subprocess.run([program], check=True, text=True, capture_output=True).stdout
    found = dict(line.rsplit(": ", 1) for line in output.splitlines())
    for case in sorted(expected.keys() | found.keys()):
        if expected.get(case) != found.get(case):
            print(f'"{case}": the guide has {expected.get(case)}, {column} {found.get(case)}')
    print(f"{len(found)} cases")
    sys.exit(expected != found)


main()
