#!/usr/bin/env python3
"""Loads and unloads the library and a plug-in that uses the library: reload.py LIBRARY PLUGIN

Memory, mappings, threads, open files and thread keys of the C library must not leak.
"""
import _ctypes
import ctypes
import os
import sys

STEPS = 4
WARM_UP = 100
RELOADS = 1100  # more than the number of thread keys that the C library has
ALLOWED_KIB = 512
NOLOAD = 4  # RTLD_NOLOAD
Step = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


def measure():
    with open("/proc/self/statm", encoding="ascii") as memory, open("/proc/self/maps", encoding="ascii") as maps:
        return {"KiB": 4 * int(memory.read().split()[1]), "mappings": len(maps.readlines()),
                "threads": len(os.listdir("/proc/self/task")), "files": len(os.listdir("/proc/self/fd"))}


def is_loaded(path):
    try:
        return bool(_ctypes.dlopen(path, os.RTLD_NOW | NOLOAD))
    except OSError:
        return False


def load_and_unload(library, plugin):
    loaded = _ctypes.dlopen(plugin, os.RTLD_NOW)
    step = Step(_ctypes.dlsym(loaded, "step_of_plugin"))
    assert not any(step(number) for number in range(STEPS))
    _ctypes.dlclose(loaded)
    assert not is_loaded(library), "the library stays loaded"


def main(library, plugin):
    loaded = _ctypes.dlopen(library, os.RTLD_NOW)
    is_loaded("libopenblas.so.0")  # keeps OpenBLAS
    _ctypes.dlclose(loaded)
    for _ in range(WARM_UP):
        load_and_unload(library, plugin)
    before = measure()
    for _ in range(RELOADS):
        load_and_unload(library, plugin)
    after = measure()
    print(before, after, sep="\n")
    assert after.pop("KiB") <= before.pop("KiB") + ALLOWED_KIB and after == before


main(*sys.argv[1:])
