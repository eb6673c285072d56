"""Compares Caffe with its own Blob and SyncedMemory (own) to Caffe with bindings/caffe (ours).

    check.py tests BUILD CAFFE NAME...  runs Caffe's tests with each NAME: own, ours, or ours on a
                                        device (sim, opencl); all must pass the same tests
    check.py nets BUILD                 trains nets with own and ours; compares snapshots and costs

BUILD is the build folder of CMakeLists.txt, CAFFE the folder of Caffe's sources. Without the NAME own, all tests
must pass.
"""

import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

NETS = pathlib.Path(__file__).resolve().parent / "nets"
ITERATIONS = {"branches": 150, "lenet": 40, "twins": 20000}
COUNTED_ITERATIONS = {"branches": 4, "lenet": 2, "twins": 200}
# These tests of Caffe measure a sleep to within 30 ms, and may fail on a busy machine.
CLOCK_TEST = re.compile(r"^BenchmarkTest/\d+\.TestTimer(Milli)?Seconds$")
CLOCK_ATTEMPTS = 5
ROUNDS = 5  # an odd number, for the median
SLICES = 6  # parts of a round, so that a change of the machine's speed affects both builds alike
INSTRUCTIONS_BOUND = 1.03
MEMORY_BOUND = 1.05


def run(command, folder, log):
    with open(f"{log}.out", "wb") as out, open(f"{log}.err", "wb") as err:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def read(log):
    return pathlib.Path(log).read_text(encoding="utf-8", errors="replace")


def list_tests(program, caffe):
    output = subprocess.run([program, "--gtest_list_tests", "--gtest_filter=-*GPU*"], cwd=caffe,
                            check=True, text=True, capture_output=True).stdout
    tests = []
    for line in output.splitlines():
        if line.startswith("  "):
            tests.append(case + line.split()[0])
        else:
            case = line.split()[0]
    return tests


def test_results(build, caffe, name):
    """After a crash, runs the program again with the remaining tests."""
    program, log = build / f"{name}_tests", build / name
    results, seconds, peak = {}, 0, 0
    left = list_tests(program, caffe)
    attempts = 0
    while left:
        attempts += 1
        _, took, memory = run([program, "--gtest_filter=" + ":".join(left)], caffe, log)
        seconds, peak = seconds + took, max(peak, memory)
        output = read(f"{log}.out")
        begun = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
        if not begun:
            sys.exit(f"{name}: no test ran\n{output}{read(f'{log}.err')}")
        results.update((test, "dies") for test in begun)
        results.update((test, "passes") for test in
                       re.findall(r"^\[       OK \] (\S+)", output, re.MULTILINE))
        results.update((test, "fails") for test in
                       re.findall(r"^\[  FAILED  \] ([^\s,]+).* ms\)$", output, re.MULTILINE))
        left = [test for test in left if test not in results or (
            results[test] == "fails" and CLOCK_TEST.match(test) and attempts < CLOCK_ATTEMPTS)]
    return results, seconds, peak


def check_tests(build, caffe, *names):
    found = {name: test_results(build, caffe, name) for name in names}
    for name, (tests, seconds, memory) in found.items():
        print(f"{name}: {sum(does == 'passes' for does in tests.values())} of {len(tests)} of "
              f"Caffe's tests pass, {seconds:.0f} s, {memory:.0f} MiB at most", flush=True)
    own = found["own"][0] if "own" in found else dict.fromkeys(found["ours"][0], "passes")
    for test, does in own.items():
        if does != "passes":
            print(f"    {test} {does} with Caffe's own classes")
    failures = [f"{name}: {test} {tests.get(test, 'is missing')}, with Caffe's own classes it "
                f"{own.get(test, 'is missing')}"
                for name, (tests, _, _) in found.items() for test in sorted(own.keys() | tests.keys())
                if own.get(test) != tests.get(test)]
    if "own" not in found:
        return failures
    memory = found["ours"][2] / found["own"][2]
    if memory > MEMORY_BOUND:
        failures.append(f"the tests take {memory:.3f} of the memory with Caffe's own classes, over "
                        f"{MEMORY_BOUND}")
    return failures


def train(build, name, net, iterations, under=()):
    """Returns milliseconds per iteration, peak memory in MiB, and results that must be equal for both builds."""
    folder = build / "nets" / name / net.stem
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log = folder / "log"
    program = [*under, build / f"{name}_train", net, str(iterations), "snapshot"]
    status, _, _ = run(program, folder, log)
    if status != 0:
        sys.exit(f"{name}: {net.stem} ended with status {status}\n{read(f'{log}.err')}")
    milliseconds, loss, kib = read(f"{log}.out").split()
    made = {path.name: path.read_bytes() for path in folder.glob("snapshot_*")}
    if len(made) != 2:
        sys.exit(f"{name}: {net.stem} wrote {sorted(made)}, not a net and a state")
    return float(milliseconds), int(kib) / 1024, {"the last loss": loss, **made}


def instructions(build, name, net):
    counts = build / f"{name}.callgrind"
    callgrind = ["valgrind", "--tool=callgrind", "--toggle-collect=counted", "--log-file=/dev/null",
                 f"--callgrind-out-file={counts}"]
    iterations = COUNTED_ITERATIONS[net.stem]
    train(build, name, net, iterations, callgrind)
    totals = re.search(r"^(?:totals|summary): (\d+)", counts.read_text(encoding="utf-8"), re.MULTILINE)
    return int(totals[1]) / iterations / 1e6


def times(build, sides, net):
    """The two builds run in turns, because the machine's speed changes."""
    def one_round():
        slices = [[train(build, name, net, ITERATIONS[net.stem] // SLICES)[0] for name in sides]
                  for _ in range(SLICES)]
        return [sum(side) / SLICES for side in zip(*slices)]
    return [statistics.median(side) for side in zip(*(one_round() for _ in range(ROUNDS)))]


def compare_net(build, net):
    sides = ("own", "ours")
    rounds = [[train(build, name, net, ITERATIONS[net.stem]) for name in sides]
              for _ in range(ROUNDS)]
    differ = sorted({what for own, ours in rounds for what in own[2] if own[2][what] != ours[2][what]})
    memory = [statistics.median(results[side][1] for results in rounds) for side in (0, 1)]
    rows = [("ms of the processor", times(build, sides, net), None), ("MiB at most", memory, MEMORY_BOUND),
            ("million instructions", [instructions(build, name, net) for name in sides],
             INSTRUCTIONS_BOUND)]
    print(f"{net.stem}: snapshots {'differ' if differ else 'identical'}")
    yield from (f"{net.stem}: {what} is not that of Caffe's own classes" for what in differ)
    for what, (own, ours), bound in rows:
        print(f"    {what:22} {own:10.4f} {ours:10.4f} {ours / own:6.3f}", flush=True)
        if bound and ours > own * bound:  # times have no bound, because the machine may be busy
            yield f"{net.stem}: {what} are {ours / own:.3f} of Caffe's own, over {bound}"


def check_nets(build):
    print(f"medians of {ROUNDS}, an iteration: Caffe's own classes, ours, ratio")
    return [failure for net in sorted(NETS.glob("*.prototxt"))
            for failure in compare_net(build, net)]


def main():
    what, build, *rest = sys.argv[1:]
    failures = {"tests": check_tests, "nets": check_nets}[what](pathlib.Path(build).resolve(), *rest)
    for failure in failures:
        print(failure)
    sys.exit(1 if failures else 0)


main()
