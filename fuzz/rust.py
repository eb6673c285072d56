"""Bugs in Rust sources: a copy of the crate that holds one, built as the fuzzers are."""

import os
import pathlib
import shutil
import subprocess
import threading

ROOT = pathlib.Path(__file__).resolve().parents[1]
CRATE = pathlib.Path("bindings/syncblob-net")
ONE_BUILD = threading.Lock()


def links(folder, to, without):
    """Links to all of a folder, but what is made instead."""
    to.mkdir(parents=True)
    for path in folder.iterdir():
        if path.name not in without:
            (to / path.name).symlink_to(path)


def make_tree(tree):
    """The repository with a copy of the crate; cargo must not see where the links lead."""
    shutil.rmtree(tree, ignore_errors=True)
    links(ROOT, tree, {"bindings", "target", "build", ".git", "Cargo.toml"})
    links(ROOT / CRATE.parent, tree / CRATE.parent, {CRATE.name, "sanitize.sh"})
    for name in ("Cargo.toml", "bindings/sanitize.sh"):
        shutil.copy(ROOT / name, tree / name)
    shutil.copytree(ROOT / CRATE, tree / CRATE)


def build_mutation(build, mutation, text, program):
    """Builds the target's fuzzer with another text of a source; the error's text, if it fails."""
    with ONE_BUILD:
        tree = build / "mutated" / "tree"
        make_tree(tree)
        (tree / mutation["file"]).write_text(text)
        environment = {**os.environ, "CARGO_TARGET_DIR": str(build / "mutated" / "target"),
                       "RUSTC_WORKSPACE_WRAPPER": ""}
        command = [tree / "bindings/sanitize.sh", "fuzzers", CRATE.name, build / "mutated" / "fuzzers"]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True)
        if ran.returncode == 0:
            shutil.copy(build / "mutated" / "fuzzers" / f"fuzz.{mutation['target']}", program)
        return ran.stderr.strip() if ran.returncode else None
