"""The arguments of tools that a page's commands give: what is not known here is an error."""
import functools
import json
import os
import re
import subprocess

from pages import ROOT

ON_OFF = {"ON", "OFF"}
BUILD_TYPES = {"Debug", "Release", "RelWithDebInfo", "MinSizeRel"}


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


def split_options(words):
    """--x=y and -xY as two words each."""
    for word in words:
        found = re.fullmatch(r"(--[\w-]+)=(.*)|(-[A-Za-z])(.+)", word)
        if found:
            yield from (part for part in found.groups() if part is not None)
        else:
            yield word


# --- ./dev and scripts

def is_dev_argument(word, usage):
    """What the placeholders of a command's usage stand for."""
    return in_words("SECONDS", usage) and word.isdigit() or \
        in_words("TARGET", usage) and (ROOT / "fuzz" / "targets" / f"{word}.c").exists() or \
        in_words("CASE", usage) and in_words(word, usage.partition("the cases are")[2])


def check_dev(words):
    demand(len(words) > 1, "./dev needs a command")
    # a command's lines: its own, and those behind it that are indented
    own = re.findall(rf"^\./dev {re.escape(words[1])}(?![\w-]).*(?:\n .*)*",
                     output("./dev", "help"), re.MULTILINE)
    demand(own, f"./dev help does not know {words[1]}")
    for word in split_options(words[2:]):
        known = any(in_words(word, usage) if word.startswith("-") else
                    is_dev_argument(word, usage) for usage in own)
        demand(known, f"./dev help does not know {word}")


def check_script(path, arguments):
    demand(os.access(path, os.X_OK), f"{path.name} cannot be executed")
    for word in split_options(arguments):
        demand(not word.startswith("-") or in_words(word, path.read_text()),
               f"{path.name} has no {word}")


# --- CMake's

@functools.cache
def cmake_sources():
    files = [*ROOT.glob("CMakeLists.txt"), *ROOT.glob("*/CMakeLists.txt"),
             *ROOT.glob("*/*/CMakeLists.txt"),
             *ROOT.glob("tests/*/*/CMakeLists.txt"), *ROOT.glob("c/cmake/*.cmake")]
    return "\n".join(path.read_text() for path in files)


def presets(kind):
    return {preset["name"]: preset for preset in
            json.loads((ROOT / "CMakePresets.json").read_text())[kind]}


def check_definition(text):
    found = re.fullmatch(r"(\w+)(?::\w+)?=(.*)", text)
    demand(found, f"-D takes NAME=VALUE, not {text}")
    name, value = found.groups()
    if re.search(rf"\boption\({name}\b", cmake_sources()):
        demand(value in ON_OFF, f"{name} is ON or OFF, not {value}")
    elif name == "CMAKE_BUILD_TYPE":
        demand(value in BUILD_TYPES, f"no build type {value}")
    elif name.startswith("CMAKE_"):
        known = output("cmake", "--help-variable-list").split()
        demand(re.sub(r"_(C|CXX)(?=_)", "_<LANG>", name) in known, f"no option {name}")
    else:
        demand(re.search(rf"\bset\({name} [^)]*CACHE|\bfind_\w+\({name}\b", cmake_sources()),
               f"no option {name}")


def check_target(name):
    made = re.findall(r"\badd_(?:executable|library|custom_target)\(([\w.]+)\s", cmake_sources())
    demand(name in {"all", "clean", *made}, f"no target {name}")


def check_component(name):
    demand(in_words(f"COMPONENT {name}", cmake_sources()), f"no component {name}")


def check_generator(tool):
    def check(name):
        listed = output(tool, "--help").partition("\nGenerators\n")[2]
        demand(re.search(rf"^[* ] {re.escape(name)}\s*=", listed, re.MULTILINE),
               f"{tool} has no generator {name}")
    return check


def check_source(name):
    demand((ROOT / name / "CMakeLists.txt").exists(), f"{name} has no CMakeLists.txt")


def check_number(text):
    demand(text.isdigit(), f"{text} is no number")


def anything(_):
    """What may be any text."""


