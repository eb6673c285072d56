#!/usr/bin/env python3
"""The Rust crates as their users get them: crates.py [TEST...]

Builds and runs rust/, a crate of its own, in a fresh folder outside the
repository: by path, from packed crates with no network and no registry but a
folder, with the bundled library and with installed ones, with and without
OpenBLAS, with the oldest Rust. And what a user is told when something is
missing, and what makes cargo build the library anew.

Needs what building the library needs, and libclang. Only the download of
dependencies, at first, may use the network. CARGO_TARGET_DIR: where
builds are kept (target). SYNCBLOB_TEST_DATA: Caffe files (../shared/data).
SYNCBLOB_OLDEST_RUST: a folder with the oldest Rust's programs (rustup's).
"""

import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import claims
from claims import check, fresh, work

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
SYS = REPOSITORY / "bindings/syncblob-sys"
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")).resolve() / "crates"
DATA = Path(os.environ.get("SYNCBLOB_TEST_DATA", REPOSITORY / "../shared/data")).resolve()
OLDEST_RUST = "1.85"
NOWHERE = Path("/nonexistent")

# What would change how the library is found is given by each test alone.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not re.match(r"SYNCBLOB_|DEP_|CARGO_|PKG_CONFIG|DOCS_RS|RUSTFLAGS|(CC|CFLAGS|AR)$", name)
    or name in ("CARGO_HOME", "CARGO_NET_OFFLINE")
}


def run(*command, cwd, target="debug", status=0, **environment):
    """Runs a command; returns what it printed on both outputs."""
    environment = {"CARGO_TARGET_DIR": BUILT / target, **environment}
    return claims.run(*command, cwd=cwd, status=status, environment=ENVIRONMENT | environment)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


# --- crates ------------------------------------------------------------------


def consumer(name, syncblob, syncblob_sys, lock=True):
    """A new crate from rust/ with these dependencies."""
    crate = work() / name
    shutil.copytree(HERE / "rust", crate)
    write(crate / "Cargo.toml", f"""
[package]
name = "consumer"
version = "0.1.0"
edition = "2021"

[dependencies]
syncblob = {syncblob}
syncblob-sys = {syncblob_sys}

[build-dependencies]
cc = "1.2"
""")
    if lock:  # the versions that the repository is tested with
        shutil.copy(REPOSITORY / "Cargo.lock", crate)
        run("cargo", "fetch", cwd=crate)
    return crate


@functools.cache
def consumer_by_path(features=""):
    paths = (f'{{ path = "{REPOSITORY}/bindings/{name}"{features} }}'
             for name in ("syncblob", "syncblob-sys"))
    return consumer("by-path" + re.sub(r"\W+", "-", features), *paths)


def run_consumer(crate, *options, **environment):
    models = sorted(DATA.glob("*.caffemodel"))
    if not models:
        print(f"        no real model is loaded: {DATA} has none; set SYNCBLOB_TEST_DATA")
    said = run("cargo", *options, "run", "--offline", "--", *models, cwd=crate, **environment)
    check("made.caffemodel: 1 layers, sum of |weights| 4.5000" in said, said)
    for model in models:
        check(re.search(re.escape(model.name) + r": [1-9]\d* layers, .* [1-9]\d*\.\d+", said), said)


@functools.cache
def packed():
    """The .crate files, by name. The patch is for cargo before 1.90."""
    patch = f'patch.crates-io.syncblob-sys.path="{SYS}"'
    run("cargo", "package", "--locked", "--no-verify", "--allow-dirty", "--config", patch,
        "-p", "syncblob-sys", "-p", "syncblob", cwd=REPOSITORY)
    found = {}
    for path in (BUILT / "debug/package").glob("*.crate"):
        found[re.match(r"(.*)-\d+\.", path.name)[1]] = path
    check({"syncblob", "syncblob-sys"} <= found.keys(), "packed were", found)
    return found


def unpack(name, into):
    with tarfile.open(packed()[name]) as archive:
        archive.extractall(into)
    return into / packed()[name].name[: -len(".crate")]


