#!/usr/bin/env python3
"""The checks of documents find what they are for: a page or header with one thing wrong each.

    selftest.py --prefix PREFIX --cli SYNCBLOB
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parents[2] / "c" / "include" / "syncblob"

# A block's info and text, and a part of what must be said about it.
BLOCKS = [
    ("", "int x;", "no kind of block"),
    ("toml", "a = 1", "no kind of block"),
    ("c", "int main(void) { return sb_nothing(); }", "sb_nothing"),
    ("c", "int main(void) { return 3; }", "first"),
    ("c fragment", "sb_nothing();", "sb_nothing"),
    ("c fragment", "sb_blob *b = NULL;\nif (sb_blob_create(NULL, 77, &b, &err)) goto failed;",
     "77 is no dtype"),
    ("c fragment", "sb_blob *b = NULL;\nif (sb_blob_create(NULL, 1, &b, &err)) goto failed;",
     "LeakSanitizer"),
    ("c file=a.c", "int main(void) { return 4; }", "a.c"),
    ("cpp", "int main() { return 5; }", "example"),
    ("cpp caffe", "Blob<float> b; b.Nothing();", "Nothing"),
    ("cmake", "find_package(nothing REQUIRED)", "nothing"),
    ("cmake part", "add_subdirectory(syncblob)\nget_target_property(x syncblob::nothing NAME)",
     "syncblob::nothing"),
    ("rust", "fn main() {}", "no crate"),
    ("json", '{"a": }', "Expecting value"),
    ("sh", "./dev nothing", "does not know nothing"),
    ("sh", "./dev test --nothing", "does not know --nothing"),
    ("sh", "./dev test nothing", "does not know nothing"),
    ("sh", "./dev fuzz 60 nothing", "does not know nothing"),
    ("sh", "./dev bench nothing", "does not know nothing"),
    ("sh", "./dev test & nothing", "&: nothing here understands"),
    ("sh", "cd tests; nothing", "tests;: nothing here understands"),
    ("sh", "./dev test >out nothing", "does not know nothing"),
    ("sh", "./dev test $(nothing)", "only cc"),
    ("sh", "cmake --preset nothing", "no preset nothing"),
    ("sh", "cmake -B b --nothing", "knows --nothing"),
    ("sh", "cmake -B b -DSYNCBLOB_NOTHING=ON", "no option SYNCBLOB_NOTHING"),
    ("sh", "cmake -B b -DSYNCBLOB_OPENBLAS=nothing", "ON or OFF"),
    ("sh", "cpack -G NOTHING", "no generator NOTHING"),
    ("sh", "cargo add x --path bindings/nothing", "no bindings/nothing"),
    ("sh", "cargo add nothing --path bindings/syncblob", "no package nothing"),
    ("sh", "cargo run -p nothing", "no package nothing"),
    ("sh", "cargo run --nothing", "knows --nothing"),
    ("sh", "cargo nothing", "knows nothing"),
    ("sh", "ctest --preset nothing", "no preset nothing"),
    ("sh", "cargo fuzz run nothing", "no fuzz target"),
    ("sh", "git nothing", "knows this command"),
    ("sh", "cd nothing", "no such folder"),
    ("sh", "syncblob info --nothing net.caffemodel", "--nothing"),
    ("sh", "ls && syncblob convert net.caffemodel x.nothing", "knows this command"),
    ("sh", "syncblob info net.caffemodel && \\\n  syncblob nothing", "nothing"),
    ("sh", "cc first.c -o first", "first.c"),
    ("sh", "bindings/nothing.sh", "no script"),
    ("sh", "bindings/sanitize.sh --nothing", "has no --nothing"),
]
# Whole pages.
PROGRAM = """```c
#include <syncblob/syncblob.h>
int main(void) { return sb_version() == 0; }
```
"""
COMPILED = "cc first.c $(pkg-config --cflags --libs syncblob) -o first && ./first\n```\n"
INSTALLED = "```sh\ncmake -B b && cmake --install b --prefix ~/x\n"
PAGES = [
    ("    ./dev test\n", "a block without a fence"),
    ("- a list\n\n  ```c\n  nothing\n  ```\n", "page.md:5: a fence is"),
    ("- ```c\n  nothing\n  ```\n", "page.md:3: a fence is"),
    ("1. a list\n   ```c\n   nothing\n   ```\n", "page.md:4: a fence is"),
    ("> ```c\n> nothing\n> ```\n", "page.md:3: a fence is"),
    ("~~~c\nnothing\n~~~\n", "page.md:3: a fence is"),
    ("````text\nnothing\n````\n", "page.md:3: a fence is"),
    ("```text\nnothing\n```c\n", "page.md:5: a fence is"),
    (PROGRAM + INSTALLED + COMPILED, "syncblob.pc"),
    (PROGRAM + INSTALLED + "export PKG_CONFIG_PATH=~/x/lib/pkgconfig\n" + COMPILED,
     "libsyncblob.so.0.1"),
    (PROGRAM + "```sh\nexport PKG_CONFIG_PATH=~/x/lib/pkgconfig\n" + COMPILED, "syncblob.pc"),
]
LINKS = [("[a](nothing.md)", "no such file"), ("[a](#nothing)", "no such heading"),
         ('<img src="nothing.svg">', "no such file"), ("`c/src/nothing.c`", "no such file"),
         ("`sb_nothing`", "no header declares sb_nothing"),
         ("`SB_NOTHING_*`", "no header declares SB_NOTHING_")]
# What is replaced in blob.h, by what, and a part of what must be said about it.
HEADER = [
    ("Errors: DTYPE_MISMATCH.", "Errors: NOTHING.", "no code of status.h"),
    ("Errors: DTYPE_MISMATCH.", "", "has no list"),
    ("Errors: DTYPE_MISMATCH.", "Errors: as sb_nothing.", "which has none"),
    ("@param other [borrowed]", "", "parameter other"),
    ("@param other [borrowed]", "@param nothing [borrowed]", "no such parameter"),
    ("@param other [borrowed]", "@param other [borrowed, nothing]", "[borrowed, nothing]: not"),
    ("@param other [borrowed]", "@param other [ownd, nullable]", "[ownd, nullable]: not"),
    ("/** Elements. */", "", "sb_blob_count: has no doc comment"),
    ("/**< that of data */", "", "SB_REALLOCATED_DATA: is not described"),
    ("/**< the values */", "", "SB_DATA: is not described"),
    ("/** Elements. */\nSB_API int64_t", "struct sb_pair {\n    int a, b;\n};\n"
     "/** Elements. */\nSB_API sb_pair", "returns the struct sb_pair"),
    ("@return [borrowed] not NULL", "@return not NULL", "has no @return"),
]


def says(expected, what, script, *arguments):
    done = subprocess.run([sys.executable, HERE / script, *map(str, arguments)],
                          capture_output=True, text=True)
    if done.returncode == 1 and expected in done.stdout:
        return True
    print(f"FAILED: {script} on {what!r}: status {done.returncode}, without {expected!r}:\n"
          f"{done.stdout}{done.stderr}")
    return False


def page_cases(work, options):
    """All blocks stand on one page, each with a complaint of its own."""
    page = work / "page.md"
    library = ["--prefix", options.prefix, "--cli", options.cli, "--cc", options.cc,
               "--cxx", options.cxx]
    for info, text, expected in BLOCKS:
        page.write_text(f"# Page\n\n```{info}\n{text}\n```\n")
        yield says(expected, text, "check_blocks.py", *library, page)
    for text, expected in PAGES:
        page.write_text(f"# Page\n\n{text}")
        yield says(expected, text, "check_blocks.py", *library, page)
    header = work / "header.h"
    header.write_text("/**\n * A header.\n *\n *     st = sb_nothing(blob, &err);\n */\n")
    yield says("sb_nothing", "the comment of a header", "check_blocks.py", *library, header)
    for link, expected in LINKS:
        page.write_text(f"# Page\n\n{link}\n")
        yield says(expected, link, "check_links.py", page)


def header_cases(work):
    folder = work / "syncblob"
    folder.mkdir()
    for header in INCLUDE.glob("*.h"):
        (folder / header.name).write_text(header.read_text())
    whole = (INCLUDE / "blob.h").read_text()
    for old, new, expected in HEADER:
        if old not in whole:
            print(f"FAILED: blob.h has no {old!r}")
            yield False
            continue
        (folder / "blob.h").write_text(whole.replace(old, new, 1))
        yield says(expected, new, "check_reference.py", work)
    (folder / "blob.h").write_text(whole.replace("Errors: DTYPE_MISMATCH.", "Errors: IO."))
    yield says("expects DTYPE_MISMATCH of sb_blob_check_dtype", "IO", "check_errors.py", work)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--cli", required=True)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        results = [*page_cases(work, options), *header_cases(work)]
    print(f"{sum(results)} passed, {results.count(False)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
