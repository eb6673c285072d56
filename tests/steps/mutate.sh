# shellcheck shell=bash
# ./dev mutate: errors planted in the library, each of which a test must notice.

# libclang finds the places.
make_mutation_python() {
    local folder=$cache/python-mutation list=tests/project/mutation/requirements.txt
    mutation_python=$folder/bin/python
    cmp -s "$list" "$folder/installed" && return
    python3 -m venv --clear "$folder"
    "$mutation_python" -m pip install --quiet --require-hashes -r "$list"
    cp "$list" "$folder/installed"
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
