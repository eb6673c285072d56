#!/usr/bin/env python3
"""Checks a wheel before publication: check_published.py WHEEL

Checks the wheel's tags, its files, the oldest glibc that it supports, and the libraries that it needs.
"""
import io
import re
import sys
import zipfile

from elftools.elf.elffile import ELFFile

OLDEST_GLIBC = (2, 28)
LIBRARIES = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0",
             "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
FILES = {"__init__.py", "__main__.py", "_syncblob.abi3.so", "_syncblob.pyi", "errors.py",
         "opencv.py", "py.typed"}
MOST_BYTES = 4 << 20


def problems(path):
    if not re.search(r"-cp39-abi3-manylinux_2_28_(x86_64|aarch64)\.whl$", path):
        yield f"{path} does not have the expected tags"
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        module = {name.removeprefix("syncblob/") for name in names if name.startswith("syncblob/")}
        if module != FILES:
            yield f"missing or unexpected files {sorted(module ^ FILES)}"
        if not any(name.endswith("licenses/LICENSE-MIT") for name in names):
            yield "no licence"
        size = sum(entry.compress_size for entry in wheel.infolist())
        if size > MOST_BYTES:
            yield f"{size} bytes"
        library = wheel.read("syncblob/_syncblob.abi3.so")
    yield from library_problems(ELFFile(io.BytesIO(library)))


def library_problems(library):
    needed = {tag.needed for tag in library.get_section_by_name(".dynamic").iter_tags("DT_NEEDED")}
    if needed - LIBRARIES:
        yield f"needs {needed - LIBRARIES}"
    for entry, versions in library.get_section_by_name(".gnu.version_r").iter_versions():
        for version in versions:
            number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version.name)
            if number and tuple(map(int, number.groups()[:2])) > OLDEST_GLIBC:
                yield f"{entry.name} {version.name}"
    ours = {symbol.name for symbol in library.get_section_by_name(".dynsym").iter_symbols()
            if symbol["st_shndx"] != "SHN_UNDEF"}
    if ours != {"PyInit__syncblob"}:
        yield f"exports {sorted(ours)[:10]}"


def main(path):
    found = list(problems(path))
    print("\n".join(found) or f"{path.rpartition('/')[2]}: no problems found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
