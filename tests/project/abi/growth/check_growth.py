#!/usr/bin/env python3
"""Structs that say their own size (struct_size) may grow: a program that was compiled with today's
headers runs with a library of tomorrow, whose structs have one more member, and one that was
compiled with tomorrow's headers runs with today's library.

    check_growth.py [--cc CC] [--jobs N] LIBRARY COMM

LIBRARY and COMM, which is libsyncblob-comm, are today's; tomorrow's are compiled from the same
sources.
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

# By the program that passes them.
GROWING = {"client.c": {"sb_backend", "sb_blob_info", "sb_context_options", "sb_filler",
                        "sb_layer_info", "sb_limits", "sb_progress", "sb_sim_device", "sb_sink",
                        "sb_solver_info", "sb_source", "sb_stats"},
           "comm.c": {"sb_comm_engine", "sb_reducer_options", "sb_sim_comm_options"}}
LATER = ["-DSB_LATER"]


def tomorrow(cc, include, comm):
    """Adds a member to each struct of the headers that says its size."""
    passed = set.union(*GROWING.values())
    growing = {name for name, members in declarations.structs(cc, include, comm).items()
               if members[0] == "struct_size"}
    if growing != passed:
        sys.exit(f"{', '.join(growing ^ passed)}: the programs are to pass all that say their size")
    for header in declarations.all_headers(include, [comm]):
        grown = re.sub(r"^\} (" + "|".join(growing) + ");$", r"    uint64_t later;\n} \1;",
                       header.read_text(), flags=re.MULTILINE)
        header.write_text(grown)
    for name, members in declarations.structs(cc, include, comm).items():
        assert (members[-1] == "later") == (name in growing), name


def compile_client(cc, source, root, libraries, out, *flags):
    run(cc, "-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
        "-Wno-missing-field-initializers", f"-I{root / 'c/include'}",
        f"-I{root / 'c/comm/include'}", *flags, HERE / source, *libraries, "-o", out)
    return out


def fails(client, libraries, beside):
    """Runs a client with the libraries in their folders."""
    path = [*(str(library.parent) for library in libraries), os.environ.get("LD_LIBRARY_PATH", "")]
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(path)}
    ended = subprocess.run([client, beside], env=environment, text=True, capture_output=True)
    if ended.returncode != 0:
        print(f"a program that is {beside} than its library ended with {ended.returncode}\n"
              f"{ended.stdout}{ended.stderr}")
    return ended.returncode != 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("libraries", nargs=2, type=lambda path: pathlib.Path(path).resolve())
    given = parser.parse_args()
    runs = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        later = ChangedLibrary(given.cc, folder, "comm")
        tomorrow(given.cc, later.include, folder / "c/comm/include")
        library = later.shared(given.jobs)
        libraries = [library, later.shared_over("comm", library, given.jobs)]
        for source in GROWING:
            client = compile_client(given.cc, source, ROOT, given.libraries,
                                    folder / f"{source}.old")
            newer = compile_client(given.cc, source, folder, libraries, folder / f"{source}.new",
                                   *LATER)
            runs += [(client, given.libraries, "same"), (client, libraries, "older"),
                     (newer, libraries, "same"), (newer, given.libraries, "newer")]
        failed = sum(fails(*what) for what in runs)
    print(f"{len(runs) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
