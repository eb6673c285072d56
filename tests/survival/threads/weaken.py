#!/usr/bin/env python3
"""Shows that the tests notice when a lock, an order, a wait or a step of quarantine is missing.

In a copy of the sources each lock is removed, each memory order weakened to
relaxed, each wait and each step that keeps storage in use left out, one at a
time; the test programs, built with ThreadSanitizer, must then fail. The sites
are found by pattern in c/src/context, c/src/memory and c/src/blob. A site
passes when a test fails; one that no test notices, or that cannot be built, fails.
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
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDERS = ["c/src/context", "c/src/memory", "c/src/blob"]
CFLAGS = ["-std=c17", "-D_GNU_SOURCE", "-DSB_EXPERIMENTAL", "-O1", "-fPIC", "-w",
          "-fsanitize=thread", "-fno-omit-frame-pointer"]
TIME_LIMIT = 60

# The programs that may notice, those that notice most first. The rest of a
# program's time decides the order of the others.
PROGRAMS = {
    "once": ["threads.once"],
    "order": ["threads.orders", "threads.dlpack"],
    "lock": ["threads.locks", "threads.dlpack"],
    "wait": ["threads.waits", "behaviour.mem_async", "behaviour.mem_rules", "faults.mem_faults"],
    "quarantine": ["faults.quarantine", "threads.lost", "threads.faults"],
}
EVERYWHERE = ["threads.mem", "behaviour.context", "behaviour.blob_copy", "behaviour.blob_arithmetic",
              "behaviour.mem_states", "threads.crossed", "threads.stress"]

ENVIRONMENT = {
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=66:report_bugs=1",
    "SYNCBLOB_STRESS_SECONDS": "2",
}


# --- finding sites -----------------------------------------------------------

class Site:
    def __init__(self, kind, path, text, at, what, mutated):
        self.kind, self.path, self.mutated = kind, path, mutated
        self.line = text.count("\n", 0, at) + 1
        self.what = what

    def __str__(self):
        return f"{self.path}:{self.line}: {self.what}"


def blank(text):
    """The same length without comments and strings."""
    pattern = r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\""
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


def functions(code):
    """(start, end) of every function body: outer braces after a parenthesis."""
    depth, start = 0, None
    for brace in re.finditer(r"[{}]", code):
        if brace[0] == "{":
            if depth == 0 and code[:brace.start()].rstrip().endswith(")"):
                start = brace.end()
            depth += 1
        else:
            depth -= 1
            if depth == 0 and start is not None:
                yield start, brace.start()
                start = None


def call_end(code, at):
    """Past the closing parenthesis of the call whose name begins at `at`."""
    depth = 0
    for i in range(code.index("(", at), len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return i + 1
    raise ValueError("unbalanced parentheses")


def edit(text, spans):
    """Replaces (start, end, by) from the end on."""
    for start, end, by in sorted(spans, reverse=True):
        text = text[:start] + by + text[end:]
    return text


def arguments(code, at):
    return code[code.index("(", at) + 1:call_end(code, at) - 1]


def find_locks(path, text, code):
    """Every mutex of every function: all its calls there are one site."""
    for start, end in functions(code):
        held = {}
        for m in re.finditer(r"\bpthread_(?:mutex|rwlock|spin)_(?:try|rd|wr|tryrd|trywr|timed)?"
                             r"(?:un)?lock\s*\(", code[start:end]):
            at = start + m.start()
            held.setdefault(arguments(code, at).strip(), []).append(at)
        for mutex, calls in held.items():
            spans = [(at, call_end(code, at), "0") for at in calls]
            yield Site("lock", path, text, calls[0], f"lock {mutex} removed", edit(text, spans))
        calls = [start + m.start() for m in re.finditer(r"\bsb__(?:un)?lock\s*\(", code[start:end])]
        if calls:
            spans = [(at, call_end(code, at), "SB_OK") for at in calls]
            yield Site("lock", path, text, calls[0], "lock of a memory removed", edit(text, spans))


def find_once(path, text, code):
    for m in re.finditer(r"\bpthread_once\s*\(", code):
        function = arguments(code, m.start()).split(",")[1].strip()
        plain = f"({{ static int ran; if (!ran) {{ {function}(); ran = 1; }} 0; }})"
        yield Site("once", path, text, m.start(), f"pthread_once of {function} made plain",
                   edit(text, [(m.start(), call_end(code, m.start()), plain)]))


def find_orders(path, text, code):
    for m in re.finditer(r"\bmemory_order_(acquire|release|acq_rel|seq_cst|consume)\b", code):
        weaker = ["relaxed"]
        if m[1] == "acq_rel" and "atomic_fetch" in code[code.rindex(";", 0, m.start()):m.start()]:
            weaker += ["acquire", "release"]
        for order in weaker:
            yield Site("order", path, text, m.start(), f"{m[1]} weakened to {order}",
                       edit(text, [(m.start(), m.end(), "memory_order_" + order)]))
    for m in re.finditer(r"\batomic_(?:load|store|exchange|fetch_[a-z]+|flag_test_and_set|"
                         r"flag_clear|compare_exchange_(?:weak|strong))\s*\(", code):
        end = call_end(code, m.start())
        orders = ", memory_order_relaxed" * (2 if "compare" in m[0] else 1)
        name = m[0].rstrip("( ")
        mutated = edit(text, [(end - 1, end - 1, orders),
                              (m.start(), m.start() + len(name), name + "_explicit")])
        yield Site("order", path, text, m.start(), f"{name} weakened to relaxed", mutated)
    # Plain operators on an atomic object are seq_cst, and have no weaker form to try.
    names = re.findall(r"(?:_Atomic\b[^;(]*?(?:\([^)]*\))?[^;(]*?|sb__counter\s[^;(]*?)"
                       r"(\w+)(?:\[\w*\])?;", code)
    for name in sorted(set(names)):
        for m in re.finditer(rf"(?:->|\w\.){name}\b(?:\[[^]]*\])?\s*(?:\+\+|--|[-+|&^]?=(?!=))", code):
            yield Site("order", path, text, m.start(), f"implicit seq_cst on {name}", None)


WAITS = (r"\b(?:sb__(?:settle|event_wait|stream_wait|streams_order|streams_wait|after_users|"
         r"device_synchronize)|(?:\w+(?:->|\.))+(?:stream_synchronize|stream_wait|event_wait))"
         r"\s*\(")


def find_waits(path, text, code):
    for start, end in functions(code):
        for m in re.finditer(WAITS, code[start:end]):
            at = start + m.start()
            name = re.split(r"->|\.", m[0])[-1].rstrip("( ")
            yield Site("wait", path, text, at, f"{name} left out",
                       edit(text, [(at, call_end(code, at), "SB_OK")]))


# What keeps storage until its last use is over, and what stands there when it is left out.
STEPS = [
    (r"\b(?:sb__streams_over|is_slot_over|is_over)\s*\(", "true", "taken for over"),
    (r"\b(?:leave_in_use|enlist|sb__quarantine_ask(?:_all)?)\s*\(", "(void)0",
     "left out"),
    (r"\bsb__lease_release\s*\(", None, "without users"),
]
WORDS = [
    (r"(?:->|\.)users\s*(\|=[^;]*);", "+= 0", "users are not added"),
    (r"\b(atomic_fetch_or_explicit\(&lease->users[^;]*);", "(void)0",
     "users do not come to the lease"),
    (r"\b(quarantine)\(&old", "give_back", "given back in place of quarantine"),
    (r"\bCHECKED\((check_process),", "sb__device_check", "a lost device is not asked"),
]


def find_quarantine(path, text, code):
    for start, end in functions(code):
        for pattern, by, story in STEPS:
            for m in re.finditer(pattern, code[start:end]):
                at = start + m.start()
                name, last = m[0].rstrip("( "), call_end(code, at)
                without = by or f"{name}({arguments(code, at).rsplit(',', 1)[0]}, 0)"
                yield Site("quarantine", path, text, at, f"{name} {story}",
                           edit(text, [(at, last, without)]))
        for pattern, by, story in WORDS:
            for m in re.finditer(pattern, code[start:end]):
                yield Site("quarantine", path, text, start + m.start(1), story,
                           edit(text, [(start + m.start(1), start + m.end(1), by)]))


def find_sites(source):
    for folder in FOLDERS:
        for file in sorted((source / folder).glob("*.[ch]")):
            text = file.read_text()
            code = blank(text)
            path = str(file.relative_to(source))
            for find in (find_locks, find_once, find_orders, find_waits, find_quarantine):
                yield from find(path, text, code)


# --- building ----------------------------------------------------------------

def pkg_config(option, *packages):
    return subprocess.check_output(["pkg-config", option, *packages], text=True).split()


def openblas():
    """As c/cmake/FindSyncblobOpenBLAS.cmake: the serial build where there is one."""
    for folder in pathlib.Path("/usr/lib").glob("*/openblas-serial"):
        include = folder.parts[-2]
        return ([f"-I/usr/include/{include}/openblas-serial"],
                [f"-L{folder}", f"-Wl,-rpath,{folder}", "-lopenblas"])
    return pkg_config("--cflags", "openblas"), pkg_config("--libs", "openblas")


class Build:
    """All of the library as a shared object whose hidden functions the tests reach too."""

    def __init__(self, source, folder, compiler):
        self.source, self.folder, self.compiler = source, folder, compiler
        blas_flags, self.blas_libs = openblas()
        self.flags = CFLAGS + [f"-I{source}/{d}" for d in ("c/include", "c/src", "proto")] + \
            blas_flags + pkg_config("--cflags", "libprotobuf-c")
        listed = (source / "c/sources.txt").read_text().split("\n")
        self.sources = [s for s in listed if s and not s.startswith("#")]
        self.sources.append("proto/syncblob.pb-c.c")

    def object_of(self, source):
        return self.folder / "objects" / (source.replace("/", "_") + ".o")

    def compile(self, file, out, extra=()):
        subprocess.run([self.compiler, *extra, *self.flags, "-c", str(file), "-o", str(out)],
                       check=True, capture_output=True, text=True)

    def link_library(self, objects, out):
        subprocess.run([self.compiler, "-fsanitize=thread", "-shared", "-Wl,-Bsymbolic",
                        "-Wl,-soname,libsyncblob.so", *map(str, objects), "-o", str(out),
                        *self.blas_libs, *pkg_config("--libs", "libprotobuf-c"), "-lm", "-ldl"],
                       check=True, capture_output=True, text=True)

    def library(self, jobs):
        (self.folder / "objects").mkdir(parents=True)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda s: self.compile(self.source / s, self.object_of(s)),
                          self.sources))
        self.link_library([self.object_of(s) for s in self.sources],
                          self.folder / "libsyncblob.so")

    def programs(self, names, jobs):
        include = ["-I" + str(self.source / "tests/support"), *pkg_config("--cflags", "cmocka"),
                   f'-DSB_SOURCE_DIR="{self.source}"']
        support = sorted((self.source / "tests/support").glob("*.c"))
        helpers = [self.folder / "objects" / ("support_" + s.stem + ".o") for s in support]

        def link(name):
            kind, _, test = name.partition(".")
            file, = (self.source / "tests").glob(f"**/{kind}/test_{test}.c")
            out = self.folder / "objects" / f"{name}.o"
            self.compile(file, out, include)
            subprocess.run([self.compiler, "-fsanitize=thread", str(out), *map(str, helpers),
                            f"-L{self.folder}", "-lsyncblob", "-lpthread", *self.blas_libs,
                            *pkg_config("--libs", "cmocka", "libprotobuf-c"),
                            "-o", str(self.folder / name)],
                           check=True, capture_output=True, text=True)

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda p: self.compile(p[0], p[1], include), zip(support, helpers)))
            list(pool.map(link, names))

    def includers(self, header):
        """The sources that see a header of c/src, directly or through another."""
        def sees(file, header, seen):
            for name in re.findall(r'^#include "([^"]+)"', file.read_text(), flags=re.M):
                path = self.source / "c/src" / name
                if "c/src/" + name == header:
                    return True
                if name not in seen and path.exists():
                    seen.add(name)
                    if sees(path, header, seen):
                        return True
            return False
        return [s for s in self.sources if sees(self.source / s, header, set())]

    def mutant(self, site, folder):
        """The library with one site changed."""
        below = folder / pathlib.Path(site.path).relative_to("c/src")
        below.parent.mkdir(parents=True)
        below.write_text(site.mutated)
        changed = {}
        for source in [site.path] if site.path.endswith(".c") else self.includers(site.path):
            changed[source] = folder / (source.replace("/", "_") + ".o")
            file = below if source == site.path else self.source / source
            self.compile(file, changed[source], [f"-I{folder}"])
        self.link_library([changed.get(s, self.object_of(s)) for s in self.sources],
                          folder / "libsyncblob.so")


# --- running -----------------------------------------------------------------

def run(build, library, name):
    """Why the program fails, or None."""
    environment = {**os.environ, **ENVIRONMENT, "LD_LIBRARY_PATH": str(library)}
    try:
        done = subprocess.run([str(build.folder / name)], env=environment, timeout=TIME_LIMIT,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        return "does not end"
    if done.returncode == 0:
        return None
    if done.returncode == 127:
        raise ValueError(f"{name} cannot be run: {done.stderr.strip()}")
    if "ThreadSanitizer" in done.stderr:
        return "ThreadSanitizer"
    return f"signal {-done.returncode}" if done.returncode < 0 else "assertion"


def judge(build, site, programs):
    """(passed, story)"""
    if site.mutated is None:
        return False, "no weaker form is known"
    with tempfile.TemporaryDirectory(dir=build.folder) as name:
        folder = pathlib.Path(name)
        try:
            build.mutant(site, folder)
            first = [p for p in PROGRAMS[site.kind] if p in programs]
            for program in first + [p for p in programs if p not in first]:
                why = run(build, folder, program)
                if why:
                    return True, f"{program} ({why})"
        except subprocess.CalledProcessError as failure:
            return False, "does not build: " + failure.stderr.strip().split("\n")[0]
        except ValueError as failure:
            return False, str(failure)
    return False, "no test notices"


def baseline(build, programs):
    """The programs by their time; each must pass as things are."""
    times = {}
    for program in programs:
        start = time.monotonic()
        why = run(build, build.folder, program)
        if why:
            sys.exit(f"weaken: {program} fails before anything is changed: {why}")
        times[program] = time.monotonic() - start
    return sorted(programs, key=times.get)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--list", action="store_true", help="print the sites and end")
    parser.add_argument("--only", metavar="REGEX", default="", help="sites whose line matches")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (2)")
    options = parser.parse_args()

    scratch = pathlib.Path(tempfile.mkdtemp(prefix="weaken-"))
    try:
        source = scratch / "source"
        for folder in ("c", "proto", "tests"):
            shutil.copytree(ROOT / folder, source / folder)
        sites = [s for s in find_sites(source) if re.search(options.only, str(s))]
        if options.list:
            print(*sites, sep="\n")
            return 0
        if not sites:
            sys.exit("weaken: no site was found")
        names = [p for kind in PROGRAMS.values() for p in kind] + EVERYWHERE
        start = time.monotonic()
        build = Build(source, scratch / "build", os.environ.get("CLANG", "clang"))
        build.library(options.jobs)
        build.programs(names, options.jobs)
        programs = baseline(build, names)
        print(f"{len(sites)} sites; {len(programs)} programs built in "
              f"{time.monotonic() - start:.0f} s", flush=True)
        return report(build, sites, programs, options.jobs)
    except subprocess.CalledProcessError as failure:
        sys.exit(f"weaken: {' '.join(failure.cmd[:1])} failed:\n{failure.stderr}")
    finally:
        shutil.rmtree(scratch)


def report(build, sites, programs, jobs):
    failed = 0
    lock = threading.Lock()

    def one(site):
        nonlocal failed
        passed, story = judge(build, site, programs)
        with lock:
            failed += not passed
            print(f"{'ok    ' if passed else 'FAILED'}  {site}: {story}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, sites))
    print(f"\n{len(sites) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
