#!/usr/bin/env python3
"""Runs resnet.c on simulated platforms and prints a table:

    simulate.py LIBSYNCBLOB_COMM.A LIBSYNCBLOB.A FOLDER [HOSTS...]

HOSTS are 16, 128 and 1024 by default. The exit status is 77 if SimGrid is not installed."""
import itertools
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLD = 64
COMPUTE_MS = 60
# our and SimGrid's name of the algorithm, numbers of hosts, bucket sizes in MiB (128: one bucket)
CASES = [("halving", "rab_rdb", (16, 128, 1024), (1, 25, 128)), ("ring", "lr", (16, 128), (25,))]

# Turns off SimGrid's correction factors and the time that the code takes on this machine's processor.
OPTIONS = ["--cfg=smpi/bw-factor:0:1", "--cfg=smpi/lat-factor:0:1", "--cfg=network/crosstraffic:no",
           "--cfg=smpi/simulate-computation:no", "--log=root.thres:warning"]
DEFINED = ["MPI_Iallreduce=simulated_iallreduce", "MPI_Query_thread=simulated_query_thread",
           f"FOLD={FOLD}", f"COMPUTE_MS={COMPUTE_MS}"]
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="host" suffix="" radical="0-{last}" speed="1Gf"
           bw="{bandwidth}Bps" lat="5us" sharing_policy="SPLITDUPLEX"{topology}/>
</platform>
"""
GROUP = {16: 4, 128: 16, 1024: 32}  # hosts on each switch, for each number of hosts


def build(libraries, program):
    subprocess.run(["smpicc", "-std=c17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror",
                    *(f"-D{macro}" for macro in DEFINED), f"-I{ROOT}/c/include",
                    f"-I{ROOT}/c/comm/include", f"-I{ROOT}/c/mpi/include",
                    ROOT / "c/mpi/engine.c", HERE / "resnet.c", *libraries,
                    "-lpthread", "-lm", "-ldl", "-o", program], check=True)


def simulate(folder, hosts, gbits, shape, name, bucket):
    """Returns the numbers that resnet.c prints."""
    group = GROUP[hosts]
    # each group of hosts has a switch with half as many uplinks as hosts
    tree = f' topology="FAT_TREE" topo_parameters="2;{group},{hosts // group};1,{group // 2};1,1"'
    (folder / "platform.xml").write_text(
        PLATFORM.format(last=hosts - 1, bandwidth=gbits * 1e9 / 8 / FOLD,
                        topology=tree if shape == "tree" else ""))
    (folder / "hosts.txt").write_text("".join(f"host{i}\n" for i in range(hosts)))
    out = subprocess.run(
        ["smpirun", "-np", str(hosts), "-platform", "platform.xml", "-hostfile", "hosts.txt",
         *OPTIONS, f"--cfg=smpi/allreduce:{name}", "./resnet", str(bucket)],
        cwd=folder, text=True, capture_output=True, check=False)
    if out.returncode or not out.stdout:
        sys.exit(out.stdout + out.stderr)
    return (float(word) for word in out.stdout.split())


def main():
    *libraries, folder = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    hosts = [int(argument) for argument in sys.argv[4:]] or GROUP
    if not shutil.which("smpicc") or not shutil.which("smpirun"):
        print("skipped: SimGrid is not installed (Debian: libsimgrid-dev)")
        sys.exit(77)
    folder.mkdir(parents=True, exist_ok=True)
    build(libraries, folder / "resnet")
    print("times in ms; efficiency: the larger of bound and compute, divided by beside")
    print("hosts Gbit shape allreduce  MiB buckets bound  network    apart   beside  efficiency")
    wrong = 0
    for num, gbits, shape, (algorithm, name, among, sizes) in itertools.product(
            hosts, (10, 100), ("flat", "tree"), CASES):
        for bucket in sizes if num in among else ():
            buckets, size, *times = simulate(folder, num, gbits, shape, name, bucket)
            bound = 2 * (num - 1) / num * size / (gbits * 1e9 / 8)
            apart, beside, network = (time * 1e3 for time in times)
            most = 1.05 if (shape, gbits, bucket) == ("flat", 10, 128) else float("inf")
            is_wrong = not 0.999 <= network / 1e3 / bound <= most
            wrong += is_wrong
            print(f"{num:5d} {gbits:4d} {shape:5s} {algorithm:8s} {bucket:4d} {buckets:4.0f} "
                  f"{bound * 1e3:8.1f} {network:8.1f} {apart:8.1f} {beside:8.1f} "
                  f"{100 * max(COMPUTE_MS, bound * 1e3) / beside:5.0f} %"
                  f"{' shorter than the bound, or too long' if is_wrong else ''}", flush=True)
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