@functools.cache
def vendored():
    """A folder with every dependency and our own two crates, and a file that
    makes it cargo's only registry."""
    crate = unpack("syncblob-sys", fresh("to-vendor"))
    registry = work() / "vendored"
    said = run("cargo", "vendor", "--locked", "--versioned-dirs",
               "--sync", consumer_by_path() / "Cargo.toml", registry, cwd=crate)
    for name, path in packed().items():
        unpacked = unpack(name, registry)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        write(unpacked / ".cargo-checksum.json", json.dumps({"files": {}, "package": digest}))
    config = work() / "registry.toml"
    write(config, said[said.index("[source"):])
    return config


def offline():
    """Options and variables of a cargo that can reach nothing else."""
    home = work() / "empty-home"
    home.mkdir(exist_ok=True)
    return ("--config", vendored()), {"CARGO_HOME": home}


# --- libraries -----------------------------------------------------------------


@functools.cache
def prefix(kind):
    """An installed library, both kinds of it or the static one alone."""
    build = BUILT / "c"
    run("cmake", "-G", "Ninja", "-S", REPOSITORY, "-B", build, "-DCMAKE_BUILD_TYPE=Debug",
        "-DSYNCBLOB_BUILD_TESTS=OFF", "-DCMAKE_INSTALL_LIBDIR=lib", cwd=work())
    run("cmake", "--build", build, cwd=work())
    installed = work() / kind
    run("cmake", "--install", build, "--prefix", installed, cwd=work())
    if kind == "static":
        for shared in (installed / "lib").glob("libsyncblob.so*"):
            shared.unlink()
    return installed


def pkg_config_of(folder):
    return {"PKG_CONFIG_PATH": folder / "lib/pkgconfig", "LD_LIBRARY_PATH": folder / "lib"}


def described(name, version, includes=""):
    """A folder with a .pc file of a library that does not exist."""
    folder = fresh(f"{name}-{version}")
    write(folder / f"{name}.pc", f"prefix={folder}\nName: {name}\nDescription: none\n"
                                 f"Version: {version}\nLibs: -l{name}\nCflags: {includes}\n")
    return folder


def pkg_config_without(name):
    """A pkg-config that does not know a library."""
    script = fresh(f"without-{name}") / "pkg-config"
    write(script, f'#!/bin/sh\ncase " $* " in *" {name} "*) exit 1 ;; esac\nexec pkg-config "$@"\n')
    script.chmod(0o755)
    return {"PKG_CONFIG": script}


# --- by path and packed -----------------------------------------------------------


def test_by_path():
    run_consumer(consumer_by_path())


def test_packages_are_whole():
    """All that is compiled is in the package, and nothing else of the repository is."""
    crate = unpack("syncblob-sys", fresh("whole"))
    listed = (REPOSITORY / "c/sources.txt").read_text().split()
    headers = [path.relative_to(REPOSITORY) for folder in ("c/include", "c/src")
               for path in (REPOSITORY / folder).rglob("*.h")]
    others = ["c/sources.txt", "c/hardening.txt", "proto/syncblob.pb-c.c",
              "proto/syncblob.pb-c.h", "LICENSE-MIT", "LICENSE-APACHE", "README.md"]
    for name in [*listed, *headers, *others]:
        check((crate / name).is_file(), name, "is not packed")
        check(not (crate / name).is_symlink(), name, "is packed as a link")
    size = packed()["syncblob-sys"].stat().st_size
    check(size < 1 << 20, "the package has", size, "bytes")


def test_packed_sys_alone():
    """The unpacked package passes its own tests in an empty folder."""
    options, environment = offline()
    crate = unpack("syncblob-sys", fresh("alone"))
    (crate / "Cargo.lock").unlink()  # would ask for more than the vendored versions
    said = run("cargo", *options, "test", "--offline", cwd=crate, **environment)
    check("checked_in_bindings_are_what_bindgen_makes_of_the_headers ... ok" in said, said)


def test_packed():
    options, environment = offline()
    run_consumer(consumer("by-version", '"0.1"', '"0.1"', lock=False), *options, **environment)


def test_oldest_rust():
    if folder := os.environ.get("SYNCBLOB_OLDEST_RUST"):
        said = run("cargo", "check", "--offline", "--verbose", cwd=consumer_by_path(),
                   target=OLDEST_RUST, PATH=f"{folder}:{os.environ['PATH']}")
        check("syncblob" in said, said)
        return
    toolchains = subprocess.run(["rustup", "toolchain", "list"], capture_output=True, text=True,
                                check=False).stdout if shutil.which("rustup") else ""
    if not re.search(rf"^{re.escape(OLDEST_RUST)}[.-]", toolchains, re.M):
        print(f"        skipped: rustup has no Rust {OLDEST_RUST} (rustup toolchain install "
              f"{OLDEST_RUST}); the resolver and clippy's incompatible_msrv still hold")
        return
    run("cargo", f"+{OLDEST_RUST}", "check", "--offline", cwd=consumer_by_path(),
        target=OLDEST_RUST)


