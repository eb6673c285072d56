"""The arguments of commands that pages show: an option that is not known here is an error."""
import functools
import json
import os
import re
import subprocess

from pages import ROOT, files


class Wrong(Exception):
    pass


def demand(condition, what):
    if not condition:
        raise Wrong(what)


@functools.cache
def output(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    demand(done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()[-200:]}")
    return done.stdout


def in_words(word, text):
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


# --- ./dev and scripts

def is_dev_argument(word, usage):
    """What the placeholders of a command's usage stand for."""
    return (in_words("SECONDS", usage) or in_words("N", usage)) and word.isdigit() or \
        in_words("FILE", usage) and (ROOT / word).exists() or \
        in_words("MACHINE", usage) and (ROOT / f"tests/bench/results/{word}.tsv").exists() or \
        in_words("NAME", usage) and any((ROOT / "tests").glob(f"**/test_*{word}*.c")) or \
        in_words("TARGET", usage) and (ROOT / "fuzz" / "targets" / f"{word}.c").exists() or \
        in_words("CASE", usage) and in_words(word, usage.partition("the cases are")[2])


def check_dev(words):
    demand(len(words) > 1, "./dev needs a command")
    # a command's lines: its own, and those behind it that are indented
    own = re.findall(rf"^\./dev {re.escape(words[1])}(?![\w-]).*(?:\n .*)*",
                     output("./dev", "help"), re.MULTILINE)
    demand(own, f"./dev help does not know {words[1]}")
    for word in words[2:]:
        known = any(in_words(word, usage) if word.startswith("-") else
                    is_dev_argument(word, usage) or
                    usage.startswith(f"./dev {words[1]} {word} ") for usage in own)
        demand(known, f"./dev help does not know {word}")


def check_script(path, arguments):
    demand(os.access(path, os.X_OK), f"{path.name} cannot be executed")
    for word in arguments:
        demand(not word.startswith("-") or in_words(word, path.read_text()),
               f"{path.name} has no {word}")


# --- CMake's and cargo's

def check_options(words, known):
    """`known` has a check for the value of each option, None for an option without one. Gives the
    words that are no option."""
    plain, rest = [], iter(words)
    for word in rest:
        if not word.startswith("-"):
            plain.append(word)
            continue
        option, value = re.match(r"(--[\w-]+|-D|-\w+)(.*)", word).groups()
        demand(option in known, f"nothing here knows {word}")
        if known[option]:
            value = value or next(rest, None)
            demand(value, f"{option} lacks its value")
            known[option](value)
    return plain


@functools.cache
def cmake_sources():
    return "\n".join(path.read_text() for path in files()
                     if path.name == "CMakeLists.txt" or path.suffix == ".cmake")


def check_definition(text):
    name, _, value = text.partition("=")
    ours = re.search(rf"\boption\({name}\b", cmake_sources())
    cmakes = ("CMAKE_BUILD_TYPE", "CMAKE_INSTALL_PREFIX", "CMAKE_TOOLCHAIN_FILE")
    demand(ours or name in cmakes, f"no option {name}")
    demand(not ours or value in ("ON", "OFF"), f"{name} is ON or OFF, not {value}")


def is_preset(kind):
    presets = json.loads((ROOT / "CMakePresets.json").read_text())[kind]
    names = {preset["name"] for preset in presets if not preset.get("hidden")}
    return lambda name: demand(name in names, f"no preset {name}")


def anything(_):
    """What may be any text."""


CMAKE = {
    "cmake": {"-B": anything, "-D": check_definition, "--preset": is_preset("configurePresets"),
              "--build": anything, "--install": anything, "--prefix": anything},
    "ctest": {"--preset": is_preset("testPresets")},
    "cpack": {"-G": lambda name: demand(name in ("DEB", "TGZ"), f"no generator {name}")},
}


def check_cmake(words):
    check_options(words[1:], CMAKE[words[0]])


@functools.cache
def packages():
    """The names of the crates by their folders."""
    listed = json.loads(output("cargo", "metadata", "--no-deps", "--offline", "--format-version",
                               "1"))
    return {os.path.relpath(os.path.dirname(package["manifest_path"]), ROOT): package["name"]
            for package in listed["packages"]}


def check_package(name):
    demand(name in packages().values(), f"no package {name}")


def check_path(path):
    demand(path.removeprefix("…/") in packages(), f"no {path}")


CARGO = {"run": {"-p": check_package, "--release": None}, "install": {"--path": check_path},
         "add": {"--path": check_path}}


def check_cargo(words):
    demand(words[1:2] and words[1] in CARGO, f"cargo: nothing here knows {' '.join(words[1:2])}")
    for name in check_options(words[2:], CARGO[words[1]]):
        check_package(name)


def check_pip(words):
    """Our package, by its name or its folder."""
    demand(words[1:2] == ["install"] and len(words) == 3, f"nothing here knows {' '.join(words)}")
    demand(words[2] == "syncblob" or (ROOT / words[2] / "pyproject.toml").exists(),
           f"no package {words[2]}")


def check_cargo_fuzz(words):
    manifest = (ROOT / "bindings" / "syncblob" / "fuzz" / "Cargo.toml").read_text()
    demand(words[2:3] == ["run"] and len(words) == 4 and f'name = "{words[3]}"' in manifest,
           f"no fuzz target {' '.join(words[2:])}")
