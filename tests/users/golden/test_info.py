"""Compares the output of `syncblob info --json` with an independent reading of the same files.

Shapes, counts, sha256, min, max, nonfinite, names and types must be equal. sum and asum may
differ by 1e-12 of asum, sumsq by 1e-12 of sumsq. Each line must follow the JSON Schema.
"""

import json
import sys

import pytest

from conftest import SUFFIX_OF, validator
from made_files import current_net
from reading import expected

TOLERANCE = 1e-12
SCALE_OF = {"sum": "asum", "asum": "asum", "sumsq": "sumsq"}


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


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def line_about(cli, *arguments):
    run = cli("info", "--json", *arguments)
    assert (run.returncode, run.stderr, run.stdout.count(b"\n")) == (0, b"", 1)
    found = json.loads(run.stdout, parse_constant=refuse_constant)
    validator("info").validate(found)
    found.pop("net", None)  # reading.py does not compute this member
    return found


def test_info_prints_what_protobuf_reads(cli, messages, file):
    path = file.path
    if not path.suffix:
        path = path.rename(path.with_suffix(SUFFIX_OF[file.format]))
    wanted = expected(messages, path.read_bytes(), file.format) | {"schema": 1, "file": str(path)}
    for options in ((), ("--as", file.format)):
        assert not [*differences(line_about(cli, *options, path), wanted)], options


@pytest.fixture
def line(cli, messages, tmp_path):
    (tmp_path / "net.caffemodel").write_bytes(current_net(messages).SerializeToString())
    return line_about(cli, "net.caffemodel")


def test_the_comparison_notices_what_is_wrong(line):
    for wrong in (dict(line, name="another"), dict(line, more=1), dict(line, layers=line["layers"][1:])):
        assert [*differences(wrong, line)], wrong
    data = line["layers"][1]["blobs"][0]["data"]
    wanted = json.loads(json.dumps(line))
    for key, right in [*data.items()]:
        scale = data[SCALE_OF.get(key, key)]
        data[key] = f"{right}0" if isinstance(right, str) else right + 3e-12 * scale + 5e-324
        assert [*differences(line, wanted)], key
        data[key] = right


def test_the_schema_notices_a_wrong_format(line):
    right = dict(line, net=None)
    assert validator("info").is_valid(right) and not validator("info").is_valid(dict(right, format="zip"))
    assert not validator("info").is_valid(dict(right, extra=1))
