#!/usr/bin/env python3
"""Appends a run's goals to README.md as a table of this machine; tables that are there stay."""
import argparse
import pathlib
import platform

from report import merged, processor, size_text

README = pathlib.Path(__file__).with_name("README.md")
CACHES = pathlib.Path("/sys/devices/system/cpu/cpu0/cache")


def caches():
    """The first processor's caches, as the kernel tells them: "L1d 32K, L2 1024K"."""
    found = []
    for folder in sorted(CACHES.glob("index*")):
        level, kind, size = ((folder / name).read_text().strip()
                             for name in ("level", "type", "size"))
        if kind != "Instruction":
            found.append(f"L{level}{'d' if kind == 'Data' else ''} {size}")
    return ", ".join(found) or "caches unknown"


def row(goal):
    size = f", {size_text(goal['bytes'])}" if goal["bytes"] else ""
    against = f", to {goal['against']}" if goal["against"] else ""
    measured = f"{goal['measured']:.3g}"
    if goal["verdict"] == "MISSED":
        measured = f"**{measured}**"
    return (f"| {goal['what']}{size}{against} | {goal['threads']} | {measured} "
            f"| {goal['limit']:.3g} | {goal['unit']} |")


def table(report, vectors):
    narrow = f", vectors no wider than {vectors}" if vectors else ""
    rows = [row(goal) for goal in report["goals"] if goal["verdict"] != "not measured"]
    return "\n".join([
        "", f"### {processor()}{narrow}",
        f"{caches()}; {platform.system()} {platform.release()}; compiled by {report['compiler']}.", "",
        "| case | threads | best | goal | unit |", "| --- | --- | --- | --- | --- |", *rows, ""])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("json", type=pathlib.Path, nargs="+")
    arguments.add_argument("--vectors", default="", help="what the run was restricted to")
    options = arguments.parse_args()
    with README.open("a", encoding="utf-8") as readme:
        readme.write(table(merged(options.json), options.vectors))


if __name__ == "__main__":
    main()
