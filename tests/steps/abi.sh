# shellcheck shell=bash
# The ABI and the hardening of the binaries; ./dev abi.

# shellcheck disable=SC2034 # read by need
abi_needs='
abigail-tools     | command -v abidw && command -v abidiff
binutils          | command -v readelf && command -v nm
'

# Today's library, with debug information; built by the tests before this.
build_abi_library() {
    cmake --preset release -B "$build/release" -DCMAKE_C_COMPILER=gcc
    cmake --build "$build/release" -j "$jobs" --target syncblob
}

compare_baseline() { # OPTION...
    python3 -B tests/project/abi/check_baseline.py --cc gcc --include c/include \
        --baseline c/abi/libsyncblob-x86_64.abi "$@" "$build/release/c/libsyncblob.so"
}

check_growth() {
    python3 -B tests/project/abi/growth/check_growth.py --cc gcc --jobs "$jobs" \
        "$build/release/c/libsyncblob.so"
}

# The command line, as cargo makes it.
check_hardened_program() {
    local blas
    cargo build --release --locked -p syncblob-cli
    blas=$(readelf -d "$build/release/c/libsyncblob.so" |
        sed -n 's/.*(RUNPATH).*\[\(.*\)\]/\1/p')
    python3 -B tests/project/abi/check_hardening.py --run-path "$blas" \
        --program "$CARGO_TARGET_DIR/release/syncblob"
}

# Optimised at link time; what is part of several objects has to be declared alike in all.
build_lto() { # COMPILER TARGET...
    local compiler=$1
    shift
    cmake --preset lto -B "$build/lto-$compiler" -DCMAKE_C_COMPILER="$compiler"
    cmake --build "$build/lto-$compiler" -j "$jobs" --target "$@"
}

abi_steps() {
    step 'the library for its ABI: build' build_abi_library
    step 'structs of older and newer callers' check_growth
    step 'hardening: the command line' check_hardened_program
    step 'checks of the ABI and of hardening' python3 -B tests/project/abi/selftest.py gcc
}

abi_full_steps() {
    step 'gcc LTO: build' build_lto gcc all
    [ "$step_status" != 0 ] || step 'gcc LTO: tests' run_ctest lto-gcc
    step 'clang LTO: build' build_lto clang syncblob behaviour.blob_shape behaviour.model_read \
        behaviour.filler
    [ "$step_status" != 0 ] ||
        step 'clang LTO: some of the tests' run_ctest lto-clang \
            -R '^(abi.(exports|hardening)|behaviour.(blob_shape|model_read|filler))$'
}

abi() { # [--update [--reviewed]]
    need "$build_needs" "$python_needs" "$abi_needs"
    case "$*" in
    '') ;;
    --update | '--update --reviewed')
        mkdir -p "$build/log"
        build_abi_library >"$build/log/abi.txt" 2>&1 ||
            { tail -n 40 "$build/log/abi.txt"; die 'the library does not build'; }
        compare_baseline "$@"
        return
        ;;
    *) die "abi takes --update and --reviewed, not $*" ;;
    esac
    step 'the library for its ABI: build' build_abi_library
    [ "$step_status" != 0 ] || step 'the ABI against its baseline' compare_baseline
    summary
}
