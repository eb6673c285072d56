"""C and C++ of the pages, compiled against an installed library and run."""
import os
import pathlib
import re
import subprocess

from pages import ROOT

HERE = pathlib.Path(__file__).resolve().parent
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


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
    """`prefix` is where the library is installed."""

    def __init__(self, prefix, cc, cxx, work):
        found = sorted(pathlib.Path(prefix).rglob("syncblob.pc"))
        if not found:
            raise SystemExit(f"{prefix} has no syncblob.pc")
        libraries = found[0].parent.parent
        self.prefix = pathlib.Path(prefix).resolve()
        self.environment = {**os.environ, "PKG_CONFIG_PATH": str(found[0].parent),
                            "LD_LIBRARY_PATH": str(libraries)}
        self.cc, self.cxx, self.work = cc, cxx, work
        asked = [*"pkg-config --cflags --libs syncblob-comm syncblob-testing syncblob-net".split()]
        self.flags = run(asked, work, self.environment).split()
        self.compile(["prepare"], HERE / "prepare.c", work)

    def compile(self, names, source, folder):
        """Compiles a source to the program names[0] of a folder."""
        is_c = source.suffix == ".c"
        language = [self.cc, "-std=c11"] if is_c else [self.cxx, "-std=c++11"]
        run([*language, "-g", *WARNINGS, str(source), "-o", names[0], *self.flags, "-lm"], folder,
            self.environment)

    def prepare(self, name, folder):
        run([str(self.work / "prepare"), name], folder, self.environment)

    def page_environment(self, folder):
        """Of a page's commands, which have to say where the library is."""
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

    def run_program(self, text, suffix, folder, name="first"):
        source = folder / f"{name}{suffix}"
        source.write_text(text)
        self.compile([name], source, folder)
        return run([f"./{name}"], folder, self.environment)

    def run_fragment(self, text, folder, frame="fragment.c"):
        """Statements in a frame; they may go to `failed`. What they leave behind is a failure."""
        frame = (HERE / frame).read_text()
        source = folder / "fragment.c"
        source.write_text(frame.replace("/* FRAGMENT */", "\n" + text))
        run([self.cc, "-std=c11", "-g", "-fsanitize=address", *WARNINGS, "fragment.c", "-o",
             "fragment", *self.flags], folder, self.environment)
        return run(["./fragment"], folder, self.environment)

    def run_files(self, files, folder):
        """One program of several files, by their names."""
        for name, text in files.items():
            (folder / name).write_text(text)
        sources = [name for name in files if name.endswith(".c")]
        run([self.cc, "-std=c11", "-g", "-fsanitize=address", *WARNINGS, *sources, "-o", "files",
             *self.flags, "-lm"], folder, self.environment)
        return run(["./files"], folder, self.environment)

    def configure_project(self, text, folder, *definitions):
        """The lines of a CMakeLists.txt below its project(), in the page's folder."""
        head = "cmake_minimum_required(VERSION 3.22)\nproject(page LANGUAGES C CXX)\n"
        (folder / "CMakeLists.txt").write_text(head + text)
        run(["cmake", "-G", "Ninja", "-B", "project", f"-DCMAKE_C_COMPILER={self.cc}", *definitions],
            folder, self.environment)

    def build_project(self, text, folder):
        self.configure_project(text, folder, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run(["cmake", "--build", "project"], folder, self.environment)

    def configure_part(self, text, folder):
        """Those of a project with the repository as its folder syncblob; tests/users/consumer/cmake.py
        builds such."""
        (folder / "syncblob").unlink(missing_ok=True)
        (folder / "syncblob").symlink_to(ROOT)
        self.configure_project(text, folder)


def file_name(info):
    for word in info:
        found = re.fullmatch(r"file=(\S+)", word)
        if found:
            return found.group(1)
    return None
