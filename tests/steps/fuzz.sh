# shellcheck shell=bash
# ./dev fuzz, ./dev coverage.

build_fuzzers() { # PRESET
    mkdir -p "$build"
    make_build "$1" "$1" >"$build/$1-build.txt" 2>&1 ||
        { tail -n 40 "$build/$1-build.txt"; die 'the fuzzers do not build'; }
    [ "$1" != fuzz ] || bindings/sanitize.sh fuzzers syncblob-net "$build/fuzz/fuzz"
}

# Corpora are kept in $cache/fuzz, those of a test elsewhere.
fuzz() { # [--afl] --selftest WORD... | [--afl] SECONDS TARGET... | --merge | --edges
    need "$build_needs" "$python_needs" "$fuzz_needs"
    build_fuzzers fuzz
    if [ "${1:-}" = --afl ]; then
        need "$afl_needs"
        AFL_QUIET=1 build_fuzzers afl
    fi
    case "${1:-}${2:-}" in
    --selftest*) python3 fuzz/selftest.py "$build" "${@:2}" ;;
    --afl--selftest) python3 fuzz/selftest.py "$build" --afl "${@:3}" ;;
    *) fuzz/run.sh "$build" "${fuzz_work:-$cache/fuzz}" "$@" ;;
    esac
}

run_afl() {
    fuzz --afl --selftest
    fuzz_work=$build/afl-work fuzz --afl 15
}

coverage() {
    need "$build_needs" "$python_needs" "$test_needs" "$coverage_needs"
    find_cuda_headers
    python3 tests/project/coverage/coverage.py --build "$build/coverage" "${cuda_options[@]}" "$@"
}
