# shellcheck shell=bash
# What the library may cost: memory, time, instructions.

# The C test programs and the fuzzers' replays, a command a line. Valgrind
# runs one thread at a time, so the tests of threads have ThreadSanitizer.
valgrind_commands() { # FOLDER
    local harness target inputs
    # but for those that are about numbers: one compiled in several ways, and statistics
    find "$build/$1/tests" -maxdepth 1 -type f -perm -u+x \
        ! -name 'behaviour.filler_numbers.*' ! -name behaviour.filler_statistics \
        -regex '.*/\(behaviour\|faults\|input\)\.[^/]*' -printf '"%p"\n' | sort
    for harness in fuzz/targets/*.c; do
        target=$(basename "$harness" .c)
        printf '"%s"' "$build/$1/fuzz/replay.$target"
        for inputs in "fuzz/corpus/$target" "fuzz/regressions/$target"; do
            if [ -d "$inputs" ]; then printf ' %s' "$inputs"; fi
        done
        echo
    done
}

# All of them once more under valgrind's memcheck.
run_valgrind() { # FOLDER
    export SYNCBLOB_TEST_QUICK=1
    # shellcheck disable=SC2016 # $@ is the inner shell's
    valgrind_commands "$1" | xargs -P "$jobs" -L 1 bash -c '
        out=$(timeout 600 valgrind --quiet --error-exitcode=9 --leak-check=full \
            --suppressions=tests/support/valgrind.supp --child-silent-after-fork=yes \
            --errors-for-leak-kinds=definite,possible "$@" 2>&1) && echo "ok $*" && exit
        printf "%s\nFAILED %s\n" "$out" "$*"
        exit 1' valgrind
}

# What a bomb may cost: instructions of the library, memory of the command line.
run_linear_time() { # OPTION...
    python3 tests/survival/input/linear_time.py --jobs "$jobs" "$build/release/tests/survival/input/bomb" "$@"
}

run_cli_memory() { # OPTION...
    cargo build --release --locked -p syncblob-cli
    python3 tests/survival/input/cli_memory.py --bomb "$build/release/tests/survival/input/bomb" \
        --cli "$CARGO_TARGET_DIR/release/syncblob" "$@"
}

# What `convert` may cost in memory, and its speed beside cp.
run_convert_promises() { # OPTION...
    local model
    model=$(fetch_member "${model_package[@]}" "$model_member")
    cargo build --release --locked -p syncblob-cli
    python3 tests/survival/input/convert.py --cli "$CARGO_TARGET_DIR/release/syncblob" \
        --model "$model" "$@"
}
