#!/usr/bin/env bash
# Installs the oldest Rust that the crates support, from this distribution's packages: rust.sh FOLDER [TARGET...]
# rustc and cargo are in FOLDER/bin. TARGETs are systems for which Rust's standard library is also built.
# Exit status 3: the machine's package sources lack this Rust.
set -euo pipefail

folder=$(readlink -m "$1")
shift
here=$(dirname "$(readlink -f "$0")")
oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$here/../../../Cargo.toml")

# rustc-web is the package of a newer Rust with which Debian builds browsers.
find_packages() {
    local kind version
    for kind in -web ''; do
        version=$(apt-cache madison "rustc$kind" | awk -v "of=$oldest." 'index($3, of) == 1 { print $3; exit }')
        [ -z "$version" ] || break
    done
    [ -n "$version" ] || { echo "no Rust $oldest in this machine's sources"; exit 3; }
    packages=("rustc$kind=$version" "cargo$kind=$version" "rust$kind-src=$version"
        "libstd-rust$kind-dev=$version" "libstd-rust$kind-$oldest=$version")
}

install_rust() {
    local deb program libraries
    rm -rf "$folder"
    mkdir -p "$folder/debs/partial" "$folder/bin"
    apt-get -qq install --download-only --no-install-recommends --allow-downgrades -y \
        -o "Dir::Cache::archives=$folder/debs" -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" \
        "${packages[@]}"
    for deb in "$folder"/debs/*.deb; do dpkg-deb -x "$deb" "$folder"; done
    rm -rf "$folder/debs"
    # Older packages have their libraries in /lib.
    libraries=$folder/usr/lib/$(uname -m)-linux-gnu:$folder/lib/$(uname -m)-linux-gnu
    for program in rustc rustdoc cargo; do
        cat >"$folder/bin/$program" <<END
#!/bin/sh
LD_LIBRARY_PATH=$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH} \\
    exec $folder/usr/bin/$program "\$@"
END
    done
    chmod +x "$folder"/bin/*
    "$folder/bin/rustc" --version
    "$folder/bin/cargo" --version
    echo "${packages[*]}" >"$folder/packages"
}

# For MinGW, Rust also links the objects rsbegin.o and rsend.o.
build_std() { # TARGET
    local work=$folder/std to=$folder/usr/lib/rustlib/$1/lib object
    local sources=$folder/usr/lib/rustlib/src/rust/library
    rm -rf "$work" "$to"
    mkdir -p "$work/src" "$to"
    printf '[package]\nname = "nothing"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n' >"$work/Cargo.toml"
    : >"$work/src/lib.rs"
    (cd "$work" && cargo build --quiet --release --target "$1" --target-dir "$work/target" \
        -Zbuild-std=std,panic_unwind,panic_abort,proc_macro,test)
    rm "$work/target/$1"/release/deps/libnothing-*
    cp "$work/target/$1"/release/deps/*.rlib "$to"
    if [[ $1 == *-windows-gnu ]]; then
        for object in rsbegin rsend; do
            rustc --target "$1" --emit=obj --crate-type lib -O -o "$to/$object.o" "$sources/rtstartup/$object.rs"
        done
    fi
    rm -rf "$work"
}

find_packages
[ "$(cat "$folder/packages" 2>/dev/null)" = "${packages[*]}" ] || install_rust
export PATH=$folder/bin:$PATH RUSTC_BOOTSTRAP=1
unset RUSTFLAGS CARGO_TARGET_DIR RUSTC_WORKSPACE_WRAPPER
for target in "$@"; do
    [ ! -e "$folder/std-$target" ] || continue
    build_std "$target"
    : >"$folder/std-$target"
done
