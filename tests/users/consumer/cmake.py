#!/usr/bin/env python3
"""Tests the library as CMake projects use it: cmake.py BUILD [TEST...]

BUILD is a build folder with the shared and the static library.
"""

import functools
import os
import re
import shutil
import sys
from pathlib import Path

from claims import check, fresh, run, run_tests

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
BUILD = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
LIBRARIES = ("Runtime", "Development", "Static")


def install(*components):
    first = fresh("installed") / "first"
    for component in components:
        run("cmake", "--install", BUILD, "--prefix", first, "--component", component)
    return Path(shutil.move(first, fresh("moved") / "second place"))


@functools.cache
def whole():
    return install(*LIBRARIES)


def configure(source, *definitions, status=0):
    folder = fresh("build")
    output = run("cmake", "-G", "Ninja", "-S", HERE / source, "-B", folder,
                 "-DCMAKE_BUILD_TYPE=Debug", *(f"-D{text}" for text in definitions), status=status)
    return folder, output


def find(prefix, wanted="", library="syncblob::syncblob", status=0, programs="in_c=main.c;in_cxx=main.cpp"):
    return configure("found", f"CMAKE_PREFIX_PATH={prefix}", f"WANTED={wanted.replace(' ', ';')}",
                     f"LIBRARY={library}", f"PROGRAMS={programs}", status=status)


def refused(prefix, wanted, message):
    output = find(prefix, wanted, status=1)[1]
    check(re.search(message, re.sub(r"\s+", " ", output)), f"not {message!r} but\n{output}")


def built(folder, *programs):
    """Returns the libraries that the programs need at run time."""
    run("cmake", "--build", folder)
    needed = ""
    for program in programs:
        run(folder / program, *(["0.1.0"] if program != "in_cxx" else []), cwd=folder)
        needed += run("readelf", "-d", folder / program)
    return re.findall(r"NEEDED.*\[(.*)\]", needed)


def found_and_built(prefix, wanted, library="syncblob::syncblob"):
    return built(find(prefix, wanted, library)[0], "in_c", "in_cxx")


def test_found():
    for wanted, library, is_shared in (
            ("REQUIRED", "syncblob::syncblob", True),
            ("0.1 REQUIRED COMPONENTS shared", "syncblob::shared", True),
            ("0.1.0 REQUIRED COMPONENTS static", "syncblob::syncblob", False),
            ("REQUIRED COMPONENTS static shared", "syncblob::syncblob", True),
            ("REQUIRED COMPONENTS static shared", "syncblob::static", False)):
        needed = found_and_built(whole(), wanted, library)
        counts = [needed.count(name) for name in ("libsyncblob.so.0.1", "libprotobuf-c.so.1")]
        check(counts == ([2, 0] if is_shared else [0, 2]), wanted, library, needed)


def test_found_static_alone():
    prefix = install("Development", "Static")
    for path in [*prefix.rglob("syncblob-shared*.cmake"), *prefix.rglob("libsyncblob.so*")]:
        path.unlink()
    check("libsyncblob.so.0.1" not in found_and_built(prefix, "REQUIRED"))
    refused(prefix, "REQUIRED COMPONENTS shared", "syncblob's shared library is not installed here")


def test_found_testing():
    prefix = install(*LIBRARIES, "Testing", "TestingDevelopment")
    for wanted, libraries in (("testing", {"libsyncblob.so.0.1", "libsyncblob-testing.so.0.1"}),
                              ("testing static", set())):
        found = find(prefix, f"REQUIRED COMPONENTS {wanted}", "syncblob::testing", programs="in_testing=testing.c")
        needed = built(found[0], "in_testing")
        check({name for name in needed if "syncblob" in name} == libraries, wanted, needed)


def test_missing_components():
    prefix = install("Runtime", "Development")
    refused(prefix, "REQUIRED COMPONENTS static", "syncblob's static library is not installed here")
    refused(prefix, "COMPONENTS static", "not found: syncblob's static library is not installed")
    refused(prefix, "REQUIRED COMPONENTS cuda", "no component cuda: "
            "there are shared, static, testing, conformance, comm, mpi, opencl and net")
    output = find(prefix, "REQUIRED COMPONENTS shared OPTIONAL_COMPONENTS static")[1]
    check("shared: TRUE, static: " in output and "static: TRUE" not in output, output)


