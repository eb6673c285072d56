#!/usr/bin/env python3
"""Compares the output of `syncblob info --json` with an independent reading of the same files.

    check_info.py --cli PROGRAM --proto caffe.proto [FILE...]

The files are the real files of SYNCBLOB_TEST_DATA (else ../shared/data beside the repository), the
given FILEs, and files that Google's protobuf makes here, one for each mistake that a reader could
make. Shapes, counts, sha256, min, max, nonfinite, names and types must be equal. sum and asum may
differ by 1e-12 of asum, sumsq by 1e-12 of sumsq. Each line must follow the JSON Schema. Needs
protoc and requirements.txt.
"""

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


def differences(found, wanted, where=""):
    """Yields a line for each place where two JSON values differ. The schema compares types."""
    if isinstance(wanted, dict) and isinstance(found, dict) and found.keys() == wanted.keys():
        for key in wanted:
            if key not in SCALE_OF or not is_near(found[key], wanted[key], wanted[SCALE_OF[key]]):
                yield from differences(found[key], wanted[key], f"{where}.{key}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, pair in enumerate(zip(found, wanted)):
            yield from differences(*pair, f"{where}[{index}]")
    elif found != wanted:
        yield f"{where}: found {found!r:.100}, wanted {wanted!r:.100}"


def is_near(found, wanted, scale):
    return None not in (found, wanted) and \
        abs(found - wanted) <= TOLERANCE * (sys.float_info.max if scale is None else scale)


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


def check_checker(checker, found, wanted):
    """Tests that the comparison notices a single wrong value, key or layer."""
    if found is None:
        return
    others = [dict(found, name="another"), dict(found, more=1), dict(found, layers=found["layers"][1:])]
    missed = [other for other in others if not any(differences(other, wanted))]
    data = found["layers"][1]["blobs"][0]["data"]
    for key, right in [*data.items()]:
        scale = data[SCALE_OF.get(key, key)]
        data[key] = f"{right}0" if isinstance(right, str) else right + 3e-12 * scale + 5e-324
        missed += [] if any(differences(found, wanted)) else [key]
        data[key] = right
    checker.report("the comparison notices what is wrong", [f"not {each}" for each in missed])
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
