"""Tests that the lines of JSON that `syncblob` prints follow their JSON Schemas."""

import functools
import json

import jsonschema
import pytest

from conftest import ROOT, SUFFIX_OF, message_of


@functools.cache
def validator(command):
    path = ROOT / f"bindings/syncblob-cli/schema/{command}-v1.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def lines_of(cli, command, *arguments):
    run = cli(command, "--json", *arguments)
    lines = [json.loads(line, parse_constant=refuse_constant) for line in run.stdout.splitlines()]
    assert run.stderr == b"" and lines
    for line in lines:
        validator(command).validate(line)
    return lines


def kinds_of(*arguments):
    return {line["kind"] for line in lines_of(*arguments)}


def write_net(messages, path, *layers):
    text = "".join(f'layer {{ name: "{name}" type: "{kind}" blobs {{ {blob} }} }}' for name, kind, blob in layers)
    path.write_bytes(message_of(messages, "caffemodel", r'name: "\033"' + text).SerializeToString())
    return path


def test_every_file(cli, file):
    path = file.path if file.path.suffix else file.path.rename(file.path.with_suffix(SUFFIX_OF[file.format]))
    for options in ((), ("--as", file.format)):
        line, = lines_of(cli, "info", *options, path)
        assert (line["format"], line["file"]) == (file.format, str(path))
    assert kinds_of(cli, "diff", path, path) == {"summary"}
    if cli("verify", path).returncode:
        lines_of(cli, "verify", path)


def test_differences(cli, messages, tmp_path):
    blob = "shape { dim: 2 } data: [1, 2]"
    a = write_net(messages, tmp_path / "a", ("x", "A", blob), ("y", "A", blob), ("z", "A", blob))
    b = write_net(messages, tmp_path / "b", ("x", "B", "shape { dim: 2 } double_data: [1, nan]"),
                  ("y", "A", "shape { dim: [1, 2] } data: [1, 2] diff: [3, 4]"))
    assert kinds_of(cli, "diff", a, b) == {"only", "only_diff", "type", "shape", "dtype", "values", "summary"}


def test_findings(cli, messages, tmp_path):
    bad = ("x", "A", "shape { dim: 3 } double_data: [nan, inf, 1e300]")
    net = write_net(messages, tmp_path / "net", bad, bad)
    assert kinds_of(cli, "verify", net) == {"nan", "infinite", "beyond-float", "duplicate-name", "unsafe-name"}
    assert kinds_of(cli, "verify", write_net(messages, tmp_path / "none")) == {"unsafe-name", "no-values"}


def test_devices(cli):
    lines_of(cli, "devices")


@pytest.mark.parametrize("wrong", [{"format": "zip"}, {"extra": 1}, {"name": 3}])
def test_a_schema_notices_what_is_wrong(cli, messages, tmp_path, wrong):
    line, = lines_of(cli, "info", write_net(messages, tmp_path / "net.caffemodel"))
    assert validator("info").is_valid(line) and not validator("info").is_valid({**line, **wrong})
