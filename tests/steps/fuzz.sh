# shellcheck shell=bash
# ./dev fuzz, ./dev coverage.

build_fuzzers() { # PRESET
    mkdir -p "$build"
    make_build "$1" "$1" >"$build/$1-build.txt" 2>&1 ||
        { tail -n 40 "$build/$1-build.txt"; die 'the fuzzers do not build'; }
    [ "$1" != fuzz ] || bindings/sanitize.sh fuzzers syncblob-net "$build/fuzz/fuzz"
}

fuzz() {
    need "$build_needs" "$python_needs" "$fuzz_needs"
    if [ "${1:-}" = --afl ]; then
        shift
        fuzz_afl "$@"
        return
    fi
    build_fuzzers fuzz
    if [ "${1:-}" = --selftest ]; then
        shift
        exec python3 fuzz/selftest.py --build "$build/fuzz" "$@"
    fi
    mkdir -p "$cache/fuzz"
    exec python3 fuzz/run.py --build "$build/fuzz" --work "$cache/fuzz" "$@"
}

# AFL++ searches; what it finds is minimised and replayed with libFuzzer's build.
fuzz_afl() { # --selftest WORD... | [SECONDS] TARGET...
    need "$afl_needs"
    export AFL_QUIET=1
    build_fuzzers afl
    if [ "${1:-}" = --selftest ]; then
        shift
        python3 fuzz/selftest.py --build "$build/afl" --afl "$@"
        return
    fi
    build_fuzzers fuzz
    python3 fuzz/afl.py --build "$build/afl" --libfuzzer "$build/fuzz" \
        --work "${afl_work:-$cache/fuzz}" "$@"
}

# A person's corpora stay.
run_afl() {
    fuzz_afl --selftest
    afl_work=$build/afl-work fuzz_afl 15
}

coverage() {
    need "$build_needs" "$python_needs" "$test_needs" "$coverage_needs"
    find_cuda_headers
    python3 tests/project/coverage/coverage.py --build "$build/coverage" "${cuda_options[@]}" "$@"
}
