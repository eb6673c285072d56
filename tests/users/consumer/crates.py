#!/usr/bin/env python3
"""Tests the Rust crates as users get them: crates.py [TEST...]

Builds and runs the crate rust/ in a fresh folder outside the repository, with the oldest supported Rust.

Needs libclang and the library's build dependencies. Downloads dependencies once. Variables (defaults):
CARGO_TARGET_DIR, the folder for builds (target); SYNCBLOB_TEST_DATA, Caffe files (../shared/data);
SYNCBLOB_OLDEST_RUST, a folder with the programs of the oldest supported Rust (rustup's).
"""
import functools
import hashlib
import json
import os
import re
import shutil
import sys
import tarfile
from pathlib import Path

import claims
from claims import check, fresh, work

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
SYS = REPOSITORY / "bindings/syncblob-sys"
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")).resolve() / "crates"
DATA = Path(os.environ.get("SYNCBLOB_TEST_DATA", REPOSITORY / "../shared/data")).resolve()
NOWHERE = Path("/nonexistent")
OFFLINE = ("--offline", "--locked")

# Omits variables that change where the crates find the library.
ENVIRONMENT = {
    name: value for name, value in os.environ.items()
    if not re.match(r"SYNCBLOB_|DEP_|CARGO_|PKG_CONFIG|DOCS_RS|RUSTFLAGS|(CC|CFLAGS|AR)$", name)
    or name in ("CARGO_HOME", "CARGO_NET_OFFLINE")
}


def cargo(*options, cwd=SYS, target="debug", status=0, **environment):
    environment = {"CARGO_TARGET_DIR": BUILT / target, **environment}
    return claims.run("cargo", *options, cwd=cwd, status=status, environment=ENVIRONMENT | environment)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def consumer(name, syncblob, syncblob_sys, lock=True):
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
        cargo("fetch", cwd=crate)
    return crate


@functools.cache
def consumer_by_path():
    return consumer("by-path", *(f'{{ path = "{REPOSITORY}/bindings/{name}" }}'
                                 for name in ("syncblob", "syncblob-sys")))


def run_consumer(crate, *options, **environment):
    """Returns the libraries that the crate needs at run time."""
    models = sorted(DATA.glob("*.caffemodel"))
    printed = cargo(*options, "run", "--offline", "--", *models, cwd=crate, **environment)
    for name in ["made.caffemodel: 1", *(f"{model.name}: [1-9]\\d*" for model in models)]:
        check(re.search(rf"{name} layers, sum of \|weights\| [1-9]", printed), printed)
    return claims.run("readelf", "-d", BUILT / "debug/debug/consumer")


@functools.cache
def packed():
    cargo("package", "--locked", "--no-verify", "--allow-dirty", "-p", "syncblob-sys", "-p", "syncblob",
          cwd=REPOSITORY)
    return {re.match(r"(.*)-\d+\.", path.name)[1]: path
            for path in (BUILT / "debug/package").glob("*.crate")}


def unpack(name, into):
    with tarfile.open(packed()[name]) as archive:
        archive.extractall(into)
    return into / packed()[name].name[: -len(".crate")]


@functools.cache
def vendored():
    """A folder with every dependency and our packed crates replaces cargo's registry."""
    registry = work() / "vendored"
    printed = cargo("vendor", "--locked", "--versioned-dirs", "--sync", consumer_by_path() / "Cargo.toml",
                    registry, cwd=unpack("syncblob-sys", fresh("to-vendor")))
    for name, path in packed().items():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        write(unpack(name, registry) / ".cargo-checksum.json",
              json.dumps({"files": {}, "package": digest}))
    config = work() / "registry.toml"
    write(config, printed[printed.index("[source"):])
    return ("--config", config), {"CARGO_HOME": fresh("empty-home")}


@functools.cache
def installed(kind):
    build, prefix = BUILT / "c", work() / f"installed {kind}"
    claims.run("cmake", "-G", "Ninja", "-S", REPOSITORY, "-B", build, "-DCMAKE_BUILD_TYPE=Debug",
               "-DSYNCBLOB_BUILD_TESTS=OFF", "-DCMAKE_INSTALL_LIBDIR=lib")
    claims.run("cmake", "--build", build)
    claims.run("cmake", "--install", build, "--prefix", prefix)
    if kind == "static":
        for shared in (prefix / "lib").glob("libsyncblob.so*"):
            shared.unlink()
    return {"PKG_CONFIG_PATH": prefix / "lib/pkgconfig", "LD_LIBRARY_PATH": prefix / "lib"}


def described(name, version, includes=""):
    folder = fresh(f"{name}-{version}")
    write(folder / f"{name}.pc", f"prefix={folder}\nName: {name}\nDescription: none\n"
                                 f"Version: {version}\nLibs: -l{name}\nCflags: {includes}\n")
    return folder


def pkg_config_without(name):
    script = fresh(f"without-{name}") / "pkg-config"
    write(script, f'#!/bin/sh\ncase " $* " in *" {name} "*) exit 1 ;; esac\nexec pkg-config "$@"\n')
    script.chmod(0o755)
    return script