class CMake:
    """cmake, ctest and cpack. `folders`: those of builds that the page's commands have made."""

    def __init__(self, folders):
        self.folders = folders
        self.modes = {
            "configure": {"-S": check_source, "-B": self.folders.add, "-D": check_definition,
                          "-G": check_generator("cmake"), "--preset": self.configure_preset},
            "build": {"--build": self.check_folder, "--preset": self.known_preset("buildPresets"),
                      "--target": check_target, "-j": check_number, "--parallel": check_number},
            "install": {"--install": self.check_folder, "--prefix": anything,
                        "--component": check_component, "--strip": None},
            "ctest": {"--test-dir": self.check_folder, "-R": anything, "-E": anything,
                      "--preset": self.known_preset("testPresets"), "-j": check_number,
                      "--output-on-failure": None},
            "cpack": {"-G": check_generator("cpack")},
        }

    def check_folder(self, name):
        demand(name in self.folders, f"no command of the page has made the folder {name}")

    def known_preset(self, kind):
        def check(name):
            demand(name in presets(kind), f"no preset {name}")
        return check

    def configure_preset(self, name):
        demand(name in presets("configurePresets") and
               not presets("configurePresets")[name].get("hidden"), f"no preset {name}")
        self.folders.add(f"build/{name}")

    def check(self, words):
        mode = "configure" if words[0] == "cmake" else words[0]
        if words[1:2] in (["--build"], ["--install"]):
            mode = words[1][2:]
        rest = iter(split_options(words[1:]))
        for word in rest:
            demand(word in self.modes[mode], f"{words[0]}: nothing here knows {word}")
            check_value = self.modes[mode][word]
            if check_value:
                value = next(rest, None)
                demand(value is not None, f"{words[0]} {word} lacks its value")
                check_value(value)


# --- cargo

@functools.cache
def packages():
    listed = json.loads(output("cargo", "metadata", "--no-deps", "--offline", "--format-version",
                               "1"))
    return {package["name"]: package for package in listed["packages"]}


def package_at(path):
    manifest = (ROOT / path.removeprefix("…/") / "Cargo.toml").resolve()
    found = [p for p in packages().values() if p["manifest_path"] == str(manifest)]
    demand(found, f"no {path}")
    return found[0]


def named_package(name):
    demand(name in packages(), f"no package {name}")
    return packages()[name]


def cargo_options(words):
    """[(option, value)] and the words that are neither."""
    usage = output("cargo", words[1], "--help")
    options, plain, rest = [], [], iter(split_options(words[2:]))
    for word in rest:
        if not word.startswith("-"):
            plain.append(word)
            continue
        found = re.search(rf"^ +(?:-\w, )?{word}(?:, --[\w-]+)?(?![\w-])( \[?<)?", usage,
                          re.MULTILINE)
        demand(found, f"cargo {words[1]} has no {word}")
        value = next(rest, None) if found.group(1) else None
        demand(value is not None or not found.group(1), f"cargo {words[1]} {word} lacks its value")
        options.append((word, value))
    return options, plain


def check_cargo(words):
    """Packages, paths, targets and features are there."""
    options, plain = cargo_options(words)
    chosen = [named_package(value) for option, value in options if option in ("-p", "--package")]
    chosen += [package_at(value) for option, value in options if option == "--path"]
    demand(plain == ([chosen[0]["name"]] if words[1] == "add" and chosen else []),
           f"cargo {words[1]}: nothing here knows {' '.join(plain)}")
    judged = chosen or list(packages().values())
    for option, value in options:
        if option in ("--test", "--example", "--bin"):
            demand(any(t["name"] == value and option[2:] in t["kind"]
                       for p in judged for t in p["targets"]), f"no {option[2:]} {value}")
        elif option in ("-F", "--features"):
            for feature in re.split(r"[ ,]", value):
                demand(any(feature in p["features"] for p in judged), f"no feature {feature}")


def check_cargo_fuzz(words):
    manifest = (ROOT / "bindings" / "syncblob" / "fuzz" / "Cargo.toml").read_text()
    demand(words[2:3] == ["run"] and len(words) == 4 and f'name = "{words[3]}"' in manifest,
           f"no fuzz target {' '.join(words[2:])}")