# --- features and variables ----------------------------------------------------------


def libraries_of_the_sys_test(*options, **environment):
    said = run("cargo", "test", "--offline", "--locked", "--test", "bindings", *options, cwd=SYS,
               **environment)
    for name in ("the_feature_openblas_is_what_the_library_says", "the_library_computes"):
        check(f"{name} ... ok" in said, said)
    program = re.search(r"Running tests/bindings.rs \((.*)\)", said)[1]
    return run("readelf", "-d", SYS / program, cwd=work())


def test_nothing_but_a_compiler():
    """By default no other library is looked for, and none is linked."""
    check("openblas" not in libraries_of_the_sys_test(PKG_CONFIG=NOWHERE), "OpenBLAS is linked")
    run_consumer(consumer_by_path(), PKG_CONFIG=NOWHERE)
    program = BUILT / "debug/debug/consumer"
    needed = set(re.findall(r"\(NEEDED\).*\[(\S+?)\.so", run("readelf", "-d", program, cwd=work())))
    check(needed <= {"libc", "libm", "libgcc_s", "ld-linux-x86-64", "ld-linux-aarch64"}, needed)


def test_with_other_libraries():
    with_both = libraries_of_the_sys_test("--features", "openblas,protobuf-c")
    check("openblas" in with_both and "libprotobuf-c" in with_both, with_both)


def test_bindings_made_while_building():
    said = run("cargo", "test", "--offline", "--locked", "--features", "buildtime_bindgen",
               "--test", "bindings", cwd=SYS)
    check("bindings_made_while_building_are_the_checked_in_ones ... ok" in said, said)


def test_installed_shared_library():
    installed = prefix("shared")
    run_consumer(consumer_by_path(), SYNCBLOB_NO_VENDOR=1, **pkg_config_of(installed))
    needed = run("readelf", "-d", BUILT / "debug/debug/consumer", cwd=work())
    check("libsyncblob.so.0.1" in needed, needed)


def test_installed_static_library():
    run_consumer(consumer_by_path(), SYNCBLOB_NO_VENDOR=1, **pkg_config_of(prefix("static")))


def test_feature_system():
    said = run("cargo", "test", "--offline", "--locked", "--features", "system", cwd=SYS,
               **pkg_config_of(prefix("shared")))
    check("the_linked_library_is_of_the_version_of_the_headers ... ok" in said, said)


def test_installed_in_a_folder_with_a_space():
    moved = work() / "moved away"
    shutil.copytree(prefix("shared"), moved, symlinks=True)
    run("cargo", "check", "--offline", "--locked", "--features", "system", cwd=SYS,
        **pkg_config_of(moved))


def test_documentation_needs_no_tools():
    none = dict.fromkeys(("CC", "AR", "PKG_CONFIG", "LIBCLANG_PATH"), NOWHERE)
    manifest = tomllib.loads((REPOSITORY / "bindings/syncblob/Cargo.toml").read_text())
    features = manifest["package"]["metadata"]["docs"]["rs"]["features"]
    missing = set(manifest["features"]) - {"default", "mpi"} ^ set(features)
    check(not missing, f"{missing}: the documentation has every feature but mpi")
    features = [f"syncblob/{feature}" for feature in features] + ["syncblob-sys/buildtime_bindgen"]
    run("cargo", "doc", "--offline", "--locked", "--no-deps", "--features", ",".join(features),
        "-p", "syncblob-sys", "-p", "syncblob", cwd=REPOSITORY, target="no-libclang",
        DOCS_RS=1, RUSTC_BOOTSTRAP=1, RUSTDOCFLAGS="-D warnings --cfg docsrs", **none)
    page = (BUILT / "no-libclang/doc/syncblob/struct.Safetensors.html").read_text()
    check("Available on <strong>crate feature <code>safetensors</code>" in page,
          "the documentation does not say which feature an item needs")


# --- messages --------------------------------------------------------------------------


