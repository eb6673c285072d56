# shellcheck shell=bash
# The ABI and the hardening of the binaries; ./dev abi.

# shellcheck disable=SC2034 # read by need
abi_needs='
abigail-tools     | command -v abidw && command -v abidiff
binutils          | command -v readelf && command -v nm
'

check_versions() { # growth|copies
    tests/project/abi/versions.sh "$1" gcc "$jobs" "$build/release"
}

# The program, as cargo makes it.
check_hardened_program() { # PROFILE
    local blas
    blas=$(readelf -d "$build/release/c/libsyncblob.so" |
        sed -n 's/.*(RUNPATH).*\[\(.*\)\]/\1/p')
    python3 -B tests/project/abi/check_hardening.py program "$CARGO_TARGET_DIR/$1/syncblob" \
        --run-path "$blas"
}

# Optimised at link time; what is part of several objects has to be declared alike in all.
build_lto_gcc() { make_build lto-gcc lto $gcc; }

build_lto_clang() {
    make_build lto-clang lto $clang -- syncblob behaviour.blob_shape behaviour.model_read \
        behaviour.filler
}

abi_steps() {
    on release aside 'structs of older and newer callers' check_versions growth
    on release aside 'copies of the library in one process' check_versions copies
    on 'release program' aside 'hardening of the program' check_hardened_program debug
    on 'abi_needs release' aside 'checks of the ABI and of hardening find what is wrong' \
        python3 -B tests/project/abi/selftest.py gcc "$build/release/c/libsyncblob.so"
}

abi_full_steps() {
    on 'release released_program' step 'hardening of the released program' \
        check_hardened_program release
    on lto_gcc step 'gcc LTO' run_ctest lto-gcc
    on lto_clang step 'clang LTO, some of the tests' run_ctest lto-clang \
        -R '^(abi\.(exports|hardening_library)|behaviour.(blob_shape|model_read|filler))$'
}

abi() { # [--update [--reviewed]]
    steps_of='./dev abi'
    need "$build_needs" "$python_needs" "$abi_needs"
    case "$*" in
    '') on abi_needs step 'the ABI against its baseline' python3 -B tests/project/abi/interface.py compare ;;
    --update | '--update --reviewed') python3 -B tests/project/abi/interface.py --cc gcc "${@/#--update/update}" ;;
    *) die "abi takes --update and --reviewed, not $*" ;;
    esac
    summary
}
