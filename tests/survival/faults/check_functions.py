#!/usr/bin/env python3
"""Checks every function that returns a status: a fault test must call the function, or functions.txt must
give the reason why no fault test calls the function."""
import pathlib
import re
import subprocess
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
    """Returns the sb_ names in the fault tests and in the calls that they share, where macros paste names."""
    support = ROOT / "tests/support"
    sources = [*HERE.glob("test_*.c"), support / "mem_calls.c", *(ROOT / "c").glob("*/tests/test_*faults*.c")]
    text = "".join(source.read_text() for source in sources)
    text += re.sub(r'"sb_\w+"', "", (support / "every_call.c").read_text())  # lists of other functions
    text += subprocess.run([sys.executable, "-B", support / "make_calls.py", support / "every_call.c",
                            ROOT / "c/include", ROOT / "c/comm/include"], check=True, capture_output=True, text=True).stdout
    pasted = [("##noun##", "mem"), ("##noun##", "blob"), ("##kind", "dlpack"), ("##kind", "legacy_dlpack")]
    return {word for part in pasted for word in re.findall(r"\bsb_\w+", text.replace(*part))}


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