def expect_message(message, crate=SYS, options=(), **environment):
    """Building the crate ends with this one line."""
    said = run("cargo", "check", "--offline", *options, cwd=crate, status=1,
               **environment)
    errors = [line for line in said.splitlines() if line.startswith("error: syncblob-sys@")]
    check(len(errors) == 1 and re.search(message, errors[0]), f"not {message!r} but\n{said}")
    check("panicked" not in said, said)


def test_message_without_tools():
    expect_message("pkg-config is missing: install pkg-config", PKG_CONFIG=NOWHERE,
                   options=("--features", "openblas"))
    expect_message("no C compiler was found .*: install gcc or clang, or set CC", CC=NOWHERE)
    expect_message("bindgen found no libclang: install libclang-dev, set LIBCLANG_PATH, or drop",
                   options=("--features", "buildtime_bindgen"), target="no-libclang",
                   LIBCLANG_PATH=NOWHERE)


def test_message_without_libraries():
    packer, blas = ("--features", "protobuf-c"), ("--features", "openblas")
    missing = "libprotobuf-c 1.3 or newer was not found: install libprotobuf-c-dev, or drop"
    expect_message(missing, options=packer, **pkg_config_without("libprotobuf-c"))
    expect_message(missing, options=packer, PKG_CONFIG_PATH=described("libprotobuf-c", "1.2.1"))
    expect_message("openblas 0.3 .* libopenblas-serial-dev .*, or drop the feature `openblas`",
                   options=blas, **pkg_config_without("openblas"))
    expect_message("OPENBLAS_NO_PKG_CONFIG is set, but .*: unset it", options=blas,
                   OPENBLAS_NO_PKG_CONFIG=1)


def test_message_without_an_installed_library_that_fits():
    forced = {"SYNCBLOB_NO_VENDOR": 1}
    expect_message("no installed syncblob was found: install it, set PKG_CONFIG_PATH", **forced,
                   PKG_CONFIG_LIBDIR=fresh("nothing"))
    for version in ("0.0.9", "0.2.0"):
        expect_message(f"installed syncblob is {version}, but 0.1 or newer, below 0.2, is needed",
                       **forced, PKG_CONFIG_PATH=described("syncblob", version))
    expect_message("not syncblob/syncblob.h: install syncblob's headers", **forced,
                   PKG_CONFIG_PATH=described("syncblob", "0.1.5", "-I/usr/include"))
    expect_message("no installed syncblob was found", options=("--features", "system"),
                   PKG_CONFIG_LIBDIR=fresh("nothing-either"))


def test_message_on_other_platforms():
    for target, name in (("aarch64-pc-windows-msvc", "windows on aarch64"),
                         ("riscv64gc-unknown-linux-gnu", "linux on riscv64")):
        expect_message(f"for Windows on x86_64, not for {name}$", options=("--target", target))
    expect_message("compiled by MinGW, so that syncblob needs Rust's target x86_64-pc-windows-gnu$",
                   options=("--target", "x86_64-pc-windows-msvc"))
    other = "x86_64" if os.uname().machine == "aarch64" else "aarch64"
    expect_message(f"pkg-config is not set up for {other}-unknown-linux-gnu: set PKG_CONFIG_SYS",
                   options=("--features", "openblas", "--target", f"{other}-unknown-linux-gnu"))


def checkout_without_links(name):
    """A repository as git leaves it where it makes no links: files that hold the targets."""
    root = fresh(name)
    crate = root / "bindings/syncblob-sys"
    for path in SYS.iterdir():
        if path.is_symlink():
            write(crate / path.name, os.readlink(path))
        elif path.is_dir():
            shutil.copytree(path, crate / path.name)
        else:
            write(crate / path.name, path.read_text())
    for name in {path.name for path in SYS.iterdir() if path.is_symlink() and path.is_dir()}:
        (root / name).symlink_to(REPOSITORY / name)
    shutil.copy(REPOSITORY / "Cargo.toml", root)
    shutil.copy(REPOSITORY / "Cargo.lock", root)
    return crate


def test_message_without_symbolic_links():
    """Such a checkout builds, with a warning; what it packs says what is wrong."""
    crate = checkout_without_links("no-links")
    said = run("cargo", "check", "--offline", cwd=crate)
    check("is no symbolic link, so that `cargo package` would pack no C sources" in said, said)
    said = run("cargo", "package", "--offline", "--allow-dirty", cwd=crate, target="no-links",
               status=1)
    check("the C sources are not in" in said, said)


