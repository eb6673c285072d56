#!/usr/bin/env python3
"""Tests that the checks of this folder report errors, with pages and headers that each contain one error.

    selftest.py --prefix PREFIX --cli SYNCBLOB [--cc CC]
"""
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parents[2] / "c" / "include" / "syncblob"

# The words after a block's fence, its text, and a part of the complaint.
BLOCKS = [
    ("toml", "a = 1", "not a kind of block"),
    ("c", "int main(void) { return sb_nothing(); }", "sb_nothing"),
    ("c", "int main(void) { return 3; }", "first"),
    ("c fragment", "sb_blob *b = NULL;\nif (sb_blob_create(NULL, 77, &b, &err)) goto failed;",
     "77 is not a dtype"),
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
    ("sh", "./dev test $(nothing)", "only cc"),
    ("sh", "cmake --preset nothing", "no preset nothing"),
    ("sh", "cmake -B b -DSYNCBLOB_NOTHING=ON", "no option -DSYNCBLOB_NOTHING"),
    ("sh", "cargo add x --path bindings/nothing", "no package or program x"),
    ("sh", "cargo install --path bindings/nothing", "no bindings/nothing"),
    ("sh", "git nothing", "knows this command"),
    ("sh", "cd nothing", "no such folder"),
    ("sh", "syncblob info net.caffemodel && \\\n  syncblob nothing", "nothing"),
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
    ("~~~c\nnothing\n~~~\n", "page.md:3: a fence is"),
    ("```text\nnothing\n```c\n", "page.md:5: a fence is"),
    (PROGRAM + INSTALLED + COMPILED, "syncblob.pc"),
    (PROGRAM + INSTALLED + "export PKG_CONFIG_PATH=~/x/lib/pkgconfig\n" + COMPILED,
     "libsyncblob.so.0.1"),
]
NAMES = [("`c/src/nothing.c`", "no such file"), ("`sb_nothing`", "no header declares sb_nothing")]
# A text of blob.h, its replacement, and a part of the complaint.
LIST = "Errors: DTYPE_MISMATCH."
HEADER = [
    (LIST, "Errors: NOTHING.", "not a code of status.h"),
    (LIST, "", "has no list"),
    (LIST, "Errors: as sb_nothing.", "which has none"),
    ("@param other [borrowed]", "and @param other [borrowed]", "a tag does not begin a line"),
    (f"\n *  {LIST}", f"\n * {LIST}", "not in the form of a contract"),
    ("@param other [borrowed]", "", "parameter other"),
    ("@param other [borrowed]", "@param nothing [borrowed]", "no such parameter"),
    ("@param other [borrowed]", "@param other [ownd, nullable]", "[ownd, nullable]: not"),
    ("/** Returns the number of elements. */", "", "sb_blob_count: has no doc comment"),
    ("/**< the memory of data */", "", "SB_REALLOCATED_DATA: is not described"),
    ("/** Returns the number of elements. */\nSB_API int64_t", "struct sb_pair {\n    int a;\n};\n"
     "/** Returns the number of elements. */\nSB_API sb_pair", "returns the struct sb_pair"),
    ("@return [borrowed] not NULL", "@return not NULL", "has no @return"),
]
failures = 0


def expect(complaint, planted, script, *arguments):
    global failures
    done = subprocess.run([sys.executable, HERE / script, *map(str, arguments)],
                          capture_output=True, text=True)
    if done.returncode != 1 or complaint not in done.stdout:
        failures += 1
        print(f"FAILED: {script} on {planted!r}: status {done.returncode}, without {complaint!r}:\n"
              f"{done.stdout}{done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        page, header = work / "page.md", work / "syncblob/blob.h"
        for text, complaint in [*((f"```{info}\n{text}\n```\n", complaint)
                                  for info, text, complaint in BLOCKS), *PAGES]:
            page.write_text(f"# Page\n\n{text}")
            expect(complaint, text, "check_blocks.py", *sys.argv[1:], page)
        for text, complaint in NAMES:
            page.write_text(text)
            expect(complaint, text, "check_names.py", page)
        header.parent.mkdir()
        for path in INCLUDE.glob("*.h"):
            (header.parent / path.name).write_text(path.read_text())
        whole = header.read_text()
        for old, new, complaint in HEADER:
            header.write_text(whole.replace(old, new, 1))
            expect(complaint, new, "check_reference.py", work)
        header.write_text(whole.replace("DTYPE_MISMATCH", "IO"))
        expect("expects DTYPE_MISMATCH of sb_blob_share", "IO", "check_reference.py", work)
    cases = len(BLOCKS) + len(PAGES) + len(NAMES) + len(HEADER) + 1
    print(f"{cases - failures} passed, {failures} failed")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
