# shellcheck shell=bash
# Errors that are planted in the library, which the tests must find.

run_weakened_backend() {
    python3 tests/cuda/standin/weaken.py --headers "$(cuda_headers 13)"
}

mutation_full_steps() {
    step 'locks, orders and waits, each weakened' python3 tests/survival/threads/weaken.py
    if [ ${#cuda_options[@]} != 0 ]; then
        step 'the CUDA backend, each wait, push and pop left out' run_weakened_backend
    fi
}
