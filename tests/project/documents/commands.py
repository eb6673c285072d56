"""Checks shell blocks. The commands below are run; any other command must be in KNOWN or a script,
and the options, presets, crates, scripts and folders in its arguments must exist.

    syncblob X ...     runs in a folder with the files that it reads
    cc ..., ./PROGRAM  run with the page's first program as first.c and the variables that the page
                       exports

`cmake --install --prefix ~/…` is not run; instead, a symbolic link to the already installed library
is created at that prefix.
"""
import functools
import os
import pathlib
import re
import shlex
import subprocess

from pages import ROOT, files
from programs import FILES


class Wrong(Exception):
    pass


KNOWN = {"./dev", "cmake", "ctest", "cpack", "cargo", "pip", "jq", "sort"}
# The net of the caffemodel in FILES.
PROTOTXT = """
    layer { name: "data" type: "Input" top: "data"
            input_param { shape { dim: 1 dim: 3 dim: 16 dim: 16 } } }
    layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
            convolution_param { num_output: 8 kernel_size: 5 } }
    layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
            pooling_param { pool: AVE global_pooling: true } }
    layer { name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1"
            inner_product_param { num_output: 10 } }
"""
OPERATORS = {"&&", "||", ";", "|"}
REDIRECTION = r"\d?>{1,2}(&\d|[\w./-]+)"


def demand(condition, what):
    if not condition:
        raise Wrong(what)


@functools.cache
def help_of_dev():
    return subprocess.run(["./dev", "help"], cwd=ROOT, capture_output=True, text=True,
                          check=True).stdout


@functools.cache
def written(*names):
    """Returns the text of all files whose names end with one of `names`."""
    return "\n".join(path.read_text() for path in files() if path.name.endswith(names))


def check_arguments(words):
    """Checks that the options, presets, crates, scripts and folders in a command exist."""
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


def lines(text):
    """Yields each command line without its comment; a backslash continues a line."""
    for line in text.replace("\\\n", " ").splitlines():
        plain = re.sub(r"(^|\s)#.*", "", line).strip()
        if plain:
            yield plain


def unquoted(word):
    """Returns a word without its quotes. Refuses a word that would start another command."""
    demand(re.match(r"\$\(|['\"]", word) or not re.search(r"[;&|()<>`]", word),
           f"{word}: nothing here understands this")
    return word if word.startswith("$(") else shlex.split(word)[0]


def commands(line):
    """Yields (words, source) of each command of a line, without assignments and redirections."""
    source = []
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


class Shell:
    """Checks the commands of one page; they run in `folder`."""

    def __init__(self, folder, programs, cli):
        self.folder, self.programs, self.cli = folder, programs, cli
        self.environment = programs.page_environment(folder)

    def check(self, text):
        for line in lines(text):
            for words, source in commands(line):
                self.check_command(words, source)

    def check_command(self, words, source):
        name = words[0]
        if name == "cc" or (name.startswith("./") and (self.folder / name).is_file()):
            self.programs.run_shell(source, self.folder, self.environment)
            return
        demand(not any(word.startswith("$(") for word in words), "$(...): only cc is run with it")
        if name == "syncblob":
            self.run_syncblob(words)
        elif name == "export":
            self.environment = self.programs.exported(source, self.folder, self.environment)
        elif name == "cd":
            demand(len(words) == 2 and (words[1] == "build" or (ROOT / words[1]).is_dir()),
                   f"{' '.join(words)}: no such folder")
        elif name in KNOWN:
            check_arguments(words)
            if words[1:2] == ["--install"] and "--prefix" in words:
                self.install(words[words.index("--prefix") + 1])
            if "syncblob-cli" in words and "--" in words:
                self.run_syncblob(["syncblob", *words[words.index("--") + 1:]])
        else:
            self.check_script(words[1:] if name == "bash" else words)

    def install(self, place):
        """Links a prefix below ~ to the installed library, for the page's programs."""
        demand(place.startswith("~/"), f"{place} is not below ~")
        link = pathlib.Path(self.environment["HOME"]) / place[2:]
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(self.programs.prefix)

    def check_script(self, words):
        found = [path for path in files() if str(path).endswith("/" + words[0].removeprefix("./"))]
        demand(found and "/" in words[0], f"nothing here knows this command, and no script {words[0]}")
        demand(os.access(found[0], os.X_OK), f"{words[0]} cannot be executed")
        for word in words[1:]:
            demand(not word.startswith("-") or word in found[0].read_text(), f"{words[0]} has no {word}")

    def run_syncblob(self, words):
        takes_value = [w for w in words[2:] if w.startswith("-")]
        files = [w for w in words[2:] if "." in w and not w.startswith("-")]
        written = {following for word, following in zip(words, words[1:])
                   if word in ("-o", "--output")}
        if words[1:2] == ["convert"] and len(files) > 1 and not {"--dry-run", "-o"} & set(takes_value):
            written.add(files[1])
        for file in files:
            self.provide(file.replace("*", "a"), file in written)
        expanded = [match for word in words[1:] for match in self.expand(word)]
        done = subprocess.run([self.cli, *expanded], cwd=self.folder, capture_output=True,
                              text=True)
        # diff returns 1 if the files differ, verify if it has findings
        fine = (0, 1) if words[1:2] in (["diff"], ["verify"]) else (0,)
        demand(done.returncode in fine, f"{' '.join(words)}: {(done.stderr or done.stdout)[-400:]}")

    def expand(self, word):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.glob(word)) \
            if "*" in word else [word]

    def provide(self, name, is_output):
        path = self.folder / name
        if is_output:
            path.unlink(missing_ok=True)
        elif not path.exists() and path.suffix in FILES:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(FILES[path.suffix])
        elif not path.exists() and path.suffix == ".prototxt":
            path.write_text(PROTOTXT)
        elif not path.exists() and path.suffix in (".safetensors", ".npz"):
            self.provide("net.caffemodel", False)
            subprocess.run([self.cli, "convert", "net.caffemodel", name, "--names", "caffe"],
                           cwd=self.folder, capture_output=True, check=True)
