#!/usr/bin/env python3
"""Compiles or runs every code block of every page, and the code at the top of every header.

    check_blocks.py --prefix PREFIX --cli SYNCBLOB [PAGE...]
    check_blocks.py --file NAME PAGE   prints the file made of the page's blocks "c file=NAME"

In shell blocks, the commands "syncblob", "cc" and compiled programs are run. Every other command must be a script
or a known program, and the command's options, presets, crates, scripts and folders must exist. README.md in this
folder describes the checks.
"""
import argparse
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from pages import ROOT, blocks, files, header_block, malformed, pages, shown  # noqa: E402
sys.path.append(str(ROOT / "fuzz/seeds"))
from wire import blob, data, number  # noqa: E402

CC = "gcc"
HERE = pathlib.Path(__file__).resolve().parent
HEADERS = sorted(ROOT.glob("c/**/include/syncblob/*.h"))
OF_PYTHON = {"torch", "safetensors", "resnet", "cifar10"}
KNOWN = {"./dev", "cmake", "ctest", "cpack", "cargo", "pip", "jq", "sort"}
OPERATORS = {"&&", "||", ";", "|"}
REDIRECTION = r"\d?>{1,2}(&\d|[\w./-]+)"


def layer(name, kind, *shapes):
    return data(100, data(1, name) + data(2, kind) + b"".join(data(7, blob(*dims)) for dims in shapes))


FILES = {
    ".caffemodel": data(1, "net") + layer("conv1", "Convolution", (8, 3, 5, 5), (8,)) +
    layer("ip1", "InnerProduct", (10, 8), (10,)),
    ".solverstate": number(1, 5000) + data(2, "net.caffemodel") + data(3, blob(8, 3, 5, 5)) + number(4, 2),
    ".binaryproto": blob(1, 3, 32, 32),
    ".prototxt": b"""
    layer { name: "data" type: "Input" top: "data"
            input_param { shape { dim: 1 dim: 3 dim: 16 dim: 16 } } }
    layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
            convolution_param { num_output: 8 kernel_size: 5 } }
    layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
            pooling_param { pool: AVE global_pooling: true } }
    layer { name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1"
            inner_product_param { num_output: 10 } }
""",
}


class Wrong(Exception):
    pass


def demand(condition, what):
    if not condition:
        raise Wrong(what)