def test_message_when_a_source_is_missing():
    crate = unpack("syncblob-sys", fresh("not-whole"))
    write(crate / "Cargo.toml", (crate / "Cargo.toml").read_text() + "\n[workspace]\n")
    (crate / "c/src/blob/shape.c").unlink()
    expect_message("the crate is not whole: .*/c/src/blob/shape.c is missing", crate=crate)


# --- when it is built anew ----------------------------------------------------------------


@functools.cache
def stub_compiler():
    """Compiles to nothing, at once: whether it is asked again is all that counts."""
    script = fresh("stub") / "cc"
    write(script, """#!/bin/sh
case " $* " in *" -c "*) ;; *) exec cc "$@" ;; esac
while [ "$1" != -o ]; do shift; done
: >"$2"
""")
    script.chmod(0o755)
    return script


def run_stubbed(crate, *options, **environment):
    return run("cargo", "check", "--offline", "--verbose", *options, cwd=crate,
               **{"CC": stub_compiler(), "target": "stub", **environment})


def is_built_anew(crate, *options, **environment):
    said = run_stubbed(crate, *options, **environment)
    check(("Fresh syncblob-sys" in said) != ("Dirty syncblob-sys" in said), said)
    return "Dirty syncblob-sys" in said


def touch(path):
    os.utime(path)


WITH_BOTH = ("--features", "openblas,protobuf-c")


def test_built_anew_for_every_file_that_is_read():
    crate = unpack("syncblob-sys", fresh("anew"))
    write(crate / "Cargo.toml", (crate / "Cargo.toml").read_text() + "\n[workspace]\n")
    pc = described("libprotobuf-c", "1.9")
    real = run("pkg-config", "--variable=pcfiledir", "libprotobuf-c", cwd=work()).strip()
    shutil.copy(Path(real) / "libprotobuf-c.pc", pc)
    environment = {"PKG_CONFIG_PATH": pc}
    run_stubbed(crate, *WITH_BOTH, **environment)
    read = ["c/sources.txt", "c/hardening.txt", "c/include/syncblob/blob.h",
            "c/src/blob/shape.c", "c/src/blob/blob.h", "proto/syncblob.pb-c.c",
            "proto/syncblob.pb-c.h"]
    files = [*crate.glob("build/*.rs"), *(crate / name for name in read), pc / "libprotobuf-c.pc"]
    for path in files:
        check(not is_built_anew(crate, *WITH_BOTH, **environment), "built anew for nothing before",
              path)
        touch(path)
        check(is_built_anew(crate, *WITH_BOTH, **environment), "not built anew for", path)
    write(crate / "c/src/blob/new.h", "")
    check(is_built_anew(crate, *WITH_BOTH, **environment), "not built anew for a new header")


def test_built_anew_for_every_variable_that_is_read():
    values = {"CFLAGS": "-g1", "CC": "gcc", "AR": "ar", "DOCS_RS": 1,
              "PKG_CONFIG_PATH": fresh("empty"), "PKG_CONFIG": "pkg-config",
              "OPENBLAS_DYNAMIC": 1, "SYNCBLOB_NO_VENDOR": 0}
    for name, value in values.items():
        run_stubbed(SYS, *WITH_BOTH)
        check(is_built_anew(SYS, *WITH_BOTH, **{name: value}), "not built anew for", name)
    options = ("--features", "buildtime_bindgen")  # bindgen is built where the other tests do
    run_stubbed(SYS, *options, target="debug")
    check(is_built_anew(SYS, *options, target="debug", CLANG_PATH="clang"),
          "not built anew for CLANG_PATH")


def test_built_anew_for_another_installed_library():
    installed = prefix("shared")
    environment = {"SYNCBLOB_NO_VENDOR": 1, **pkg_config_of(installed)}
    run_stubbed(SYS, **environment)
    for path in (installed / "lib/pkgconfig/syncblob.pc", installed / "include/syncblob/blob.h"):
        check(not is_built_anew(SYS, **environment), "built anew for nothing before", path)
        touch(path)
        check(is_built_anew(SYS, **environment), "not built anew for", path)


def main():
    run("cargo", "fetch", "--locked", cwd=REPOSITORY)
    return claims.run_tests(globals(), sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
