#!/usr/bin/env bash
# Builds the command as one static program without run-time dependencies: static.sh OUT [CRATE].
# CRATE is the folder of another crate; the crate and its program must have the folder's name.
#
# Needs musl's C library (musl-tools) and the sources of Rust's standard library (rustup component
# add rust-src). Builds in the folder static of CARGO_TARGET_DIR (target).
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

# Rust requires libunwind, whose functions gcc's unwinder also has. The unwinder refers only weakly
# to the thread functions, and assumes that either all or none are linked. EXTERN links all of them.
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
