# shellcheck shell=bash
# ./dev mutate: errors planted in the library, each of which a test must notice.

# libclang finds the places.
make_mutation_python() {
    mutation_python=$cache/python-mutation/bin/python
    make_environment "$cache/python-mutation" tests/project/mutation/requirements.txt --require-hashes
}

run_mutate() {
    local headers=
    [[ " $* " == *' --threads '* ]] || headers=$(cuda_headers 13)
    make_mutation_python
    PYTHONDONTWRITEBYTECODE=1 SYNCBLOB_TEST_DATA=${SYNCBLOB_TEST_DATA:-$PWD/../shared/data} \
        "$mutation_python" tests/project/mutation/mutate.py --build "$build/mutation" \
        --headers "$headers" "$@"
}

# The tool itself.
check_mutate() {
    make_mutation_python
    PYTHONDONTWRITEBYTECODE=1 "$mutation_python" tests/project/mutation/selftest.py
}

mutation_full_steps() {
    step 'planted errors: the tool' check_mutate
    step 'planted errors, 200 of them at random' run_mutate --sample 200
    step 'locks, orders and waits, each weakened' run_mutate --threads
    if [ ${#cuda_options[@]} != 0 ]; then
        step 'the CUDA backend, each wait, push and pop left out' run_mutate --cuda
    fi
}

mutate() {
    need "$build_needs" "$python_needs" "$test_needs"
    make_python
    if [ "${1:-}" = --selftest ]; then
        check_mutate
    else
        run_mutate "$@"
    fi
}
