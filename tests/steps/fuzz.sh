# shellcheck shell=bash
# ./dev fuzz, ./dev coverage.

fuzz() {
    need "$build_needs" "$python_needs" "$fuzz_needs"
    mkdir -p "$build"
    configure_and_build fuzz fuzz >"$build/fuzz-build.txt" 2>&1 ||
        { tail -n 40 "$build/fuzz-build.txt"; die 'the fuzzers do not build'; }
    if [ "${1:-}" = --selftest ]; then
        shift
        exec python3 fuzz/selftest.py --build "$build/fuzz" "$@"
    fi
    mkdir -p "$cache/fuzz"
    exec python3 fuzz/run.py --build "$build/fuzz" --work "$cache/fuzz" "$@"
}

coverage() {
    need "$build_needs" "$python_needs" "$test_needs" "$coverage_needs"
    python3 tests/coverage/coverage.py --build "$build/coverage" "$@"
}
