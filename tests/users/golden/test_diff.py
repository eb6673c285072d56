"""Tests that the lines of `syncblob diff --json` and `syncblob verify --json` follow their JSON Schemas.
bindings/syncblob-cli/tests has the tests of what the lines contain."""

import json
import math

from conftest import validator
from made_files import shaped


def kinds_of(cli, command, *files):
    """Returns the kinds of the lines that a command prints. Each line must follow its schema."""
    lines = [json.loads(line) for line in cli(command, "--json", *files).stdout.splitlines()]
    for line in lines:
        validator(command).validate(line)
    return {line["kind"] for line in lines}


def write_net(messages, path, *layers):
    layers = [messages.LayerParameter(name=name, type=kind, blobs=[blob]) for name, kind, blob in layers]
    path.write_bytes(messages.NetParameter(name="\x1b", layer=layers).SerializeToString())
    return path


def test_a_file_equals_itself(cli, file):
    assert kinds_of(cli, "diff", file.path, file.path) == {"summary"}
    kinds_of(cli, "verify", file.path)


def test_differences(cli, messages, tmp_path):
    blob = shaped(messages, [2], data=[1, 2])
    a = write_net(messages, tmp_path / "a", ("x", "A", blob), ("y", "A", blob), ("z", "A", blob))
    b = write_net(messages, tmp_path / "b", ("x", "B", shaped(messages, [2], double_data=[1, math.nan])),
                  ("y", "A", shaped(messages, [1, 2], data=[1, 2], diff=[3, 4])))
    assert kinds_of(cli, "diff", a, b) == {"only", "only_diff", "type", "shape", "dtype", "values", "summary"}


def test_findings(cli, messages, tmp_path):
    bad = shaped(messages, [3], double_data=[math.nan, math.inf, 1e300])
    net = write_net(messages, tmp_path / "net", ("x", "A", bad), ("x", "A", bad))
    assert kinds_of(cli, "verify", net) == {"nan", "infinite", "beyond-float", "duplicate-name", "unsafe-name"}
    assert kinds_of(cli, "verify", write_net(messages, tmp_path / "none")) == {"unsafe-name", "no-values"}
