#!/usr/bin/env python3
"""Merges the library's sources into two files, which programs can add to their own sources.

    python3 c/bundle.py thirdparty
    cc -c thirdparty/syncblob.c && cc program.c syncblob.o -lm -lpthread -ldl

The folder thirdparty then contains syncblob.h (all public headers) and syncblob.c (the sources that
c/sources.txt and cuda/sources.txt list). The two files need only a C compiler. To use OpenBLAS or
Random123, define SYNCBLOB_OPENBLAS or SYNCBLOB_RANDOM123, as in the CMake build.

Static names, such as `check` and `copy`, are unique only within their source. If several sources
define the same name at file scope, the script prefixes the name with the name of the source. The
script renames identifiers, but does not change texts, comments or struct members. If it makes a
mistake, a name is declared twice or not at all, and the file does not compile.
"""
import argparse
import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE, SOURCE = ROOT / "c/include", ROOT / "c/src"
PUBLIC = re.compile(r"^#include <syncblob/(\w+\.h)>.*\n", re.MULTILINE)
PRIVATE = re.compile(r'^#include "([\w/.-]+)".*\n', re.MULTILINE)
TOKEN = re.compile(r'''/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|'''
                   r"(?:(?:\.|->)\s*)?\b[A-Za-z_]\w*", re.DOTALL)
PROLOGUE = """/* syncblob, the library in one file: made by c/bundle.py from its sources. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#if !defined(__LP64__) && !defined(_WIN32) && !defined(_FILE_OFFSET_BITS)
#define _FILE_OFFSET_BITS 64
#endif
#ifdef _WIN32
#define _CRT_RAND_S /* before the first system header */
#endif
#ifndef SYNCBLOB_NO_CUDA
#define SYNCBLOB_CUDA
#endif
#define SB__STATIC
#ifndef SB_EXPERIMENTAL
#define SB_EXPERIMENTAL
#endif
#include "syncblob.h"

#if defined(__GNUC__) /* some functions of headers are unused; -Wmaybe-uninitialized is wrong */
#pragma GCC diagnostic ignored "-Wunused-function"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#endif

/* A fused multiply-add rounds differently: without it, every compiler computes the same numbers. */
#if defined(__clang__)
#pragma clang fp contract(off)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off", "no-math-errno")
#endif
"""


def listed():
    for path in ("c/sources.txt", "cuda/sources.txt"):
        for line in (ROOT / path).read_text().splitlines():
            if line and not line.startswith("#"):
                yield ROOT / line
    yield next(SOURCE.rglob("pack_plain.c"))


def in_order(files, includes_of):
    """Returns the files and all files that they include: each once, after its own includes."""
    seen, order = set(), []

    def visit(file):
        if file not in seen:
            seen.add(file)
            for other in includes_of(file):
                visit(other)
            order.append(file)

    for file in files:
        visit(file)
    return order


def public_headers():
    folder = INCLUDE / "syncblob"
    first = [folder / "syncblob.h", *sorted(folder.glob("*.h"))]
    return in_order(first, lambda file: [folder / name for name in PUBLIC.findall(file.read_text())])


def find_private(file, name):
    for folder in (file.parent, SOURCE, ROOT):
        if (folder / name).is_file():
            return folder / name
    return None


def includes(file, conditional):
    """Returns the private headers that a file includes: within #if if `conditional`, else outside."""
    depth, found = 0, []
    guard = file.suffix == ".h"
    for line in file.read_text().splitlines():
        depth += line.startswith("#if")
        depth -= line.startswith("#endif")
        m = PRIVATE.match(line + "\n")
        header = find_private(file, m[1]) if m else None
        if header and (depth > guard) == conditional:
            found.append(header)
    return found


def private_headers(sources):
    """Returns the private headers that a source or header includes outside of #if."""
    found = in_order(sources, lambda file: includes(file, False))
    return [file for file in found if file.suffix == ".h"]


def without_includes(file, shared):
    """Returns a file's text without #includes. A header outside `shared` replaces its #include."""
    def in_place(m):
        header = find_private(file, m[1])
        if not header:
            return m[0]
        return "" if header in shared else without_includes(header, shared)
    return PRIVATE.sub(in_place, PUBLIC.sub("", file.read_text()))


# clang-format formats the sources, so declarations at file scope begin in the first column.
STATIC = re.compile(r"^(?:[A-Z][A-Z_0-9]* )?(?:__attribute__\(\([^\n]*\)\) )?static "
                    r"[^;={]*?\(?\*?\b(\w+)\)?(?=\(|\[| =|;)", re.MULTILINE)
TYPE = re.compile(r"^(?:typedef )?(?:struct|union|enum) (\w+) \{", re.MULTILINE)
TYPEDEF = re.compile(r"^typedef [^;{]*?\(?\*?(\w+)\)?(?:\([^;]*\))?;", re.MULTILINE)
ENUM = re.compile(r"^(?:typedef )?enum(?: \w+)? \{(.*?)\}", re.MULTILINE | re.DOTALL)


def names_of(text):
    """Returns the names that a source defines at file scope, other than macros."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    names = {name for pattern in (STATIC, TYPE, TYPEDEF) for name in pattern.findall(text)}
    for body in ENUM.findall(text):
        names.update(re.findall(r"(?:^|,)\s*([A-Za-z_]\w*)", body))
    return names - set(re.findall(r"^#define (\w+)", text, re.MULTILINE))


def renamed(text, names, prefix):
    def token(m):
        word = m[0]
        return prefix + word if word in names else word
    return TOKEN.sub(token, text)


def source_texts(sources, shared):
    texts = {file: without_includes(file, shared) for file in sources}
    own = {file: names_of(file.read_text()) for file in sources}
    owners = collections.Counter(name for names in own.values() for name in names)
    for file, text in texts.items():
        prefix = f"sb__{file.parent.name}_{file.stem}_"
        text = renamed(text, {name for name in own[file] if owners[name] > 1}, prefix)
        macros = sorted(set(re.findall(r"^#define (\w+)", file.read_text(), re.MULTILINE)))
        undefine = "".join(f"#undef {macro}\n" for macro in macros)
        yield f"\n/* --- {file.relative_to(ROOT).as_posix()} --- */\n{text}{undefine}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0],
                                     epilog=__doc__.partition("\n\n")[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the two files go")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    sources = list(listed())
    header = "".join(PUBLIC.sub("", file.read_text()) for file in public_headers())
    (folder / "syncblob.h").write_text(header)
    shared = private_headers(sources)
    headers = "".join(without_includes(file, shared) for file in shared)
    (folder / "syncblob.c").write_text(PROLOGUE + headers + "".join(source_texts(sources, shared)))


if __name__ == "__main__":
    main()
