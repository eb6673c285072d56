#!/usr/bin/env python3
"""Structs that say their own size (struct_size) may grow: a program that was compiled with today's
headers runs with a library of tomorrow, whose structs have one more member, and one that was
compiled with tomorrow's headers runs with today's library.

    check_growth.py [--cc CC] [--jobs N] LIBRARY

LIBRARY is today's; tomorrow's is compiled from the same sources.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import declarations  # noqa: E402 (its folder is the one above)
from changed_library import ROOT, ChangedLibrary, run  # noqa: E402

GROWING = {"sb_backend", "sb_blob_info", "sb_context_options", "sb_filler",
           "sb_layer_info", "sb_limits", "sb_progress", "sb_sim_device", "sb_sink", "sb_solver_info", "sb_source", "sb_stats"}
LATER = ["-DSB_LATER"]


def tomorrow(cc, include):
    """Adds a member to each struct of the headers that says its size."""
    growing = {name for name, members in declarations.structs(cc, include).items()
               if members[0] == "struct_size"}
    if growing != GROWING:
        sys.exit(f"{', '.join(growing ^ GROWING)}: client.c is to pass all that say their size")
    for header in declarations.headers(include):
        grown = re.sub(r"^\} (" + "|".join(growing) + ");$", r"    uint64_t later;\n} \1;",
                       header.read_text(), flags=re.MULTILINE)
        header.write_text(grown)
    for name, members in declarations.structs(cc, include).items():
        assert (members[-1] == "later") == (name in growing), name


def compile_client(cc, include, library, out, *flags):
    run(cc, "-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
        "-Wno-missing-field-initializers", f"-I{include}", *flags, HERE / "client.c", library,
        "-o", out)
    return out


def fails(client, library, beside):
    """Runs a client with the library in that one's folder."""
    path = os.environ.get("LD_LIBRARY_PATH", "")
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{library.parent}:{path}"}
    ended = subprocess.run([client, beside], env=environment, text=True, capture_output=True)
    if ended.returncode != 0:
        print(f"a program that is {beside} than its library ended with {ended.returncode}\n"
              f"{ended.stdout}{ended.stderr}")
    return ended.returncode != 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("library", type=lambda path: pathlib.Path(path).resolve())
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        later = ChangedLibrary(given.cc, pathlib.Path(folder))
        tomorrow(given.cc, later.include)
        library = later.shared(given.jobs)
        client = compile_client(given.cc, ROOT / "c/include", given.library, later.folder / "old")
        newer = compile_client(given.cc, later.include, library, later.folder / "new", *LATER)
        runs = [(client, given.library, "same"), (client, library, "older"),
                (newer, library, "same"), (newer, given.library, "newer")]
        failed = sum(fails(*what) for what in runs)
    print(f"{len(runs) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
