#!/usr/bin/env python3
"""Plants errors in a copy of the repository; the checks of this folder must report each.

    selftest.py abi LIBRARY                 LIBRARY: libsyncblob.so of these sources
    selftest.py documents --prefix PREFIX --cli SYNCBLOB
    selftest.py release
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BLOB = "c/include/syncblob/blob.h"
COUNT = "SB_API int64_t sb_blob_count(const sb_blob *blob);"
LIST = "Errors: DTYPE_MISMATCH."
COMPILED = "cc first.c $(pkg-config --cflags --libs syncblob) -o first && ./first"
PROGRAM = "```c\n#include <syncblob/syncblob.h>\nint main(void) { return sb_version() == 0; }\n```\n" \
    "```sh\ncmake -B b && cmake --install b --prefix ~/x\n"

CHECKS = {
    "compare": "abi/interface.py --cc gcc compare", "exports": "abi/interface.py --cc gcc exports core {}",
    "blocks": "documents/check_blocks.py {} page.md", "names": "documents/check_names.py page.md",
    "reference": "documents/check_reference.py", "release": "release/check.py",
}
ROWS = {"abi": {
    "compare": [
        (BLOB, "const sb_blob *blob, int32_t start, int32_t end",
         "const sb_blob *blob, int64_t start, int32_t end", "parameter 2 of type"),
        (BLOB, COUNT, "", "1 Removed function"),
        (BLOB, COUNT, f"SB_API void sb_more(void);\n{COUNT}", "1 Added function"),
        ("c/include/syncblob/mem.h", "SB_SIDE_GPU = 1", "SB_SIDE_GPU = 2", "SB_SIDE_GPU 2"),
        ("c/include/syncblob/context.h", "size_t max_memory;", "size_t min_memory;\n    size_t max_memory;", "min_memory"),
        ("c/comm/include/syncblob/reducer.h", "size_t bucket_bytes;", "int64_t bucket_bytes;", "bucket_bytes"),
    ],
    "exports": [
        (BLOB, COUNT, "", "sb_blob_count@@SYNCBLOB_0.1: exported, not declared"),
        (BLOB, COUNT, f"#ifdef SB_EXPERIMENTAL\n{COUNT}\n#endif",
         "sb_blob_count@@SYNCBLOB_EXPERIMENTAL_0.1: declared, not exported"),
        ("c/include/syncblob/base.h", "SB_VERSION_MINOR 1", "SB_VERSION_MINOR 2", "the SONAME is not libsyncblob.so.0.2"),
    ],
}, "documents": {
    "reference": [
        (BLOB, LIST, "Errors: NOTHING.", "not a code of status.h"),
        (BLOB, LIST, "", "has no list"),
        (BLOB, LIST, "Errors: as sb_nothing.", "which has none"),
        (BLOB, "(counts differ), DTYPE_MISMATCH", "(counts differ), IO", "expects DTYPE_MISMATCH of sb_blob_share"),
        (BLOB, f"\n *  {LIST}", f"\n * {LIST}", "not in the form of a contract"),
        (BLOB, "@param other [borrowed]", "", "parameter other"),
        (BLOB, "@param other [borrowed]", "@param other [ownd, nullable]", "[ownd, nullable]: not"),
        (BLOB, "/**< the memory of data */", "", "SB_REALLOCATED_DATA: is not described"),
        (BLOB, "@return [borrowed] not NULL", "@return not NULL", "has no @return"),
    ],
    "names": [("page.md", "", text, complaint) for text, complaint in [
        ("`c/src/nothing.c`", "no such file"), ("`sb_nothing`", "no header declares sb_nothing")]],
    "blocks": [("page.md", "", text, complaint) for text, complaint in [
        ("    ./dev test\n", "a block without a fence"),
        ("- a list\n\n  ```c\n  nothing\n  ```\n", "page.md:3: a fence is"),
        ("```text\nnothing\n```c\n", "page.md:3: a fence is"),
        (PROGRAM + COMPILED + "\n```\n", "syncblob.pc"),
        (f"{PROGRAM}export PKG_CONFIG_PATH=~/x/lib/pkgconfig\n{COMPILED}\n```\n", "libsyncblob.so.0.1"),
        *((f"```{info}\n{text}\n```\n", complaint) for info, text, complaint in [
            ("toml", "a = 1", "not a kind of block"),
            ("c", "int main(void) { return 3; }", "first"),
            ("c fragment", "sb_blob *b = NULL;\nif (sb_blob_create(NULL, 1, &b, &err)) goto failed;",
             "LeakSanitizer"),
            ("c file=a.c", "int main(void) { return 4; }", "a.c"),
            ("cmake", "find_package(nothing REQUIRED)", "nothing"),
            ("cmake part", "add_subdirectory(syncblob)\nget_target_property(x syncblob::nothing NAME)",
             "syncblob::nothing"),
            ("rust", "fn main() {}", "no crate"),
            ("json", '{"a": }', "Expecting value"),
            ("sh", "./dev test --nothing", "does not know --nothing"),
            ("sh", "cd tests; nothing", "tests;: nothing here understands"),
            ("sh", "cmake --preset nothing", "no preset nothing"),
            ("sh", "cmake -B b -DSYNCBLOB_NOTHING=ON", "no option -DSYNCBLOB_NOTHING"),
            ("sh", "cargo add x --path bindings/nothing", "no package or program x"),
            ("sh", "git nothing", "knows this command"),
            ("sh", "cd nothing", "no such folder"),
            ("sh", "syncblob info net.caffemodel && \\\n  syncblob nothing", "nothing"),
            ("sh", "bindings/sanitize.sh --nothing", "has no --nothing"),
        ])]],
}, "release": {
    "release": [
        ("CMakeLists.txt", "VERSION 0.", "VERSION 7.", "CMakeLists.txt (1) has 7."),
        ("Cargo.lock", 'name = "syncblob-sys"\nversion = "0', 'name = "syncblob-sys"\nversion = "7', "has 7."),
        ("c/include/syncblob/base.h", "VERSION_PATCH ", "VERSION_PATCH 77", "base.h (1) has 0.1.77"),
        ("bindings/syncblob/Cargo.toml", 'syncblob-sys = { version = "0', 'syncblob-sys = { version = "7', "has 7."),
        ("bindings/syncblob-cli/Cargo.toml", "description =", "homepage =", "syncblob-cli has no description"),
        ("bindings/syncblob/Cargo.toml", "repository.workspace = true",
         'repository = "https://example.org/another"', "repositories: "),
        ("CHANGELOG.md", "## ", "## 7.7.7 (2030-01-01) ", "CHANGELOG.md begins with '7.7.7 "),
        ("c/mpi/libsyncblob-mpi.map", "SYNCBLOB_MPI_0", "SYNCBLOB_MPI_7", "libsyncblob-mpi.map has nodes of 7.1"),
        ("CHANGELOG.md", "\n", "\n\n", "not committed:  M CHANGELOG.md"),
    ],
}}
HARD = "gcc -g -O2 -fPIC -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fcf-protection=full"
LINKED = f"{HARD} -shared -Wl,-z,relro,-z,now,-z,noexecstack,-z,ibt,-z,shstk weak.c -o weak"
WEAK = [
    ("library", LINKED, ""),
    ("library", f"{LINKED} -Wl,-z,norelro", "no RELRO"),
    ("library", f"{LINKED} -Wl,-z,lazy", "resolved lazily"),
    ("library", f"{LINKED} -Wl,-z,execstack", "stack is executable"),
    ("library", f"{LINKED} -nostdlib -Wl,-N", "a segment is writable and executable"),
    ("library", f"{LINKED} -Wl,-rpath,/tmp/any", "RUNPATH has the folder '/tmp/any'"),
    ("library", f"{LINKED} -fno-stack-protector", "no stack protector"),
    ("library", f"{LINKED} -U_FORTIFY_SOURCE", "no checked call"),
    ("library", f"{LINKED} -fno-pic -mcmodel=large -Wl,-z,notext", "text relocations"),
    ("foreign", LINKED, "marked for IBT"),
    ("archive", f"{HARD} -fcf-protection=branch -c weak.c -o weak.o && rm weak && ar rc weak weak.o",
     "not compiled for SHSTK"),
]
SOURCE = """#include <string.h>
size_t f(const char *from, size_t n) { char text[32]; memcpy(text, from, n); return strlen(text); }
"""
failures = []


def shell(command, folder):
    done = subprocess.run(command, cwd=folder, shell=True, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def expect(what, complaint, found):
    status, report = found
    if status != bool(complaint) or complaint not in report:
        failures.append(what)
        print(f"FAILED: {what}: status {status}, without {complaint!r}:\n{report}")


def copy_repository(to):
    to.mkdir()
    shell(f"git -C {ROOT} ls-files -z -co --exclude-standard | tar -C {ROOT} --null -T - -c --ignore-failed-read | "
          "tar -x && git init -q && git add -A && git -c user.name=t -c user.email=t@t commit -qm all && "
          "printf 'page.md\\nsyncblob\\n' >.git/info/exclude", to)
    (to / "page.md").write_text("")


def main():
    group, arguments = sys.argv[1], " ".join(sys.argv[2:])
    if group == "abi" and not shutil.which("abidiff"):
        print("skipped: abidiff is not installed (abigail-tools)")
        return 77
    count = 0
    with tempfile.TemporaryDirectory() as name:
        copy = pathlib.Path(name) / "copy"
        copy_repository(copy)
        for check, rows in ROWS[group].items():
            command = f"{sys.executable} -B tests/project/{CHECKS[check].format(arguments)}"
            expect(f"{check}: nothing planted", "", shell(command, copy))
            for file, old, new, complaint in rows:
                whole = (copy / file).read_text()
                (copy / file).write_text(whole.replace(old, new, 1))
                expect(f"{file}: {new!r}", complaint, shell(command, copy) if old in whole else (0, f"no {old!r}"))
                (copy / file).write_text(whole)
            count += len(rows) + 1
        (copy / "weak.c").write_text(SOURCE)
        for kind, command, complaint in WEAK if group == "abi" else []:
            checked = f"{command} && python3 -B tests/project/abi/check_hardening.py {kind} weak --fortified"
            expect(checked, complaint, shell(checked, copy))
            count += 1
    print(f"{count - len(failures)} passed, {len(failures)} failed")
    return len(failures) != 0


if __name__ == "__main__":
    sys.exit(main())
