"""Shell blocks. A command of ours is run where that takes no time; else it must exist with the
options that it is given. A command that nobody here knows is an error.

    ./dev X --option       in what `./dev help` prints
    cmake, ctest, cpack    presets, options of the build, programs that a build makes
    cargo X --option       in what `cargo X --help` prints; packages, paths and targets exist
    syncblob X ...         run, in a folder with the files that it reads
    cc ...                 run, with the page's first program as first.c
    FOLDER/script          a script of the repository
"""
import functools
import json
import os
import re
import shlex
import subprocess

from pages import ROOT, files

# What is not ours and is believed.
FOREIGN = {"jq", "sort", "export", "cd", "git"}
# Of `cmake --build` and `cmake --install`, which `cmake --help` leaves out.
BUILD_OPTIONS = ["--target", "--config", "--parallel", "--prefix", "--component", "--strip"]
INPUTS = (".caffemodel", ".solverstate", ".binaryproto")
OPERATORS = {"&&", "||", ";", "|"}


class Wrong(Exception):
    pass


def demand(condition, what):
    if not condition:
        raise Wrong(what)


def lines(text):
    """Each command line without its comment; a line may go on after a backslash."""
    for line in text.replace("\\\n", " ").splitlines():
        plain = re.sub(r"(^|\s)#.*", "", line).strip()
        if plain:
            yield plain


def commands(line):
    """(words, source) of each command of a line, without assignments and redirections."""
    source = []
    for word in re.findall(r"\$\([^)]*\)|'[^']*'|\"[^\"]*\"|[^\s]+", line) + [";"]:
        if word not in OPERATORS:
            source.append(word)
            continue
        plain = [w for w in source if not re.match(r"\d?>{1,2}", w)]
        while plain and re.match(r"\w+=", plain[0]):
            plain.pop(0)
        if plain:
            yield [w if w.startswith("$(") else shlex.split(w)[0] for w in plain], " ".join(source)
        source = []


