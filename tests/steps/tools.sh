# shellcheck shell=bash
# Commands of dev that run a tool.

mutate() { # OPTION...
    local python headers=
    [[ " $* " == *' --threads '* ]] || headers=$(cuda_headers 13)
    python=$(environment mutation)
    if [ "${1:-}" = --selftest ]; then
        "$python" tests/project/mutation/selftest.py
    else
        "$python" tests/project/mutation/mutate.py --build "$build/mutation" --headers "$headers" "$@"
    fi
}

prove() { # OPTION... [NAME...]
    local python
    [ "$(uname -sm)" = 'Linux x86_64' ] || skip 'ESBMC is available only for Linux on x86-64'
    python=$(environment proofs)
    python3 tests/survival/proofs/prove.py --esbmc "${python%/*}/esbmc" --jobs "$jobs" "$@"
}

coverage() { # [OPTION-OF-GCOVR...]
    local headers part python
    python=$(environment coverage)
    headers=$(cuda_headers 13) || headers=
    build coverage coverage -DCMAKE_C_COMPILER=gcc "-DSYNCBLOB_CUDA_HEADERS=$headers"
    find "$build/coverage" -name '*.gcda' -delete
    ctest --test-dir "$build/coverage" -j "$jobs" --output-on-failure --no-tests=error
    for part in kit library; do
        "${python%/*}/gcovr" --config "tests/project/coverage/$part.cfg" \
            --gcov-executable "gcov-$(gcc -dumpversion | cut -d. -f1)" "$build/coverage/c" --txt - "$@"
    done
}

build_fuzzers() {
    build fuzz fuzz >"$build/log/fuzzers.txt" 2>&1 || die "the fuzzers do not build: $build/log/fuzzers.txt"
}

# Rust's fuzzers take long to build. The crates' tests run the same targets.
fuzz_c() { # SECONDS
    build_fuzzers
    # shellcheck disable=SC2046 # names
    fuzz/run.sh "$build" "$cache/fuzz" "$1" $(basename -s .c fuzz/targets/*.c)
}

fuzz() { # --selftest WORD... | SECONDS TARGET... | --merge
    build_fuzzers
    bindings/sanitize.sh fuzzers syncblob-net "$build/fuzz/fuzz"
    if [ "${1:-}" = --selftest ]; then
        python3 fuzz/selftest.py "$build" "${@:2}"
    else
        fuzz/run.sh "$build" "$cache/fuzz" "$@"
    fi
}