def run(command, folder, environment, statuses=(0,)):
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=120, shell=isinstance(command, str))
    shown_command = command if isinstance(command, str) else " ".join(map(str, command))
    demand(done.returncode in statuses, f"{shown_command}\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def page_files(page):
    found = {}
    for block in blocks(page):
        for word in block.info:
            if word.startswith("file="):
                found[word[5:]] = found.get(word[5:], "") + block.text
    return found


def is_documentation_test(page):
    """cargo test runs the blocks of a page that a crate includes as documentation."""
    return any((source.parent / target).resolve() == page
               for source in ROOT.glob("bindings/*/src/lib.rs")
               for target in re.findall(rf'include_str!\("([^"]*{page.name})"\)', source.read_text()))


# --- commands that are not run ---------------------------------------------------------------------

@functools.cache
def help_of_dev():
    return subprocess.run(["./dev", "help"], cwd=ROOT, capture_output=True, text=True,
                          check=True).stdout


@functools.cache
def written(*names):
    return "\n".join(path.read_text() for path in files() if path.name.endswith(names))


def check_arguments(words):
    for before, word in zip(words, words[1:]):
        option = re.match(r"-D(SYNCBLOB_\w+)=(ON|OFF)$", word)
        if word.startswith("-DSYNCBLOB_"):
            demand(option and f"option({option[1]} " in written("CMakeLists.txt", ".cmake"),
                   f"no option {word}")
        elif before == "--preset":
            demand(f'"name": "{word}"' in written("CMakePresets.json"), f"no preset {word}")
        elif before == "--path" or (before == "install" and "/" in word):
            demand((ROOT / word.removeprefix("…/")).is_dir(), f"no {word}")
        elif before in ("-p", "add") or words[:3] == ["cargo", "fuzz", "run"] and before == "run":
            demand(f'name = "{word}"' in written("Cargo.toml"), f"no package or program {word}")
        elif words[0] == "./dev" and not re.search(r"^\d+$| ", word) and not (ROOT / word).exists():
            demand(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", help_of_dev()) or
                   word.startswith("--") and f'"{word}"' in written(".py") or
                   any((ROOT / "tests").glob(f"**/test_*{word}*.c")) or
                   (ROOT / f"fuzz/targets/{word}.c").exists(), f"./dev help does not know {word}")


def check_script(words):
    found = [path for path in files() if str(path).endswith("/" + words[0].removeprefix("./"))]
    demand(found and "/" in words[0], f"nothing here knows this command, and no script {words[0]}")
    demand(os.access(found[0], os.X_OK), f"{words[0]} cannot be executed")
    for word in words[1:]:
        demand(not word.startswith("-") or word in found[0].read_text(), f"{words[0]} has no {word}")


def unquoted(word):
    demand(re.match(r"\$\(|['\"]", word) or not re.search(r"[;&|()<>`]", word),
           f"{word}: nothing here understands this")
    return word if word.startswith("$(") else shlex.split(word)[0]


def commands(text):
    for line in text.replace("\\\n", " ").splitlines():
        source = []
        line = re.sub(r"(^|\s)#.*", "", line)
        for word in re.findall(r"\$\([^)]*\)|'[^']*'|\"[^\"]*\"|[^\s]+", line) + [";"]:
            if word not in OPERATORS:
                source.append(word)
                continue
            plain = [w for w in source if not re.fullmatch(REDIRECTION, w)]
            while plain and re.match(r"\w+=", plain[0]):
                plain.pop(0)
            if plain:
                yield [unquoted(w) for w in plain], " ".join(source)
            source = []


# --- blocks that are compiled or run ---------------------------------------------------------------

class Page:
    def __init__(self, options, path, folder):
        found = sorted(pathlib.Path(options.prefix).rglob("syncblob.pc"))
        demand(found, f"{options.prefix} has no syncblob.pc")
        self.path, self.folder, self.prefix, self.checked = path, folder, pathlib.Path(options.prefix).resolve(), 0
        self.environment = {**os.environ, "PKG_CONFIG_PATH": str(found[0].parent),
                            "LD_LIBRARY_PATH": str(found[0].parent.parent)}
        self.flags = run("pkg-config --cflags --libs syncblob-comm syncblob-testing syncblob-net", folder,
                         self.environment).split()
        (folder / "home").mkdir()
        (folder / "bin").mkdir()
        (folder / "bin/syncblob").symlink_to(pathlib.Path(options.cli).resolve())
        self.shell = {**os.environ, "HOME": str(folder / "home"), "PATH": f"{folder}/bin:{os.environ['PATH']}"}
        for name in ("PKG_CONFIG_PATH", "LD_LIBRARY_PATH"):
            self.shell.pop(name, None)
        for name in ("net.caffemodel", "net.solverstate", "mean.binaryproto"):
            self.provide(name)

    def problems(self):
        if self.path.suffix == ".h":
            if block := header_block(self.path):
                yield from self.failures(block.place, self.run_fragment, block.text)
            return
        yield from (f"{shown(self.path)}:{number}: {complaint}" for number, complaint in malformed(self.path))
        for block in blocks(self.path):
            yield from self.failures(block.place, self.check_block, block)
        if compiled := page_files(self.path):
            yield from self.failures(f"{shown(self.path)}: {' '.join(compiled)}", self.run_files, compiled)

    def failures(self, place, check, *arguments):
        try:
            check(*arguments)
            self.checked += 1
        except (Wrong, ValueError) as problem:
            yield f"{place}: {problem}"

    def check_block(self, block):
        kinds = {"c": self.run_program, "c fragment": self.run_fragment, "cmake": self.build_project,
                 "cmake part": self.configure_part, "sh": self.check_commands, "json": json.loads}
        info = " ".join(block.info)
        if info in kinds:
            kinds[info](block.text)
        elif block.language == "rust":
            demand(is_documentation_test(block.page), "no crate has this page as documentation, so that nothing runs this")
        elif block.language == "python":  # tests/users/python runs the block
            demand({*block.info[1:]} <= OF_PYTHON, f'"{info}": unknown requirements')
        else:
            demand(block.language == "text" or block.info[1:] and block.info[1].startswith("file="),
                   f'"{info}" is not a kind of block that is checked')

    def compile(self, program, *sources):
        run([CC, "-std=c11", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *sources, "-o", program,
             *self.flags, "-lm"], self.folder, self.environment)
        run([f"./{program}"], self.folder, self.environment)

    def run_program(self, text):
        (self.folder / "first.c").write_text(text)
        self.compile("first", "first.c")

    def run_fragment(self, text):
        text = (HERE / "fragment.c").read_text().replace("/* FRAGMENT */", "\n" + text)
        self.run_files({"fragment.c": text})

    def run_files(self, texts):
        for name, text in texts.items():
            (self.folder / name).write_text(text)
        self.compile("files", "-fsanitize=address", *(name for name in texts if name.endswith(".c")))

    def configure_project(self, text, *definitions):
        head = "cmake_minimum_required(VERSION 3.22)\nproject(page LANGUAGES C CXX)\n"
        (self.folder / "CMakeLists.txt").write_text(head + text)
        run(["cmake", "-G", "Ninja", "-B", "project", f"-DCMAKE_C_COMPILER={CC}", *definitions],
            self.folder, self.environment)

    def build_project(self, text):
        self.configure_project(text, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run(["cmake", "--build", "project"], self.folder, self.environment)

    def configure_part(self, text):
        (self.folder / "syncblob").unlink(missing_ok=True)
        (self.folder / "syncblob").symlink_to(ROOT)
        self.configure_project(text)

    def check_commands(self, text):
        for words, source in commands(text):
            self.check_command(words, source)

    def check_command(self, words, source):
        name = words[0]
        if name == "cc" or (name.startswith("./") and (self.folder / name).is_file()):
            run(re.sub(r"^cc ", f"{CC} ", source), self.folder, self.shell)
            return
        demand(not any(word.startswith("$(") for word in words), "$(...): only cc is run with it")
        if name == "syncblob":
            self.run_syncblob(words, source)
        elif name == "export":
            listed = run(f"{source} && env -0", self.folder, self.shell)
            self.shell = dict(entry.split("=", 1) for entry in listed.split("\0") if entry)
        elif name == "cd":
            demand(len(words) == 2 and (words[1] == "build" or (ROOT / words[1]).is_dir()),
                   f"{' '.join(words)}: no such folder")
        elif name in KNOWN:
            check_arguments(words)
            if words[1:2] == ["--install"] and "--prefix" in words:
                self.install(words[words.index("--prefix") + 1])
            if "syncblob-cli" in words and "--" in words:
                rest = ["syncblob", *words[words.index("--") + 1:]]
                self.run_syncblob(rest, " ".join(rest))
        else:
            check_script(words[1:] if name == "bash" else words)

    def install(self, place):
        demand(place.startswith("~/"), f"{place} is not below ~")
        link = self.folder / "home" / place[2:]
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(self.prefix)

    def run_syncblob(self, words, source):
        named = [w for w in words[2:] if "." in w and not w.startswith("-")]
        outputs = {following for word, following in zip(words, words[1:]) if word in ("-o", "--output")}
        if words[1:2] == ["convert"] and len(named) > 1 and not {"--dry-run", "-o"} & {*words}:
            outputs.add(named[1])
        for name in named:
            if name in outputs:
                (self.folder / name).unlink(missing_ok=True)
            else:
                self.provide(name.replace("*", "a"))
        # diff returns 1 for different files, verify for findings
        run(source, self.folder, self.shell, (0, 1) if words[1:2] in (["diff"], ["verify"]) else (0,))

    def provide(self, name):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() and path.suffix in FILES:
            path.write_bytes(FILES[path.suffix])
        elif not path.exists() and path.suffix in (".safetensors", ".npz"):
            run(f"syncblob convert net.caffemodel {name} --names caffe", self.folder, self.shell)


def check(options, chosen, work):
    found, checked = [], 0
    for index, path in enumerate(chosen):
        folder = work / str(index)
        folder.mkdir()
        page = Page(options, path, folder)
        found += page.problems()
        checked += page.checked
    print("\n".join(found) or f"{checked} blocks of {len(chosen)} pages and headers")
    return 1 if found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", help="where the library is installed")
    parser.add_argument("--cli", help="the program syncblob")
    parser.add_argument("--file", metavar="NAME")
    parser.add_argument("page", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    chosen = [page.resolve() for page in options.page] or [*pages(), *HEADERS]
    if options.file:
        print(page_files(chosen[0])[options.file], end="")
        return 0
    with tempfile.TemporaryDirectory() as work:
        return check(options, chosen, pathlib.Path(work))


if __name__ == "__main__":
    sys.exit(main())
