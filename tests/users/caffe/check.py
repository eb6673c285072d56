"""Compares Caffe with its own Blob and SyncedMemory (own) to Caffe with bindings/caffe (ours).

    check.py nets BUILD            trains nets with own and ours; compares snapshots and costs
    check.py table PAGE OWN_EDGES  compares the lines "case: result" of the program with Caffe's
                                   column of the table in c/guide/caffe.md

BUILD is the build folder of CMakeLists.txt.
"""

import pathlib
import re
import shutil
import statistics
import subprocess
import sys

NETS = pathlib.Path(__file__).resolve().parent / "nets"
ITERATIONS = {"branches": 150, "lenet": 40, "twins": 20000}
COUNTED_ITERATIONS = {"branches": 4, "lenet": 2, "twins": 200}  # under callgrind
ROUNDS = 5  # an odd number, for the median
# The largest allowed ratios of the costs with our classes to the costs with Caffe's own classes.
INSTRUCTIONS_BOUND = 1.03
MEMORY_BOUND = 1.05


def train(build, name, net, iterations, under=()):
    """Trains a net; returns the peak memory in MiB, and the results that must be equal for own and ours."""
    folder = build / "nets" / name / net.stem
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    program = [*under, build / f"{name}_train", net, str(iterations), "snapshot"]
    loss, kib = subprocess.run(program, cwd=folder, check=True, text=True, stdout=subprocess.PIPE).stdout.split()
    made = {path.name: path.read_bytes() for path in folder.glob("snapshot_*")}
    if len(made) != 2:
        sys.exit(f"{name}: {net.stem} wrote {sorted(made)}, not a net and a state")
    return int(kib) / 1024, {"the last loss": loss, **made}


def instructions(build, name, net):
    """Returns an iteration's instructions, in millions."""
    counts = build / f"{name}.callgrind"
    callgrind = ["valgrind", "--tool=callgrind", "--toggle-collect=counted", "--log-file=/dev/null",
                 f"--callgrind-out-file={counts}"]
    iterations = COUNTED_ITERATIONS[net.stem]
    train(build, name, net, iterations, callgrind)
    totals = re.search(r"^(?:totals|summary): (\d+)", counts.read_text(encoding="utf-8"), re.MULTILINE)
    return int(totals[1]) / iterations / 1e6


def compare_net(build, net):
    """Prints the results of a net; yields the reasons why the net fails."""
    sides = ("own", "ours")
    rounds = [[train(build, name, net, ITERATIONS[net.stem]) for name in sides] for _ in range(ROUNDS)]
    differ = sorted({what for own, ours in rounds for what in own[1] if own[1][what] != ours[1][what]})
    yield from (f"{net.stem}: {what} is not that of Caffe's own classes" for what in differ)
    memory = [statistics.median(results[side][0] for results in rounds) for side in (0, 1)]
    for what, (own, ours), bound in (
            ("MiB at most", memory, MEMORY_BOUND),
            ("million instructions", [instructions(build, name, net) for name in sides], INSTRUCTIONS_BOUND)):
        print(f"{net.stem}: {what:22} {own:10.4f} {ours:10.4f} {ours / own:6.3f}", flush=True)
        if ours > own * bound:
            yield f"{net.stem}: {what} are {ours / own:.3f} of Caffe's own, over {bound}"


def check_nets(build):
    print("an iteration: Caffe's own classes, ours, ratio")
    for net in sorted(NETS.glob("*.prototxt")):
        yield from compare_net(pathlib.Path(build).resolve(), net)


def check_table(page, program):
    text = pathlib.Path(page).read_text(encoding="utf-8")
    section = text.partition("\n## Where the two differ\n")[2].partition("\n## ")[0].replace("`", "")
    table = [[cell.strip() for cell in line.split("|")] for line in section.splitlines() if line.startswith("|")]
    expected = {case: result for _, case, result, *_ in table[2:]}
    output = subprocess.run([program, "table"], check=True, text=True, capture_output=True).stdout
    found = dict(line.rsplit(": ", 1) for line in output.splitlines())
    if not found:
        yield "the program printed no case"
    for case in sorted(expected.keys() | found.keys()):
        if expected.get(case) != found.get(case):
            yield f'"{case}": the guide has {expected.get(case)}, Caffe {found.get(case)}'


def main():
    what, *rest = sys.argv[1:]
    failures = list({"nets": check_nets, "table": check_table}[what](*rest))
    print("".join(f"{failure}\n" for failure in failures), end="")
    sys.exit(1 if failures else 0)


main()
