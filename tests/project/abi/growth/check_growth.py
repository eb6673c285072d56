#!/usr/bin/env python3
"""Structs that say their own size (struct_size) may grow: a program that was compiled with today's
headers runs with a library of tomorrow, whose structs have one more member, and one that was
compiled with tomorrow's headers runs with today's library.

    check_growth.py [--cc CC] [--jobs N] LIBRARY

LIBRARY is today's; tomorrow's is compiled from the same sources.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]
sys.path.insert(0, str(HERE.parent))
import declarations  # noqa: E402 (its folder is the one above)

GROWING = {"sb_backend", "sb_blob_info", "sb_comm_engine", "sb_context_options", "sb_filler",
           "sb_layer_info", "sb_limits", "sb_progress", "sb_reducer_options",
           "sb_sim_comm_options", "sb_sink", "sb_solver_info", "sb_source", "sb_stats"}
LATER = ["-DSB_LATER"]


def run(*command, **how):
    return subprocess.run([str(part) for part in command], check=True, text=True, **how)


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


class Tomorrow:
    """The library compiled with tomorrow's headers."""

    def __init__(self, cc, folder):
        self.cc, self.folder = cc, folder
        self.include = folder / "include"
        shutil.copytree(ROOT / "c/include", self.include)
        tomorrow(cc, self.include)
        self.flags = ["-std=c17", "-D_GNU_SOURCE", "-DSB_EXPERIMENTAL", "-w", "-O0", "-fPIC",
                      "-fvisibility=hidden",
                      *(f"-I{path}" for path in (self.include, ROOT / "c/src", ROOT))]

    def compile(self, source):
        out = self.folder / (source.replace("/", "_") + ".o")
        run(self.cc, *self.flags, "-c", ROOT / source, "-o", out)
        return out

    def build(self, jobs):
        """Without the other libraries and CUDA, which know no public struct that grows."""
        sources = [line for line in (ROOT / "c/sources.txt").read_text().splitlines()
                   if line and not line.startswith("#")] + ["c/src/format/pack_plain.c"]
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            objects = list(pool.map(self.compile, sources))
        out = self.folder / declarations.soname(self.include)
        run(self.cc, "-shared", *objects, "-o", out, f"-Wl,-soname,{out.name}",
            f"-Wl,--version-script={ROOT}/c/abi/libsyncblob.map",
            "-lm", "-ldl", "-lpthread")
        return out


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
        later = Tomorrow(given.cc, pathlib.Path(folder))
        library = later.build(given.jobs)
        client = compile_client(given.cc, ROOT / "c/include", given.library, later.folder / "old")
        newer = compile_client(given.cc, later.include, library, later.folder / "new", *LATER)
        runs = [(client, given.library, "same"), (client, library, "older"),
                (newer, library, "same"), (newer, given.library, "newer")]
        failed = sum(fails(*what) for what in runs)
    print(f"{len(runs) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
