#!/usr/bin/env python3
"""Line and branch coverage of c/src, c/testing/src and c/comm/src under all C tests and the fuzz corpora.

Builds the preset "coverage" with gcc, runs ctest, prints a row for each file and the totals, and
fails when the totals are below the floors, or when uncovered.txt or branches.txt beside this
script and what was found differ. Exclusion markers in the source are ignored. What the child of a
fork reaches is counted by exit.c.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SOURCES = ("c/src/", "c/testing/src/", "c/comm/src/")
FLOORS = {"lines": 99.8, "branches": 98.4}
REASON, COMMENT = "== ", "# "


def run(*command, **options):
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT, **options)


def gcov_tool():
    """The gcov of the gcc that compiles: Debian names it with the version."""
    major = subprocess.run(["gcc", "-dumpversion"], check=True, text=True, capture_output=True)
    name = f"gcov-{major.stdout.strip().split('.')[0]}"
    found = subprocess.run(["which", name], capture_output=True).returncode == 0
    return name if found else "gcov"


def build_and_test(build, jobs, settings):
    run("cmake", "--preset", "coverage", "-B", build, "-DCMAKE_C_COMPILER=gcc", *settings)
    run("cmake", "--build", build, "-j", jobs)
    for counts in pathlib.Path(build).rglob("*.gcda"):
        counts.unlink()
    # Counting makes inner loops slow, and repetition reaches nothing new.
    run("ctest", "--test-dir", build, "-j", jobs, "--output-on-failure", "--no-tests=error")


def lcov(*arguments):
    run("lcov", "--quiet", "--rc", "lcov_branch_coverage=1", *arguments, stderr=subprocess.DEVNULL)


def capture(build):
    """A tracefile of the sources, headers merged over the files that include them."""
    everything, ours = (pathlib.Path(build) / name for name in ("all.info", "coverage.info"))
    lcov("--capture", "--directory", pathlib.Path(build) / "c", "--no-markers",
         "--gcov-tool", gcov_tool(), "--output-file", everything)
    lcov("--extract", everything, *(str(ROOT / folder / "*") for folder in SOURCES),
         "--output-file", ours)
    return ours


class File:
    """What lcov tells about one source file, by line number."""

    def __init__(self, path):
        self.path = path
        self.text = (ROOT / path).read_text().splitlines()
        self.lines = {}
        self.branches = collections.defaultdict(list)
        self.functions = {}

    def function_of(self, line):
        starts = [start for start in self.functions if start <= line]
        return self.functions[max(starts)] if starts else "-"

    def key(self, line):
        text = re.sub(r"\s+", " ", self.text[line - 1]).strip()
        return f"{self.path}: {self.function_of(line)}: {text}"

    def missed_lines(self):
        return [line for line, count in sorted(self.lines.items()) if count == 0]

    def missed_branches(self):
        """Pairs of line and how many of its branches were never taken."""
        missed = {line: taken.count(False) for line, taken in sorted(self.branches.items())}
        return [(line, count) for line, count in missed.items() if count]


def parse(tracefile):
    files = []
    for row in tracefile.read_text().splitlines():
        kind, _, rest = row.partition(":")
        if kind == "SF":
            current = File(str(pathlib.Path(rest).relative_to(ROOT)))
            files.append(current)
        elif kind == "DA":
            line, count = rest.split(",")[:2]
            current.lines[int(line)] = int(count)
        elif kind == "BRDA":
            line, _, _, taken = rest.split(",")
            current.branches[int(line)].append(taken not in ("-", "0"))
        elif kind == "FN":
            line, name = rest.split(",")[0], rest.split(",")[-1]
            current.functions[int(line)] = name
    return sorted(files, key=lambda file: file.path)


def share(hit, total):
    return 100.0 * hit / total if total else 100.0


def print_table(files):
    sums = collections.Counter()
    print(f"{'file':<40} {'lines':>16} {'branches':>16}")
    for file in files:
        branches = [taken for line in file.branches.values() for taken in line]
        row = {"lines": (len(file.lines) - len(file.missed_lines()), len(file.lines)),
               "branches": (sum(branches), len(branches))}
        cells = []
        for name, (hit, total) in row.items():
            sums[name] += hit
            sums[name + " of"] += total
            cells.append(f"{share(hit, total):6.1f} % {total - hit:3} left")
        print(f"{file.path:<40} {cells[0]:>16} {cells[1]:>16}")
    found = {name: share(sums[name], sums[name + " of"]) for name in FLOORS}
    for name, value in found.items():
        print(f"{name}: {value:.2f} % of {sums[name + ' of']}, floor {FLOORS[name]} %")
    return [f"{name}: {found[name]:.2f} % is below {floor} %"
            for name, floor in FLOORS.items() if found[name] < floor]


def entries(path):
    """The entries of a list, each under a reason."""
    reason, found = None, collections.Counter()
    for number, row in enumerate(path.read_text().splitlines(), 1):
        if row.startswith(REASON):
            reason = row[len(REASON):].strip()
        elif row.strip() and not row.startswith(COMMENT):
            if not reason:
                sys.exit(f"{path}:{number}: an entry without a reason")
            found[row.strip()] += 1
    return found


def compare_lines(files):
    listed = entries(HERE / "uncovered.txt")
    found = collections.Counter(file.key(line) for file in files for line in file.missed_lines())
    problems = [f"not covered and not in uncovered.txt: {key}" for key in (found - listed)]
    problems += [f"in uncovered.txt, but covered or gone: {key}" for key in (listed - found)]
    return problems


def compare_branches(files):
    """What is left varies a little with the order of threads: the list may name more."""
    listed = entries(HERE / "branches.txt")
    found = collections.Counter()
    for file in files:
        for line, count in file.missed_branches():
            found[file.key(line)] += count
    allowed = collections.Counter()
    for entry in listed.elements():
        count, _, key = entry.partition(" ")
        allowed[key] += int(count)
    known = {file.key(line) for file in files for line in file.branches}
    problems = [f"{count} branches not taken and not in branches.txt: {key}"
                for key, count in (found - allowed).items()]
    problems += [f"in branches.txt, but gone: {key}" for key in allowed if key not in known]
    return problems


def print_missed(files):
    for file in files:
        for line in file.missed_lines():
            print(f"line    {line:4}  {file.key(line)}")
        for line, count in file.missed_branches():
            print(f"branch  {line:4}  {count} {file.key(line)}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--build", default=str(ROOT / "build" / "coverage"))
    arguments.add_argument("--jobs", default="2")
    arguments.add_argument("--no-run", action="store_true", help="look at the last run's counts")
    arguments.add_argument("--list", action="store_true", help="print all that was not reached")
    options, settings = arguments.parse_known_args() # -DSYNCBLOB_CUDA_HEADERS=...
    if not options.no_run:
        build_and_test(options.build, options.jobs, settings)
    files = parse(capture(options.build))
    problems = print_table(files)
    if options.list:
        print_missed(files)
    problems += compare_lines(files) + compare_branches(files)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
