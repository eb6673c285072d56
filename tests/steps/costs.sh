# shellcheck shell=bash
# What the library may cost: memory, time, instructions.

# What a bomb may cost: instructions of the library, memory of the command line.
run_linear_time() { # OPTION...
    python3 tests/survival/input/linear_time.py --jobs "$jobs" "$build/release/tests/survival/input/bomb" "$@"
}

# What many of something cost at once: instructions of the library.
run_many() { # SMALL LARGE
    python3 tests/survival/input/linear_time.py --jobs "$jobs" "$build/release/tests/survival/input/many" \
        --factor 13 --sizes "$@"
}

run_program_memory() { # PROFILE OPTION...
    python3 tests/survival/input/cli_memory.py --bomb "$build/release/tests/survival/input/bomb" \
        --cli "$CARGO_TARGET_DIR/$1/syncblob" "${@:2}"
}

# What `convert` may cost in memory, and its speed beside cp.
run_convert_promises() { # OPTION...
    local model
    model=$(fetch_member "${model_package[@]}" "$model_member")
    python3 tests/survival/input/convert.py --cli "$CARGO_TARGET_DIR/release/syncblob" \
        --model "$model" "$@"
}

cost_steps() {
    aside 'instructions of the small operations' check_instructions
    on release aside 'time linear in the input' run_linear_time
    on release aside 'time linear in counts' run_many 1000 10000
    on 'release program' aside 'memory of the program' run_program_memory debug
}

cost_full_steps() {
    step 'calls of Rust beside those of C' bench_rust
    on release step 'time linear in the input, at full size' run_linear_time --full
    on release step 'time linear in counts, at full size' run_many 10000 100000
    on 'release released_program' step 'memory of the program, at full size' \
        run_program_memory release --full
    on 'released_program peers' step 'memory and speed of conversions' run_convert_promises --mib 1024
}
