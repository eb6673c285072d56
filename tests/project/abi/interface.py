#!/usr/bin/env python3
"""Checks the interface that the public headers declare: functions, structs and constants.

    interface.py [--cc CC] exports NAME LIBRARY
    interface.py [--cc CC] compare
    interface.py [--cc CC] update [--reviewed]

"exports" checks the exported functions of a shared library, their symbol versions, and the SONAME. NAME is
"core", or X for libsyncblob-X.

"compare" fails if the interface differs from the recorded interface of x86-64. "update" records the interface
if functions, structs or constants were only added. "update --reviewed" records any interface.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[3]
BASELINE = ROOT / "c/abi/syncblob-x86_64.abi"
# A new version may increase these constants.
CHANGING = r"SB_VERSION_\w+|SB_BACKEND_ABI_VERSION|SB_DL_MINOR_VERSION|SB_SIM_OP_COUNT|SB_STATUS_END_"
ATTRIBUTES = r'__attribute__\(\((deprecated(\("[^"]*"\))?|warn_unused_result|may_alias)\)\)'
FUNCTION = re.compile(r'__attribute__\(\(visibility\("default"\)\)\)([^;{(]*?)\b(\w+)\s*\(([^;]*)\);')


def output(*command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


class Headers:
    def __init__(self, root, cc):
        self.cc, self.core = cc, root / "c/include"
        self.over = {"comm": root / "c/comm/include", "testing": root / "c/testing/include",
                     "conformance": root / "c/conformance/include",
                     "net": root / "bindings/syncblob-net-c/include"}
        self.folders = [self.core, *self.over.values()]
        self.files = [file for folder in self.folders for file in self.of(folder)]
        text = (self.core / "syncblob/base.h").read_text()
        self.version = ".".join(re.search(rf"#define SB_VERSION_{part} (\d+)", text)[1]
                                for part in ("MAJOR", "MINOR"))

    @staticmethod
    def of(folder):
        return sorted((folder / "syncblob").glob("*.h"))

    def preprocessed(self, files, *defines):
        command = [self.cc, "-std=c11", "-E", "-P", *defines, *self.options(), "-"]
        return re.sub(ATTRIBUTES, "", output(*command, input=includes(files)))

    def options(self):
        return [f"-I{folder}" for folder in self.folders]

    def functions(self, folder, *defines):
        texts = "".join(file.read_text() for file in self.of(folder))
        return {match[2]: f"{match[1]} {match[2]}({match[3]})"
                for match in FUNCTION.finditer(self.preprocessed(self.of(folder), *defines))
                if declares(texts, match[2])}

    def exports(self, name):
        every = self.functions(self.over.get(name, self.core), "-DSB_EXPERIMENTAL")
        if name in self.over:
            return {f"{function}@@SYNCBLOB_{name.upper()}_{self.version}" for function in every}
        stable = self.functions(self.core)
        backend = (self.core / "syncblob/backend.h").read_text()
        return {f"{function}@@SYNCBLOB_{tier}{self.version}" for function in every
                for tier in ["BACKEND_" if declares(backend, function) else
                             "" if function in stable else "EXPERIMENTAL_"]}

    def structs(self):
        text = self.preprocessed(self.files, "-DSB_EXPERIMENTAL")
        return re.findall(r"\bstruct\s+(sb_\w+)\s*\{", text)

    def constants(self):
        text = self.preprocessed(self.files, "-DSB_EXPERIMENTAL")
        found = {name for body in re.findall(r"\benum\s*\{([^{}]*)\}", text)
                 for name in re.findall(r"\bSB_\w+(?=\s*(?:=|,|$))", body)}
        found.update(name for file in self.files for name in
                     re.findall(r"^#define (SB_\w+) \(?-?\d+\)?(?: /\*.*)?$", file.read_text(),
                                re.MULTILINE))
        return sorted(name for name in found if not re.fullmatch(CHANGING, name))

    def definitions(self):
        lines = ["#define SB_EXPERIMENTAL", includes(self.files)]
        lines += [f"{declaration} {{ for (;;) {{}} }}" for folder in self.folders
                  for declaration in self.functions(folder).values()]
        lines += [f"struct {name} layout_of_{name};" for name in self.structs()]
        lines += ["enum constants {", *(f"VALUE_{name} = {name}," for name in self.constants()),
                  "} constants;"]
        return "\n".join(lines)

    def record(self):
        with tempfile.TemporaryDirectory() as folder:
            library = f"{folder}/interface.so"
            output(self.cc, "-g", "-w", "-O0", "-shared", "-fPIC", *self.options(), "-xc", "-",
                   "-o", library, input=self.definitions())
            return output("abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs",
                          "--no-elf-needed", "--type-id-style", "hash", library)


def includes(files):
    return "".join(f"#include <syncblob/{file.name}>\n" for file in files)


def declares(text, function):
    return re.search(rf"\bSB_API\b[^;{{]*\b{function}\(", text)


def exported(library):
    listed = output("nm", "-D", "--with-symbol-versions", "--defined-only", library)
    return set(re.findall(r" [B-Z] (\S+)$", listed, re.MULTILINE))


def check_exports(headers, name, library):
    expected, found = headers.exports(name), exported(library)
    suffix = f"-{name}" if name in headers.over else ""
    soname = f"libsyncblob{suffix}.so.{headers.version}"
    problems = [f"{symbol}: declared, not exported" for symbol in sorted(expected - found)]
    problems += [f"{symbol}: exported, not declared" for symbol in sorted(found - expected)]
    if f"[{soname}]" not in output("readelf", "-dW", library):
        problems.append(f"the SONAME is not {soname}")
    return problems


def why_not(cc):
    machine = output(cc, "-dumpmachine").strip()
    if not machine.startswith("x86_64-") or "linux" not in machine:
        return f"the recorded interface is that of x86-64 Linux, not of {machine}"
    return "" if shutil.which("abidiff") else "abidiff is not installed (abigail-tools)"


def difference(recorded, additions=True):
    """Compares the values of enumerators too, because abidiff 2.2 does not."""
    with tempfile.NamedTemporaryFile("w", suffix=".abi") as found:
        found.write(recorded)
        found.flush()
        options = [] if additions else ["--no-added-syms"]
        ended = subprocess.run(["abidiff", *options, BASELINE, found.name], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    report = ended.stdout or f"abidiff: status {ended.returncode}" if ended.returncode else ""
    before, now = (set(re.findall(r"<enumerator name='VALUE_(\w+)' value='(-?\d+)'", text))
                   for text in (BASELINE.read_text(), recorded))
    changed = before - now | (now - before if additions else set())
    return report + "".join(f"{name} {number}: recorded, not declared, or the reverse\n"
                            for name, number in sorted(changed))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--reviewed", action="store_true")
    parser.add_argument("action", choices=["exports", "compare", "update"])
    parser.add_argument("library", nargs="*", metavar="NAME LIBRARY")
    given = parser.parse_args()
    headers = Headers(ROOT, given.cc)
    if given.action == "exports":
        problems = check_exports(headers, *given.library)
    elif reason := why_not(given.cc):
        print(f"skipped: {reason}")
        return SKIPPED
    else:
        recorded = headers.record()
        problems = [difference(recorded, given.action == "compare")]
        if given.action == "update" and (given.reviewed or not problems[0]):
            BASELINE.write_text(recorded)
            return 0
    print("\n".join(problems))
    return any(problems)


if __name__ == "__main__":
    sys.exit(main())