def test_missing_dependencies():
    without = "CMAKE_DISABLE_FIND_PACKAGE_SyncblobProtobufC=ON"
    definitions = (f"CMAKE_PREFIX_PATH={whole()}", "LIBRARY=syncblob::syncblob", without)
    output = configure("found", *definitions, "WANTED=REQUIRED;COMPONENTS;static", status=1)[1]
    check("static library needs SyncblobProtobufC" in output, output)
    configure("found", *definitions, "WANTED=REQUIRED")
    output = configure("found", *definitions,
                       "WANTED=REQUIRED;COMPONENTS;shared;OPTIONAL_COMPONENTS;static")[1]
    check("shared: TRUE, static: FALSE" in output, output)
    configure("found", *definitions, "WANTED=COMPONENTS;static", status=1)
    output = configure("found", *definitions, "LIBRARY=m", "WANTED=OPTIONAL_COMPONENTS;static")[1]
    check("static: FALSE" in output, output)


def test_versions():
    """While the major version is 0, every minor version may be incompatible."""
    for version in ("0.0.9", "0.1.1", "0.2", "1.0", "0.1.0.1"):
        refused(whole(), f"{version} REQUIRED", f'version "{re.escape(version)}"')
    find(whole(), "0.1...<0.2 REQUIRED")


def test_installed_files_contain_no_build_paths():
    """Only binaries may contain paths of sources, for a debugger."""
    for path in whole().rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        if not content.startswith((b"\x7fELF", b"!<arch>")):
            for place in (BUILD, REPOSITORY, "installed-"):
                check(str(place).encode() not in content, path, "names", place)


def test_absolute_folders_ignore_the_prefix():
    folder = configure(REPOSITORY, "CMAKE_INSTALL_LIBDIR=/opt/a/lib", "BUILD_SHARED_LIBS=OFF",
                       "CMAKE_INSTALL_INCLUDEDIR=/opt/b/include")[0] / "c"
    environment = {**os.environ, "PKG_CONFIG_LIBDIR": folder, "PKG_CONFIG_PATH": ""}
    flags = run("pkg-config", "--cflags", "--libs", "syncblob", environment=environment).split()
    check("-I/opt/b/include" in flags and "-L/opt/a/lib" in flags, flags)


def test_run_path_of_the_user():
    folder = configure(REPOSITORY, "CMAKE_INSTALL_RPATH=/opt/c")[0]
    check(re.search(r"-rpath,/opt/c\b", (folder / "build.ninja").read_text()), "the run path is not set")


def part(how, *definitions):
    folder, output = configure("part", f"HOW={how}", f"SYNCBLOB_SOURCE={REPOSITORY}", *definitions)
    check("CMake Warning" not in output, output)
    return folder, built(folder, "main")


def test_part_by_add_subdirectory():
    folder, needed = part("add_subdirectory")
    check("libsyncblob.so.0.1" not in needed, needed)
    check((folder / "libown.a").is_file(), "the parent's library is of another kind")
    run("cmake", "--install", folder, "--prefix", folder / "prefix")
    files = [path.name for path in (folder / "prefix").rglob("*") if path.is_file()]
    check(files == ["main"], "installed were", files)


def test_part_of_a_sanitized_project():
    """A library with sanitizers cannot be linked with -z defs: the program supplies the sanitizers' run time."""
    def ninja(*definitions):
        folder = configure("part", "HOW=add_subdirectory", f"SYNCBLOB_SOURCE={REPOSITORY}",
                           "BUILD_SHARED_LIBS=ON", "CMAKE_BUILD_TYPE=Release", *definitions)[0]
        text = (folder / "build.ninja").read_text()
        return "-D_FORTIFY_SOURCE" in text, "-z,defs" in text

    check(ninja() == (True, True))
    for definition in ("OPTIONS=-fsanitize=address", "CMAKE_C_FLAGS_RELEASE=-fsanitize=address"):
        check(ninja(definition) == (False, False), definition)


def test_part_by_fetch_content():
    folder, needed = part("FetchContent", "BUILD_SHARED_LIBS=ON", "SYNCBLOB_INSTALL=ON")
    check("libsyncblob.so.0.1" in needed, needed)
    check((folder / "libown.so").is_file(), "the parent's library is of another kind")
    check(not list(folder.rglob("libsyncblob.a")), "the unused static library was built, too")
    run("cmake", "--install", folder, "--prefix", folder / "prefix")
    check(found_and_built(folder / "prefix", "REQUIRED COMPONENTS shared"))


if __name__ == "__main__":
    if BUILD is None:
        sys.exit(__doc__)
    sys.exit(run_tests(globals(), sys.argv[2:]))