def test_packages_are_whole():
    """The small size shows that the package has few other files."""
    crate = unpack("syncblob-sys", fresh("whole"))
    listed = (REPOSITORY / "c/sources.txt").read_text().split()
    headers = [path.relative_to(REPOSITORY) for folder in ("c/include", "c/src")
               for path in (REPOSITORY / folder).rglob("*.h")]
    for name in [*listed, *headers, "LICENSE-MIT", "LICENSE-APACHE", "README.md"]:
        check((crate / name).is_file() and not (crate / name).is_symlink(), name, "is not packed")
    size = packed()["syncblob-sys"].stat().st_size
    check(size < 1 << 20, "the package has", size, "bytes")


def test_packed():
    options, environment = vendored()
    run_consumer(consumer("by-version", '"0.1"', '"0.1"', lock=False), *options, **environment)
    crate = unpack("syncblob-sys", fresh("alone"))
    (crate / "Cargo.lock").unlink()  # Cargo.lock may require versions that are not vendored
    printed = cargo(*options, "test", "--offline", cwd=crate, **environment)
    check("checked_in_bindings_are_what_bindgen_makes_of_the_headers ... ok" in printed, printed)


def test_only_a_compiler_is_needed():
    needed = run_consumer(consumer_by_path(), PKG_CONFIG=NOWHERE)
    found = set(re.findall(r"\(NEEDED\).*\[(\S+?)\.so", needed))
    check(found <= {"libc", "libm", "libgcc_s", "ld-linux-x86-64", "ld-linux-aarch64"}, found)


def test_installed_libraries():
    for kind in ("shared", "static"):
        needed = run_consumer(consumer_by_path(), SYNCBLOB_NO_VENDOR=1, **installed(kind))
        check(("libsyncblob.so.0.1" in needed) == (kind == "shared"), needed)
    printed = cargo("test", *OFFLINE, "--features", "system", **installed("shared"))
    check("the_linked_library_is_of_the_version_of_the_headers ... ok" in printed, printed)


def test_features():
    for features, name in (("openblas,protobuf-c", "the_features_match_those_of_the_library"),
                           ("buildtime_bindgen", "bindings_made_while_building_are_the_checked_in_ones")):
        printed = cargo("test", *OFFLINE, "--test", "bindings", "--features", features)
        check(f"{name} ... ok" in printed, printed)


def test_oldest_rust():
    folder = os.environ.get("SYNCBLOB_OLDEST_RUST")
    if not folder:
        print("        skipped: SYNCBLOB_OLDEST_RUST is not set")
        return
    cargo("check", "--offline", cwd=consumer_by_path(), target="oldest",
          PATH=f"{folder}:{os.environ['PATH']}")


def test_documentation_needs_no_tools():
    none = dict.fromkeys(("CC", "AR", "PKG_CONFIG", "LIBCLANG_PATH"), NOWHERE)
    metadata = json.loads(cargo("metadata", "--offline", "--no-deps", "--format-version=1",
                                cwd=REPOSITORY))
    crate = next(package for package in metadata["packages"] if package["name"] == "syncblob")
    features = crate["metadata"]["docs"]["rs"]["features"]
    missing = set(crate["features"]) - {"default", "mpi"} ^ set(features)
    check(not missing, f"{missing}: the documentation has every feature but mpi")
    features = [f"syncblob/{feature}" for feature in features] + ["syncblob-sys/buildtime_bindgen"]
    cargo("doc", *OFFLINE, "--no-deps", "--features", ",".join(features), "-p", "syncblob-sys",
          "-p", "syncblob", cwd=REPOSITORY, target="no-libclang", DOCS_RS=1, RUSTC_BOOTSTRAP=1,
          RUSTDOCFLAGS="-D warnings --cfg docsrs", **none)
    page = (BUILT / "no-libclang/doc/syncblob/struct.Safetensors.html").read_text()
    check("Available on <strong>crate feature <code>safetensors</code>" in page,
          "the documentation lacks the feature that an item needs")


def expect_message(message, *options, crate=SYS, target="debug", **environment):
    printed = cargo("check", "--offline", *options, cwd=crate, target=target, status=1, **environment)
    errors = [line for line in printed.splitlines() if line.startswith("error: syncblob-sys@")]
    check(len(errors) == 1 and re.search(message, errors[0]), f"not {message!r} but\n{printed}")
    check("panicked" not in printed, printed)


