#!/usr/bin/env bash
# The command as one static program that needs nothing where it runs: static.sh OUT [CRATE]
# CRATE: another folder, whose crate and program have its name.
#
# By musl's C library (musl-tools) and Rust's standard library, which is built for it from its
# sources (rustup component add rust-src), so that no target has to be installed; nothing else of the
# machine's is in it. Builds are kept in CARGO_TARGET_DIR (target), those of this kind in a folder of
# their own.
set -euo pipefail
out=$(readlink -m "$1")
here=$(dirname "$(readlink -f "$0")")
crate=$(readlink -f "${2:-$here}") program=syncblob
[ $# = 1 ] || program=$(basename "$crate")
builds=$(readlink -m "${CARGO_TARGET_DIR:-$here/../../target}")/static
target=$(uname -m)-unknown-linux-musl
tools=$builds/tools

[ -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ] || {
    echo 'static.sh: the sources of the standard library are missing: rustup component add rust-src' >&2
    exit 1
}

# Rust asks for libunwind; gcc's unwinder has the same functions. It takes threads to be there when
# one symbol of theirs is, and names the others weakly, which brings no member of an archive in.
rm -rf "$tools"
mkdir -p "$tools"
gcc -O2 -Wall -Wextra -Werror -fno-stack-protector -c "$here/unwind.c" -o "$tools/unwind.o"
ar rc "$tools/libsyncblob_unwind.a" "$tools/unwind.o"
cat >"$tools/libunwind.a" <<'END'
EXTERN(pthread_once pthread_mutex_lock pthread_mutex_unlock)
EXTERN(pthread_key_create pthread_getspecific pthread_setspecific)
INPUT(-lgcc_eh -lsyncblob_unwind)
END

name=${target//-/_}
export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$builds
export "CC_$name=musl-gcc" "CARGO_TARGET_${name^^}_LINKER=musl-gcc"
cargo rustc --manifest-path "$crate/Cargo.toml" --bin "$program" --release --locked \
    --target "$target" -Zbuild-std=std,panic_unwind -- \
    -Clink-self-contained=no -Crelocation-model=static -Lnative="$tools" -Clink-arg=-lgcc
mkdir -p "$(dirname "$out")"
strip -o "$out" "$builds/$target/release/$program"
