# shellcheck shell=bash
# ./dev test NAME...: the C tests, Rust tests and steps whose names have NAME in them.

# Builds what the tests run, and runs them.
run_c_tests() { # NAME
    local targets
    told cmake --preset debug -B "$build/debug" $gcc "${cuda_options[@]}"
    targets=$(python3 tests/steps/programs.py "$build/debug" "$1")
    if [ -n "$targets" ]; then
        # shellcheck disable=SC2086 # several
        told cmake --build "$build/debug" -j "$jobs" --target $targets
    fi
    run_ctest SYNCBLOB_TEST_WHOLE=1 debug -R "$1"
}

# "CRATE PROGRAM FUNCTION" of Rust's integration tests: a whole program where its name fits,
# else each function whose name does.
rust_tests() { # NAME
    local file crate program
    for file in bindings/*/tests/*.rs; do
        crate=${file#bindings/} crate=${crate%%/*} program=${file##*/} program=${program%.rs}
        if [[ $program == *"$1"* ]]; then
            echo "$crate $program"
        elif grep -q "^fn \w*$1\w*()" <<<"$(grep -A2 '^#\[test\]' "$file")"; then
            echo "$crate $program $1"
        fi
    done
}

run_named() { # NAME...
    local name crate program function found
    for name in "$@"; do
        found=
        cmake --preset debug -B "$build/debug" $gcc "${cuda_options[@]}" >/dev/null
        if [ "$(ctest --test-dir "$build/debug" -N -R "$name" | grep -c "^ *Test *#")" != 0 ]; then
            step "C tests: $name" run_c_tests "$name"
            found=1
        fi
        while read -r crate program function; do
            step "Rust tests: $crate $program $function" \
                cargo test --locked -p "$crate" --test "$program" -- "$function"
            found=1
        done < <(rust_tests "$name")
        only=("$name")
        steps_wanted=0
        test_steps
        more_steps
        [ "$steps_wanted" != 0 ] || full_steps
        settle
        only=()
        [ -n "$found$([ "$steps_wanted" = 0 ] || echo 1)" ] ||
            die "nothing is named like '$name': ctest -N, cargo test and ./dev test list the names"
    done
}
