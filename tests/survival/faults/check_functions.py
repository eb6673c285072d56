#!/usr/bin/env python3
"""Checks every function that returns a status: a fault test must call the function, or functions.txt must
give the reason why no fault test calls the function."""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
# A declaration may have line breaks anywhere except within a name.
FALLIBLE = re.compile(r"^SB_API\s+SB_MUST_CHECK\s+sb_status\s+(sb_\w+)\s*\(", re.MULTILINE)


def fallible():
    texts = [header.read_text() for header in (ROOT / "c").glob("**/include/syncblob/*.h")]
    return sorted(name for text in texts for name in FALLIBLE.findall(text))


def explained():
    rows = (HERE / "functions.txt").read_text().splitlines()
    return [row.partition(": ")[::2] for row in rows if row and not row.startswith("#")]


def called():
    """Returns the sb_ names in the fault tests and in mem_calls.c, whose calls the tests use. A macro of
    mem_calls.c forms names with mem and with blob."""
    sources = [*HERE.glob("test_*.c"), ROOT / "tests/support/mem_calls.c",
               *(ROOT / "c").glob("*/tests/test_*faults*.c")]
    text = "".join(source.read_text() for source in sources)
    return {word for noun in ("mem", "blob")
            for word in re.findall(r"\bsb_\w+", text.replace("##noun##", noun))}


def problems():
    functions, rows, words = fallible(), explained(), called()
    names = [name for name, _ in rows]
    yield from (f"no fault test calls {name}, and functions.txt has no reason"
                for name in functions if name not in words and name not in names)
    yield from (f"functions.txt has {name}, which returns no status" for name in names
                if name not in functions)
    yield from (f"functions.txt has {name} twice" for name in set(names) if names.count(name) > 1)
    yield from (f"functions.txt gives no reason for {name}" for name, why in rows if len(why) < 5)


def main():
    found = list(problems())
    print("\n".join(found) or f"{len(fallible())} functions, each called or listed with a reason")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
