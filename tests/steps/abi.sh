# shellcheck shell=bash
# The ABI and the hardening of the binaries; ./dev abi.

# shellcheck disable=SC2034 # read by need
abi_needs='
abigail-tools     | command -v abidw && command -v abidiff
binutils          | command -v readelf && command -v nm
'

# Today's library, with debug information; built by the tests before this.
build_abi_library() {
    make_build release release $gcc $net -- syncblob
}

compare_baseline() { # OPTION...
    python3 -B tests/project/abi/check_baseline.py --cc gcc --include c/include \
        --baseline c/abi/libsyncblob-x86_64.abi "$@" "$build/release/c/libsyncblob.so"
}

check_growth() {
    python3 -B tests/project/abi/growth/check_growth.py --cc gcc --jobs "$jobs" \
        "$build/release/c/libsyncblob.so" "$build/release/c/comm/libsyncblob-comm.so"
}

check_copies() {
    python3 -B tests/project/abi/copies/check_copies.py --cc gcc --jobs "$jobs" "$build/release"
}

# The program, as cargo makes it.
check_hardened_program() { # PROFILE
    local blas
    blas=$(readelf -d "$build/release/c/libsyncblob.so" |
        sed -n 's/.*(RUNPATH).*\[\(.*\)\]/\1/p')
    python3 -B tests/project/abi/check_hardening.py --run-path "$blas" \
        --program "$CARGO_TARGET_DIR/$1/syncblob"
}

# Optimised at link time; what is part of several objects has to be declared alike in all.
build_lto_gcc() { make_build lto-gcc lto $gcc; }

build_lto_clang() {
    make_build lto-clang lto $clang -- syncblob behaviour.blob_shape behaviour.model_read \
        behaviour.filler
}

abi_steps() {
    on release aside 'structs of older and newer callers' check_growth
    on release aside 'copies of the library in one process' check_copies
    on 'release program' aside 'hardening of the program' check_hardened_program debug
    on abi_needs aside 'checks of the ABI and of hardening find what is wrong' \
        python3 -B tests/project/abi/selftest.py gcc
}

abi_full_steps() {
    on 'release released_program' step 'hardening of the released program' \
        check_hardened_program release
    on lto_gcc step 'gcc LTO' run_ctest lto-gcc
    on lto_clang step 'clang LTO, some of the tests' run_ctest lto-clang \
        -R '^(abi.(exports|hardening)|behaviour.(blob_shape|model_read|filler))$'
}

abi() { # [--update [--reviewed]]
    steps_of='./dev abi'
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
    on abi_library step 'the ABI against its baseline' compare_baseline
    summary
}
