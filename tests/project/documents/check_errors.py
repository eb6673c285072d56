#!/usr/bin/env python3
"""Checks that each status that a test expects of a function is in the function's list of errors:
check_errors.py [INCLUDE_FOLDER...]. Finds calls and expected statuses in lines such as:

    assert_status(SB_ERR_SHARED, sb_blob_...(...))
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from check_reference import (HEADERS, dtypes, error_items, read_functions,  # noqa: E402
                             read_headers)

ROOT = pathlib.Path(__file__).resolve().parents[3]
TESTS = [ROOT / "tests", *(ROOT / "c").glob("*/tests"), ROOT / "bindings/syncblob-net-c/tests"]
EXPECTED = re.compile(r"\bSB_ERR_(\w+),\s*(sb_\w+)\(")
COMPARED = re.compile(r"\b(sb_\w+)\([^;]*?\)\s*==\s*SB_ERR_(\w+)")


def codes(name, functions):
    """Returns the complete list of a function's codes, with the codes of the functions that its
    list refers to."""
    listed = {"INVALID_ARGUMENT"}
    for item in error_items(functions[name].text) or []:
        listed |= codes(item[3:], functions) if item.startswith("as ") else {item}
    return listed


def expectations():
    """Yields (test, function, code) for each expectation."""
    for source in sorted(source for folder in TESTS for source in folder.rglob("*.c")):
        text = source.read_text()
        found = [(name, code) for code, name in EXPECTED.findall(text)] + COMPARED.findall(text)
        yield from ((source.relative_to(ROOT), name, code) for name, code in found)


def main():
    folders = [pathlib.Path(folder) for folder in sys.argv[1:]] or HEADERS
    headers = read_headers(folders)
    functions = {f.name: f for f in read_functions(headers)}
    typed = "|".join(name for _, name, _ in dtypes(headers["base.h"]))
    judged, wrong = 0, []
    for source, name, code in expectations():
        plain = re.sub(rf"_({typed}|t)$", "", name)
        if plain not in functions or functions[plain].returns != "sb_status":
            continue
        listed = codes(plain, functions) | ({"DTYPE_MISMATCH"} if plain != name else set())
        judged += 1
        # a function that returns the status of a caller's callback may return any status
        if code not in listed and not any(item.startswith("the ") for item in listed):
            wrong.append(f"{source}: expects {code} of {name}, whose list does not have it")
    print("\n".join(wrong) or f"{judged} expectations of the tests, each in its function's list")
    return 1 if wrong or not judged else 0


if __name__ == "__main__":
    sys.exit(main())