@functools.cache
def output(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    demand(done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()[-200:]}")
    return done.stdout


def options(words):
    return [word.split("=")[0] for word in words if re.match(r"--\w", word)]


def check_dev(words):
    usage = output("./dev", "help")
    # a command's lines: its own, and those behind it that are indented
    own = re.findall(rf"^\./dev {re.escape(words[1])}\b.*(?:\n .*)*", usage, re.MULTILINE)
    demand(own, f"./dev help does not know {words[1]}")
    for option in options(words[2:]):
        demand(any(option in text for text in own), f"./dev help does not know {option}")


@functools.cache
def presets(kind):
    return {preset["name"] for preset in
            json.loads((ROOT / "CMakePresets.json").read_text())[kind]}


def build_options():
    files = [ROOT / "CMakeLists.txt", *ROOT.glob("*/CMakeLists.txt"), *ROOT.glob("c/cmake/*.cmake"),
             *ROOT.glob("tests/*/CMakeLists.txt")]
    return set(re.findall(r"(?:option|set|find_path|find_program)\((\w+)",
                          "\n".join(path.read_text() for path in files)))


def check_cmake(words):
    kind = "testPresets" if words[0] == "ctest" else \
        "buildPresets" if "--build" in words else "configurePresets"
    for word, following in zip(words, words[1:]):
        if word == "--preset":
            demand(following in presets(kind), f"no preset {following}")
    for name in re.findall(r"-D\s*(\w+)[=:]", " ".join(words)):
        demand(name.startswith("CMAKE_") or name in build_options(), f"no option {name}")
    known = output(words[0], "--help").split() + BUILD_OPTIONS
    for option in options(words):
        demand(option in known, f"{words[0]} has no {option}")


def package_folder(name):
    for manifest in ROOT.glob("bindings/*/Cargo.toml"):
        if re.search(rf'^name = "{re.escape(name)}"$', manifest.read_text(), re.MULTILINE):
            return manifest.parent
    raise Wrong(f"no package {name}")


def check_cargo_target(words):
    """What options of cargo name is there."""
    values = {word: following for word, following in zip(words, words[1:])}
    package = values.get("-p") or values.get("--package")
    folder = package_folder(package) if package else ROOT
    if "--path" in values:
        demand((ROOT / values["--path"].removeprefix("…/")).is_dir(), f"no {values['--path']}")
    for option, place in (("--test", "tests"), ("--example", "examples"), ("--bin", "src/bin")):
        if option in values:
            found = list(folder.glob(f"{place}/{values[option]}*"))
            demand(found, f"no {option[2:]} {values[option]}")


class Shell:
    """Checks the commands of one page; `folder` is where they run."""

    def __init__(self, folder, programs, cli):
        self.folder, self.programs, self.cli = folder, programs, cli

    def check(self, text):
        for line in lines(text):
            for words, source in commands(line):
                self.check_command(words, source)

    def check_command(self, words, source):
        name = words[0]
        if name == "./dev":
            check_dev(words)
        elif name in ("cmake", "ctest", "cpack"):
            check_cmake(words)
        elif name == "cargo":
            self.check_cargo(words)
        elif name == "syncblob":
            self.run_syncblob(words)
        elif name == "cc":
            self.programs.run_shell(source, self.folder)
        elif name == "bash" or "/" in name:
            self.check_script(words[1] if name == "bash" else name)
        else:
            demand(name in FOREIGN, f"{name}: nothing here knows this command")

    def check_cargo(self, words):
        ours = words[:words.index("--")] if "--" in words else words
        if ours[1] == "fuzz":
            manifest = (ROOT / "bindings/syncblob/fuzz/Cargo.toml").read_text()
            demand(f'name = "{ours[3]}"' in manifest, f"no fuzz target {ours[3]}")
            return
        known = output("cargo", ours[1], "--help")
        for option in options(ours):
            demand(option in known, f"cargo {ours[1]} has no {option}")
        check_cargo_target(ours)
        if "syncblob-cli" in ours and "--" in words:
            self.run_syncblob(["syncblob", *words[words.index("--") + 1:]])

    def check_script(self, name):
        found = [path for path in files() if str(path).endswith("/" + name.removeprefix("./"))]
        demand(found, f"no script {name}")
        demand(os.access(found[0], os.X_OK), f"{name} cannot be executed")

    def run_syncblob(self, words):
        takes_value = [w for w in words[2:] if w.startswith("-")]
        files = [w for w in words[2:] if "." in w and not w.startswith("-")]
        written = {following for word, following in zip(words, words[1:])
                   if word in ("-o", "--output")}
        if words[1:2] == ["convert"] and len(files) > 1 and "--dry-run" not in takes_value:
            written.add(files[1])
        for file in files:
            self.provide(file.replace("*", "a"), file in written)
        expanded = [match for word in words[1:] for match in self.expand(word)]
        done = subprocess.run([self.cli, *expanded], cwd=self.folder, capture_output=True,
                              text=True)
        # 1: files differ, something was found
        fine = (0, 1) if words[1:2] in (["diff"], ["verify"]) else (0,)
        demand(done.returncode in fine, f"{' '.join(words)}: {(done.stderr or done.stdout)[-400:]}")

    def expand(self, word):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.glob(word)) \
            if "*" in word else [word]

    def provide(self, name, is_output):
        path = self.folder / name
        if is_output:
            path.unlink(missing_ok=True)
        elif not path.exists() and path.suffix in INPUTS:
            path.parent.mkdir(exist_ok=True)
            self.programs.prepare(name, self.folder)
        elif not path.exists() and path.suffix in (".safetensors", ".npz"):
            self.provide("net.caffemodel", False)
            subprocess.run([self.cli, "convert", "net.caffemodel", name], cwd=self.folder,
                           capture_output=True, check=True)
