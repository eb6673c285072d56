"""Compares the results of Caffe's own classes with the table of the guide: differences.py c/guide/caffe.md OWN_EDGES"""

import pathlib
import subprocess
import sys

page, program = sys.argv[1:]
text = pathlib.Path(page).read_text(encoding="utf-8")
section = text.partition("\n## Where the two differ\n")[2].partition("\n## ")[0].replace("`", "")
table = [[cell.strip() for cell in line.split("|")] for line in section.splitlines() if line.startswith("|")]
expected = {case: result for _, case, result, *_ in table[2:]}
output = subprocess.run([program, "table"], check=True, text=True, capture_output=True).stdout
found = dict(line.rsplit(": ", 1) for line in output.splitlines())
for case in sorted(expected.keys() | found.keys()):
    if expected.get(case) != found.get(case):
        print(f'"{case}": the guide has {expected.get(case)}, Caffe {found.get(case)}')
print(f"{len(found)} cases")
sys.exit(expected != found or not found)
