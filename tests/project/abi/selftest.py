#!/usr/bin/env python3
"""Tests that the checks of this folder report errors: changes a declaration in a copy of the
headers, or compiles a small library with one protection switched off.

    selftest.py CC LIBRARY      LIBRARY: libsyncblob.so of these sources
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import check_hardening
import interface

# A file below c, a text in it, the replacement, and parts of the reports of abidiff and of check_exports.
# An empty report means that no difference is found.
CHANGES = [
    ("include/syncblob/blob.h", "const sb_blob *blob, int32_t start, int32_t end",
     "const sb_blob *blob, int64_t start, int32_t end", "parameter 2 of type", ""),
    ("include/syncblob/blob.h", "SB_API int64_t sb_blob_count(const sb_blob *blob);", "",
     "1 Removed function", "sb_blob_count@@SYNCBLOB_0.1: exported, not declared"),
    ("include/syncblob/blob.h", "SB_API int64_t sb_blob_count(const sb_blob *blob);",
     "#ifdef SB_EXPERIMENTAL\nSB_API int64_t sb_blob_count(const sb_blob *blob);\n#endif",
     "1 Removed function", "sb_blob_count@@SYNCBLOB_EXPERIMENTAL_0.1: declared, not exported"),
    ("include/syncblob/blob.h", "SB_API int64_t sb_blob_count(const sb_blob *blob);",
     "SB_API void sb_more(void);\nSB_API int64_t sb_blob_count(const sb_blob *blob);",
     "1 Added function", "sb_more@@SYNCBLOB_0.1: declared, not exported"),
    ("include/syncblob/base.h", "SB_VERSION_MINOR 1", "SB_VERSION_MINOR 2", "",
     "the SONAME is not libsyncblob.so.0.2"),
    ("include/syncblob/mem.h", "SB_SIDE_GPU = 1", "SB_SIDE_GPU = 2", "SB_SIDE_GPU 2", ""),
    ("include/syncblob/status.h", "int32_t device_code;", "uint32_t device_code;", "device_code", ""),
    ("include/syncblob/context.h", "size_t max_memory;", "size_t min_memory;\n    size_t max_memory;",
     "min_memory", ""),
    ("include/syncblob/sim_device.h", "    size_t struct_size;",
     "    size_t struct_size;\n    size_t more;", "more", ""),
    ("comm/include/syncblob/reducer.h", "size_t bucket_bytes;", "int64_t bucket_bytes;",
     "bucket_bytes", ""),
]
HARD = ["-g", "-O2", "-fPIC", "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2",
        "-fcf-protection=full"]
LINKED = ["-shared", "-Wl,-z,relro,-z,now,-z,noexecstack,-z,ibt,-z,shstk"]
# Additional flags, and the complaint about a library that is compiled with these flags.
WEAK = [
    ([], ""),
    (["-Wl,-z,norelro"], "no RELRO"),
    (["-Wl,-z,lazy"], "resolved lazily"),
    (["-Wl,-z,execstack"], "stack is executable"),
    (["-nostdlib", "-Wl,-N"], "a segment is writable and executable"),
    (["-Wl,-rpath,/tmp/any"], "RUNPATH has the folder '/tmp/any'"),
    (["-fno-stack-protector"], "no stack protector"),
    (["-U_FORTIFY_SOURCE"], "no checked call"),
    (["-fno-pic", "-mcmodel=large", "-Wl,-z,notext"], "text relocations"),
]
SOURCE = """
#include <string.h>
size_t f(const char *from, size_t n) { char text[32]; memcpy(text, from, n); return strlen(text); }
"""
failures = 0


def expect(what, complaint, found):
    global failures
    if (complaint not in found) if complaint else found.strip():
        failures += 1
        print(f"FAILED: {what}: expected {complaint!r}, found {found!r}")


def headers_changed(cc, library, work):
    for file, old, new, reported, complaint in CHANGES:
        root = pathlib.Path(tempfile.mkdtemp(dir=work))
        for folder in interface.Headers(interface.ROOT, cc).folders:
            shutil.copytree(folder, root / folder.relative_to(interface.ROOT))
        path = root / "c" / file
        text = path.read_text()
        expect(f"{file} has no {old}", "1", str(text.count(old)))
        path.write_text(text.replace(old, new, 1))
        headers = interface.Headers(root, cc)
        expect(new, reported, interface.difference(headers.record()))
        expect(new, complaint, "\n".join(interface.check_exports(headers, "core", library)))


def flags_missing(cc, work):
    (work / "weak.c").write_text(SOURCE)
    library, weak_object = work / "weak.so", work / "weak.o"
    for flags, complaint in WEAK:
        subprocess.run([cc, *HARD, *LINKED, work / "weak.c", "-o", library, *flags], check=True)
        expect(flags, complaint, "\n".join(check_hardening.problems("library", library, [], True)))
    subprocess.run([cc, *HARD, *LINKED, work / "weak.c", "-o", library], check=True)
    expect("a foreign library", "marked for IBT", "\n".join(check_hardening.problems("foreign", library)))
    subprocess.run([cc, *HARD, "-fcf-protection=branch", "-c", work / "weak.c", "-o", weak_object],
                   check=True)
    subprocess.run(["ar", "rc", work / "weak.a", weak_object], check=True)
    expect("an archive", "not compiled for SHSTK",
           "\n".join(check_hardening.problems("archive", work / "weak.a")))


def main():
    cc, library = sys.argv[1:]
    if reason := interface.why_not(cc):
        print(f"skipped: {reason}")
        return interface.SKIPPED
    with tempfile.TemporaryDirectory() as work:
        headers_changed(cc, library, pathlib.Path(work))
        flags_missing(cc, pathlib.Path(work))
    print(f"{len(CHANGES) + len(WEAK) + 2 - failures} passed, {failures} failed")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
