#!/usr/bin/env bash
# The command as one static program that needs nothing where it runs: static.sh OUT [CRATE]
# CRATE: another folder, whose crate and program have its name.
#
# By musl's C library (musl-tools) and Rust's standard library, which is built for it from its
# sources (rustup component add rust-src), so that no target has to be installed; without OpenBLAS.
# protobuf-c's static library and Random123's headers are those of the machine: the first takes
# nothing but malloc, free and what works on bytes and texts from the C library, the second nothing.
# Builds are kept in CARGO_TARGET_DIR (target), those of this kind in a folder of their own.
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

# Of the machine's headers musl may see these alone.
rm -rf "$tools"
mkdir -p "$tools/include" "$tools/lib"
for header in Random123/philox.h protobuf-c/protobuf-c.h; do
    found=$(echo "#include <$header>" | gcc -M -x c - | grep -o "/[^ ]*/$header" | sed -n 1p)
    ln -s "$(dirname "$found")" "$tools/include"
done
cp "$(gcc -print-file-name=libprotobuf-c.a)" "$tools/lib"
cat >"$tools/libprotobuf-c.pc" <<END
Name: libprotobuf-c
Description: protobuf-c, to be linked statically
Version: $(pkg-config --modversion libprotobuf-c)
Libs: -L$tools/lib -lprotobuf-c
Cflags: -I$tools/include
END

# Rust asks for libunwind; gcc's unwinder has the same functions. It takes threads to be there when
# one symbol of theirs is, and names the others weakly, which brings no member of an archive in.
gcc -O2 -Wall -Wextra -Werror -fno-stack-protector -c "$here/unwind.c" -o "$tools/unwind.o"
ar rc "$tools/lib/libsyncblob_unwind.a" "$tools/unwind.o"
cat >"$tools/lib/libunwind.a" <<'END'
EXTERN(pthread_once pthread_mutex_lock pthread_mutex_unlock)
EXTERN(pthread_key_create pthread_getspecific pthread_setspecific)
INPUT(-lgcc_eh -lsyncblob_unwind)
END

name=${target//-/_}
export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$builds
export "CC_$name=musl-gcc" "CFLAGS_$name=-I$tools/include" "CARGO_TARGET_${name^^}_LINKER=musl-gcc"
export PKG_CONFIG_ALLOW_CROSS=1 PKG_CONFIG_LIBDIR=$tools
cargo rustc --manifest-path "$crate/Cargo.toml" --bin "$program" --release --locked \
    --no-default-features --target "$target" -Zbuild-std=std,panic_unwind -- \
    -Clink-self-contained=no -Crelocation-model=static -Lnative="$tools/lib" -Clink-arg=-lgcc
mkdir -p "$(dirname "$out")"
strip -o "$out" "$builds/$target/release/$program"
