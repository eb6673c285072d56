#!/usr/bin/env python3
"""Runs resnet.c on simulated platforms and prints a table:

    simulate.py LIBSYNCBLOB.A FOLDER [HOSTS...]

Writes results.tsv into FOLDER. HOSTS are 16, 128 and 1024 by default. The exit status is
77 if SimGrid is not installed, and 1 if a time is below the bound of an all-reduce, or if one large
bucket on a flat network of 10 Gbit/s exceeds the bound by 5 %."""
import itertools
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLD = 64
COMPUTE_MS = 60
GBITS = (10, 100)
SHAPES = ("flat", "tree")
BUCKETS_MIB = (1, 25, 128)  # 128: one bucket
# SimGrid's names of recursive halving and doubling, and of a ring.
ALGORITHMS = {"halving": "rab_rdb", "ring": "lr"}
RING_HOSTS, RING_BUCKET = (16, 128), 25

# Messages of all sizes have the platform's bandwidth and latency, without SimGrid's correction factors.
NETWORK = ["--cfg=smpi/bw-factor:0:1", "--cfg=smpi/lat-factor:0:1", "--cfg=network/crosstraffic:no"]
# The simulated time does not include the time that the code takes on this machine's processor.
HOST = ["--cfg=smpi/simulate-computation:no", "--log=root.thres:warning"]
INSTEAD = ["-DMPI_Iallreduce=simulated_iallreduce", "-DMPI_Query_thread=simulated_query_thread"]
# Every host has a link with a latency of 5 microseconds. "flat": the links lead to one switch of unlimited
# bandwidth. "tree": each group of hosts has a switch with half as many uplinks as hosts.
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="host" suffix="" radical="0-{last}" speed="1Gf"
           bw="{bandwidth}Bps" lat="5us" sharing_policy="SPLITDUPLEX"{topology}/>
</platform>
"""
GROUP = {16: 4, 128: 16, 1024: 32}  # the number of hosts on each switch, by the total number of hosts
COLUMNS = ("hosts", "gbits", "shape", "algorithm", "bucket_mib", "buckets", "compute", "apart",
           "beside", "network", "bound")


def build(libraries, program):
    subprocess.run(["smpicc", "-std=c17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror",
                    *INSTEAD, f"-I{ROOT}/c/include", f"-I{ROOT}/c/comm/include",
                    f"-I{ROOT}/c/mpi/include",
                    ROOT / "c/mpi/engine.c", HERE / "resnet.c", *libraries,
                    "-lpthread", "-lm", "-ldl", "-o", program], check=True)


def cases(hosts):
    for one in itertools.product(hosts, GBITS, SHAPES):
        for bucket in BUCKETS_MIB:
            yield (*one, "halving", bucket)
        if one[0] in RING_HOSTS:
            yield (*one, "ring", RING_BUCKET)


def platform(hosts, gbits, shape):
    group = GROUP[hosts]
    tree = f' topology="FAT_TREE" topo_parameters="2;{group},{hosts // group};1,{group // 2};1,1"'
    return PLATFORM.format(last=hosts - 1, bandwidth=gbits * 1e9 / 8 / FOLD,
                           topology=tree if shape == "tree" else "")


def simulate(program, folder, case):
    hosts, gbits, shape, algorithm, bucket = case
    described, names = folder / "platform.xml", folder / "hosts.txt"
    described.write_text(platform(hosts, gbits, shape))
    names.write_text("".join(f"host{i}\n" for i in range(hosts)))
    out = subprocess.run(
        ["smpirun", "-np", str(hosts), "-platform", described, "-hostfile", names, *HOST, *NETWORK,
         f"--cfg=smpi/allreduce:{ALGORITHMS[algorithm]}", program, str(bucket), "1", str(FOLD),
         str(COMPUTE_MS)], text=True, capture_output=True, check=False)
    if out.returncode:
        sys.exit(f"{case}: {out.stdout}{out.stderr}")
    ranks, buckets, size, compute, apart, beside, network = out.stdout.split()
    assert int(ranks) == hosts
    bound = 2 * (hosts - 1) / hosts * float(size) / (gbits * 1e9 / 8)
    return dict(zip(COLUMNS, (*case, int(buckets), float(compute), float(apart), float(beside),
                              float(network), bound)))


def problem(row):
    """Returns why the row must be wrong; None if it may be correct."""
    if row["network"] < row["bound"] * 0.999:
        return "shorter than the bound of an all-reduce"
    if row["shape"] == "flat" and row["gbits"] == 10 and row["bucket_mib"] > 100 \
            and row["network"] > row["bound"] * 1.05:
        return "more than 5 % longer than the bound"
    return None


def text_of(row):
    best = max(row["compute"], row["bound"])
    return (f"{row['hosts']:5d} {row['gbits']:4d} {row['shape']:5s} {row['algorithm']:8s} "
            f"{row['bucket_mib']:4d} {row['buckets']:4d} {row['bound'] * 1e3:8.1f} "
            f"{row['network'] * 1e3:8.1f} {row['apart'] * 1e3:8.1f} {row['beside'] * 1e3:8.1f} "
            f"{100 * best / row['beside']:5.0f} %")


def main():
    *libraries, folder = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    hosts = [int(argument) for argument in sys.argv[4:]] or [16, 128, 1024]
    if not shutil.which("smpicc") or not shutil.which("smpirun"):
        print("skipped: SimGrid is not installed (Debian: libsimgrid-dev)")
        sys.exit(77)
    folder.mkdir(parents=True, exist_ok=True)
    build(libraries, folder / "resnet")
    print("times in ms; efficiency: the larger of bound and compute, divided by beside")
    print("hosts Gbit shape allreduce  MiB buckets bound  network    apart   beside  efficiency")
    rows, wrong = [], 0
    for case in cases(hosts):
        rows.append(simulate(folder / "resnet", folder, case))
        print(text_of(rows[-1]), problem(rows[-1]) or "", flush=True)
        wrong += problem(rows[-1]) is not None
    table = ["\t".join(COLUMNS)] + ["\t".join(str(row[name]) for name in COLUMNS) for row in rows]
    (folder / "results.tsv").write_text("\n".join(table) + "\n")
    print(f"{len(rows) - wrong} passed, {wrong} failed; {folder}/results.tsv")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
