"""Compiles the pages' C code against an installed library and runs it."""
import os
import pathlib
import re
import subprocess
import sys

from pages import ROOT

sys.path.append(str(ROOT / "fuzz/seeds"))
from wire import blob, data, number  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def layer(name, kind, *shapes):
    return data(100, data(1, name) + data(2, kind) + b"".join(data(7, blob(*dims)) for dims in shapes))


# The files that the pages' examples read, by extension: a small net, a solver state, a mean image.
FILES = {
    ".caffemodel": data(1, "net") + layer("conv1", "Convolution", (8, 3, 5, 5), (8,)) +
    layer("ip1", "InnerProduct", (10, 8), (10,)),
    ".solverstate": number(1, 5000) + data(2, "net.caffemodel") + data(3, blob(8, 3, 5, 5)) + number(4, 2),
    ".binaryproto": blob(1, 3, 32, 32),
}


class Failed(Exception):
    pass


def run(command, folder, environment):
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=120, shell=isinstance(command, str))
    if done.returncode:
        raise Failed(f"{command if isinstance(command, str) else ' '.join(map(str, command))}\n"
                     f"{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


class Programs:
    """Compiles and runs programs with the library that is installed at `prefix`."""

    def __init__(self, prefix, cc, work):
        found = sorted(pathlib.Path(prefix).rglob("syncblob.pc"))
        if not found:
            raise SystemExit(f"{prefix} has no syncblob.pc")
        libraries = found[0].parent.parent
        self.prefix = pathlib.Path(prefix).resolve()
        self.environment = {**os.environ, "PKG_CONFIG_PATH": str(found[0].parent),
                            "LD_LIBRARY_PATH": str(libraries)}
        self.cc = cc
        asked = [*"pkg-config --cflags --libs syncblob-comm syncblob-testing syncblob-net".split()]
        self.flags = run(asked, work, self.environment).split()

    def compile(self, program, folder, *sources):
        run([self.cc, "-std=c11", "-g", *WARNINGS, *map(str, sources), "-o", program, *self.flags, "-lm"],
            folder, self.environment)

    def page_environment(self, folder):
        """Returns the environment of a page's commands. The page itself must set the paths to the
        library."""
        home = folder / "home"
        home.mkdir(exist_ok=True)
        kept = {name: value for name, value in os.environ.items()
                if name not in ("PKG_CONFIG_PATH", "LD_LIBRARY_PATH")}
        return {**kept, "HOME": str(home)}

    def exported(self, line, folder, environment):
        listed = run(["bash", "-c", f"{line} && env -0"], folder, environment)
        return dict(entry.split("=", 1) for entry in listed.split("\0") if entry)

    def run_shell(self, line, folder, environment):
        run(re.sub(r"^cc ", f"{self.cc} ", line), folder, environment)

    def run_program(self, text, folder):
        (folder / "first.c").write_text(text)
        self.compile("first", folder, "first.c")
        run(["./first"], folder, self.environment)

    def run_fragment(self, text, folder):
        """Runs statements within the program fragment.c. Detects memory leaks."""
        text = (HERE / "fragment.c").read_text().replace("/* FRAGMENT */", "\n" + text)
        self.run_files({"fragment.c": text}, folder)

    def run_files(self, files, folder):
        """Compiles and runs one program, whose files are {name: text}."""
        for name, text in files.items():
            (folder / name).write_text(text)
        self.compile("files", folder, "-fsanitize=address", *(name for name in files if name.endswith(".c")))
        run(["./files"], folder, self.environment)

    def configure_project(self, text, folder, *definitions):
        """Configures a project in the page's folder; `text` is its CMakeLists.txt after the line
        project()."""
        head = "cmake_minimum_required(VERSION 3.22)\nproject(page LANGUAGES C CXX)\n"
        (folder / "CMakeLists.txt").write_text(head + text)
        run(["cmake", "-G", "Ninja", "-B", "project", f"-DCMAKE_C_COMPILER={self.cc}", *definitions],
            folder, self.environment)

    def build_project(self, text, folder):
        self.configure_project(text, folder, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run(["cmake", "--build", "project"], folder, self.environment)

    def configure_part(self, text, folder):
        """Configures a project that contains the repository as its folder syncblob;
        tests/users/consumer/cmake.py builds such a project."""
        (folder / "syncblob").unlink(missing_ok=True)
        (folder / "syncblob").symlink_to(ROOT)
        self.configure_project(text, folder)
