#!/usr/bin/env python3
"""Prints recorded goals: show.py RESULTS.csv"""
import csv
import pathlib
import sys

machine, *rows = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
print(machine)
for row in csv.DictReader(rows):
    missed = "missed" if float(row["best"]) > float(row["goal"]) else ""
    print(f"{row['best']:>9} of {row['goal']:<6} {row['unit']:<7} {row['threads']}  {row['case']:<84} {missed}".rstrip())
