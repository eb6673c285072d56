#!/usr/bin/env bash
# Tests the Rust crates and the C library under a sanitizer:
#
# sanitize.sh address  every test of the workspace under AddressSanitizer and
#                      LeakSanitizer, except the tests named below
# sanitize.sh thread   the tests of syncblob, whose threads use every type that
#                      is Send or Sync, under ThreadSanitizer
# sanitize.sh fuzz [SECONDS [LIBFUZZER-OPTION...] | FILE]
#                      random calls of syncblob for SECONDS (60), or the calls
#                      that FILE describes, under AddressSanitizer: see
#                      syncblob/fuzz/README.md
# sanitize.sh fuzzers CRATE FOLDER
#                      builds the fuzzers of CRATE/fuzz as FOLDER/fuzz.NAME
#
# Needs clang and its runtimes (libclang-rt-14-dev). Rust code is linked with
# clang's sanitizers, too. RUSTC_BOOTSTRAP makes a stable rustc accept the
# options, so any rustc works. CARGO_TARGET_DIR (target) gets a separate folder
# for each kind of build.
set -euo pipefail
bindings=$(dirname "$(readlink -f "$0")")
builds=$(readlink -m "${CARGO_TARGET_DIR:-$bindings/../target}")/sanitize

# Makes rustc and clang instrument the code. Because the target is explicit,
# cargo does not instrument build scripts and macros.
instrument() { # SANITIZER RUSTC-OPTIONS CLANG-OPTIONS
    target=$(rustc -vV | sed -n 's/^host: //p')
    export RUSTC_BOOTSTRAP=1 RUSTDOCFLAGS
    local name=${target//-/_}
    RUSTDOCFLAGS="-Zsanitizer=$1 -Zexternal-clangrt -Clinker=clang -Clink-arg=-fsanitize=$1 $2"
    export "CARGO_TARGET_${name^^}_RUSTFLAGS=$RUSTDOCFLAGS" "CC_$name=clang"
    export "CFLAGS_$name=-fsanitize=$1 -fno-omit-frame-pointer -g $3"
}

run_cargo() { # KIND COMMAND OPTION...
    local kind=$1 command=$2
    shift 2
    CARGO_TARGET_DIR=$builds/$kind cargo "$command" --locked --target "$target" "$@"
}

address() {
    local workspace=(--manifest-path "$bindings/../Cargo.toml")
    instrument address '' ''
    echo 'skipped: compile_fail.rs, which runs no code, and orders.rs, which uses none of our code:'
    echo 'loom switches stacks, which AddressSanitizer reports as errors'
    run_cargo address test "${workspace[@]}" --workspace --exclude syncblob-tests \
        --features syncblob/testing,syncblob/comm
    run_cargo address test "${workspace[@]}" -p syncblob-tests --test against_ndarray \
        --test owners --test sharing_rule
}

thread() {
    local name options=
    if [ ! -e "$(rustc --print sysroot)/lib/rustlib/src/rust/library/std" ]; then
        echo 'skipped: this Rust is without the sources of its standard library, which has to'
        echo 'be instrumented as well (rustup component add rust-src; apt install rust-web-src)'
        return
    fi
    # rustc calls these functions by names that clang's runtime has only from
    # version 16 on.
    if [ "$(clang -dumpversion | cut -d. -f1)" -lt 16 ]; then
        for name in memcpy memmove memset; do
            options+=" -Clink-arg=-Wl,--defsym=__tsan_$name=$name"
        done
    fi
    instrument thread "$options" ''
    run_cargo thread test --manifest-path "$bindings/../Cargo.toml" -Zbuild-std -p syncblob \
        --tests --features half,ndarray,rayon,safetensors,serde,testing,comm
}

instrument_fuzzers() {
    local option coverage=(-Cpasses=sancov-module)
    for option in level=4 inline-8bit-counters pc-table trace-compares; do
        coverage+=("-Cllvm-args=-sanitizer-coverage-$option")
    done
    instrument address "${coverage[*]} --cfg fuzzing -Cdebug-assertions" \
        '-O1 -fsanitize=fuzzer-no-link'
}

fuzz() { # [SECONDS [OPTION...] | FILE]
    local seconds=${1:-60} corpus=$builds/fuzz-corpus findings=$builds/fuzz-findings
    instrument_fuzzers
    local program=(run_cargo fuzz run --release --manifest-path "$bindings/syncblob/fuzz/Cargo.toml")
    if [ -f "$seconds" ]; then
        "${program[@]}" -- "$seconds"
        return
    fi
    [ $# = 0 ] || shift
    mkdir -p "$corpus" "$findings"
    "${program[@]}" -- "-artifact_prefix=$findings/" "-max_total_time=$seconds" "$@" "$corpus"
}

fuzzers() { # CRATE FOLDER
    local program
    instrument_fuzzers
    run_cargo fuzz build --quiet --release --manifest-path "$bindings/$1/fuzz/Cargo.toml"
    mkdir -p "$2"
    for program in "$bindings/$1"/fuzz/fuzz_targets/*.rs; do
        program=$(basename "$program" .rs)
        cp "$builds/fuzz/$target/release/$program" "$2/fuzz.$program"
    done
}

case ${1:-} in
address | thread | fuzz | fuzzers) "$@" ;;
*)
    echo 'usage: sanitize.sh address | thread | fuzz [SECONDS [LIBFUZZER-OPTION...] | FILE]' \
        '| fuzzers CRATE FOLDER' >&2
    exit 2
    ;;
esac
