#!/usr/bin/env python3
"""Compares the output of `syncblob info --json` with an independent reading of the same files.

    check_info.py --cli PROGRAM --proto caffe.proto [--data FOLDER] [FILE...]

The files are the real files of --data (SYNCBLOB_TEST_DATA, else ../shared/data beside the
repository), the given FILEs, and files that Google's protobuf makes here, one for each mistake that
a reader could make. Shapes, counts, sha256, min, max, nonfinite, names and types must be equal. sum
and asum may differ by 1e-12 of asum, sumsq may differ by 1e-12 of sumsq. Each line must follow the
JSON Schema. Needs protoc and requirements.txt.
"""

import copy
import json
import subprocess
import sys
import tempfile

import jsonschema

import checking
from reading import expected

SCHEMA = checking.ROOT / "bindings/syncblob-cli/schema/info-v1.schema.json"
TOLERANCE = 1e-12
SCALE_OF = {"sum": "asum", "asum": "asum", "sumsq": "sumsq"}


# --- comparing ------------------------------------------------------------------


def differences(found, wanted, where="", scales=None):
    """Yields a line for each place where two JSON values differ."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted(wanted.keys() | found.keys()):
            if key not in wanted or key not in found:
                yield f"{where}.{key}: only {'wanted' if key in wanted else 'found'}"
                continue
            yield from differences(found[key], wanted[key], f"{where}.{key}", (key, wanted))
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, pair in enumerate(zip(found, wanted)):
            yield from differences(*pair, f"{where}[{index}]")
    elif not equal(found, wanted, *(scales or (None, None))):
        yield f"{where}: found {found!r:.100}, wanted {wanted!r:.100}"


def equal(found, wanted, key, beside):
    if key in SCALE_OF and None not in (found, wanted):
        scale = beside[SCALE_OF[key]]
        return abs(found - wanted) <= TOLERANCE * (scale if scale is not None else sys.float_info.max)
    return type(found) is type(wanted) and found == wanted or is_number(found) and found == wanted


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# --- running --------------------------------------------------------------------


class Checker(checking.Checker):
    def __init__(self, arguments, folder):
        super().__init__(arguments, folder)
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        self.validator = jsonschema.Draft202012Validator(schema)

    def check(self, name, path, file_format, options=()):
        """Compares the program's line about a file with an independent reading; returns both."""
        command = [self.cli, "info", "--json", *options, path]
        run = subprocess.run(command, capture_output=True, check=False)
        wanted = expected(self.messages, path.read_bytes(), file_format)
        wanted.update(schema=1, file=str(path))
        if run.returncode or run.stderr or run.stdout.count(b"\n") != 1:
            self.report(name, [f"status {run.returncode}, stderr: {run.stderr.decode()!r:.300}"])
            return None, wanted
        found = json.loads(run.stdout, parse_constant=refuse_constant)
        schema_problems = [error.message for error in self.validator.iter_errors(found)]
        found.pop("net", None)  # reading.py does not compute this member
        self.report(name, [*differences(found, wanted), *schema_problems])
        return found, wanted


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def check_made(checker):
    """Checks each made file twice, without and with --as FORMAT; returns the result of "current net"."""
    results = {}
    for name, path, file_format in checker.made_files():
        path = path.rename(path.with_suffix(checking.SUFFIX_OF[file_format]))
        checker.check(name + " (detected)", path, file_format)
        results[name] = checker.check(name, path, file_format, ["--as", file_format])
    return results["current net"]


# --- tests of the comparison ------------------------------------------------------


def leaves(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, (dict, list)):
            yield from leaves(item, (*path, key))
            if isinstance(item, list):
                yield (*path, key)
        else:
            yield (*path, key)


def spoiled(value, path):
    """Returns a copy in which only the value at `path` is slightly wrong."""
    value = copy.deepcopy(value)
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    old, key = holder[path[-1]], path[-1]
    if isinstance(old, list):
        holder[key] = [*old, 1]
    elif isinstance(old, str):
        holder[key] = old + "0"
    elif old is None:
        holder[key] = 0
    elif key in SCALE_OF:
        holder[key] = old + 3e-12 * holder[SCALE_OF[key]]
    else:
        holder[key] = old + 1 if isinstance(old, int) else old * (1 + 1e-15) + 5e-324
    return value


def check_checker(checker, found, wanted):
    """Tests that the comparison notices a single wrong value, for each value of a correct answer."""
    if found is None:
        return
    missed = [path for path in leaves(found) if not any(differences(spoiled(found, path), wanted))]
    checker.report("the comparison notices every wrong value", [f"not at {path}" for path in missed])
    right = dict(found, net=None)
    wrong = dict(right, format="zip", extra=1)
    noticed = checker.validator.is_valid(right) and not checker.validator.is_valid(wrong)
    checker.report("the schema notices a wrong format", [] if noticed else ["it does not"])


def main():
    arguments = checking.parse_arguments(__doc__.splitlines()[0], "--cli", "the program syncblob")
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(arguments, folder)
        for file in checker.real_files():
            checker.check(*file)
        check_checker(checker, *check_made(checker))
    return checker.exit_status()


if __name__ == "__main__":
    sys.exit(main())
