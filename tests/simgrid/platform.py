#!/usr/bin/env python3
"""Prints a platform for SimGrid: platform.py HOSTS GBITS flat|tree FOLD.

flat: every host has a link to one switch of unlimited bandwidth. tree: each group of hosts has a
switch with half as many uplinks as hosts. A link has a latency of 5 microseconds. Bandwidths are
divided by FOLD."""
import sys

# The number of hosts on each switch, by the total number of hosts.
GROUP = {16: 4, 128: 16, 1024: 32}

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="host" suffix="" radical="0-{last}" speed="1Gf"
           bw="{bandwidth}Bps" lat="5us" sharing_policy="SPLITDUPLEX"{topology}/>
</platform>
"""


def tree(hosts):
    group = GROUP[hosts]
    parameters = f"2;{group},{hosts // group};1,{group // 2};1,1"
    return f'\n           topology="FAT_TREE" topo_parameters="{parameters}"'


def platform(hosts, gbits, shape, fold):
    return PLATFORM.format(last=hosts - 1, bandwidth=gbits * 1e9 / 8 / fold,
                           topology=tree(hosts) if shape == "tree" else "")


def main():
    hosts, gbits, shape, fold = sys.argv[1:]
    print(platform(int(hosts), float(gbits), shape, int(fold)), end="")


if __name__ == "__main__":
    main()