def test_messages():
    blas, packer = ("--features", "openblas"), ("--features", "protobuf-c")
    forced = {"SYNCBLOB_NO_VENDOR": 1}
    other = "x86_64" if os.uname().machine == "aarch64" else "aarch64"
    no_packer = "libprotobuf-c 1.3 or newer was not found: install libprotobuf-c-dev, or drop"
    no_library = "no installed syncblob was found: install it, set PKG_CONFIG_PATH"
    rows = [
        ("pkg-config is missing: install pkg-config", blas, {"PKG_CONFIG": NOWHERE}),
        ("no C compiler was found .*: install gcc or clang, or set CC", (), {"CC": NOWHERE}),
        ("bindgen found no libclang: install libclang-dev, set LIBCLANG_PATH, or drop",
         ("--features", "buildtime_bindgen"), {"LIBCLANG_PATH": NOWHERE, "target": "no-libclang"}),
        (no_packer, packer, {"PKG_CONFIG": pkg_config_without("libprotobuf-c")}),
        (no_packer, packer, {"PKG_CONFIG_PATH": described("libprotobuf-c", "1.2.1")}),
        ("openblas 0.3 .* libopenblas-serial-dev .*, or drop the feature `openblas`", blas,
         {"PKG_CONFIG": pkg_config_without("openblas")}),
        ("OPENBLAS_NO_PKG_CONFIG is set, but .*: unset it", blas, {"OPENBLAS_NO_PKG_CONFIG": 1}),
        (no_library, (), {"PKG_CONFIG_LIBDIR": fresh("nothing"), **forced}),
        (no_library, ("--features", "system"), {"PKG_CONFIG_LIBDIR": fresh("nothing")}),
        ("not syncblob/syncblob.h: install syncblob's headers", (),
         {"PKG_CONFIG_PATH": described("syncblob", "0.1.5", "-I/usr/include"), **forced}),
        *((f"installed syncblob is {version}, but 0.1 or newer, below 0.2, is needed", (),
           {"PKG_CONFIG_PATH": described("syncblob", version), **forced})
          for version in ("0.0.9", "0.2.0")),
        *((f"for Windows on x86_64, not for {name}$", ("--target", target), {})
          for target, name in (("aarch64-pc-windows-msvc", "windows on aarch64"),
                               ("riscv64gc-unknown-linux-gnu", "linux on riscv64"))),
        ("compiled by MinGW, so that syncblob needs Rust's target x86_64-pc-windows-gnu$",
         ("--target", "x86_64-pc-windows-msvc"), {}),
        (f"pkg-config is not set up for {other}-unknown-linux-gnu: set PKG_CONFIG_SYS",
         (*blas, "--target", f"{other}-unknown-linux-gnu"), {}),
    ]
    for message, options, environment in rows:
        expect_message(message, *options, **environment)
    crate = unpack("syncblob-sys", fresh("not-whole"))
    write(crate / "Cargo.toml", (crate / "Cargo.toml").read_text() + "\n[workspace]\n")
    (crate / "c/src/blob/shape.c").unlink()
    expect_message("the crate is incomplete: .*/c/src/blob/shape.c is missing", crate=crate)


def test_checkout_without_symbolic_links():
    """On a system without symbolic links, Git creates files that contain the links' targets."""
    root = fresh("no-links")
    crate = root / "bindings/syncblob-sys"
    shutil.copytree(SYS, crate, symlinks=True)
    for link in [path for path in crate.iterdir() if path.is_symlink()]:
        target = os.readlink(link)
        link.unlink()
        write(link, target)
        if (REPOSITORY / link.name).is_dir():
            (root / link.name).symlink_to(REPOSITORY / link.name)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(REPOSITORY / name, root)
    printed = cargo("check", "--offline", cwd=crate)
    check("is not a symbolic link, so that `cargo package` would pack no" in printed, printed)
    printed = cargo("package", "--offline", "--allow-dirty", cwd=crate, target="no-links", status=1)
    check("the C sources are not in" in printed, printed)


def test_built_again():
    def named(crate, target, **environment):
        cargo("check", "--offline", "--features", "openblas,protobuf-c", cwd=crate, target=target,
              **environment)
        outputs = (BUILT / target / "debug/build").glob("syncblob-sys-*/output")
        newest = max(outputs, key=lambda path: path.stat().st_mtime)
        return re.findall(r"^cargo::?rerun-if-(?:env-)?changed=(.*)$", newest.read_text(), re.MULTILINE)

    crate = unpack("syncblob-sys", fresh("again"))
    write(crate / "Cargo.toml", (crate / "Cargo.toml").read_text() + "\n[workspace]\n")
    found = named(crate, "again")
    covered = [(crate / name).resolve() for name in found]
    for path in [*crate.glob("build/*.rs"), *crate.glob("c/*.txt"), *crate.glob("c/include/**/*.h"),
                 *crate.glob("c/src/**/*.[ch]"), *crate.glob("proto/*.[ch]")]:
        check(any(path.is_relative_to(folder) for folder in covered), path, "is not named")
    for name in ("CFLAGS", "CC", "AR", "DOCS_RS", "PKG_CONFIG_PATH", "PKG_CONFIG", "OPENBLAS_DYNAMIC",
                 "SYNCBLOB_NO_VENDOR"):
        check(name in found, name, "is not named")
    variables = installed("shared")
    found = named(SYS, "again", SYNCBLOB_NO_VENDOR=1, **variables)
    prefix = variables["PKG_CONFIG_PATH"].parents[1]
    covered = [Path(os.path.realpath(name)) for name in found if name.startswith("/")]
    for path in (prefix / "lib/pkgconfig/syncblob.pc", prefix / "include/syncblob/blob.h"):
        check(any(path.is_relative_to(folder) for folder in covered), path, "is not named")


def main():
    cargo("fetch", "--locked", cwd=REPOSITORY)
    return claims.run_tests(globals(), sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
