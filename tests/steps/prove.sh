# shellcheck shell=bash
# ./dev prove: what a model checker proves of the library (tests/survival/proofs/README.md).

run_proofs() { # OPTION... [NAME...]
    local esbmc
    if [ "$(uname -sm)" != 'Linux x86_64' ]; then
        echo 'skipped: ESBMC is there for Linux on x86-64 alone'
        return 77
    fi
    esbmc=$(fetch_esbmc)
    python3 tests/survival/proofs/prove.py --esbmc "$esbmc" --jobs "$jobs" "$@"
}

prove() {
    need "$build_needs" "$python_needs"
    mkdir -p "$cache"
    make_python
    run_proofs "$@"
}

prove_full_steps() {
    step 'proofs, and errors that they refuse' run_proofs --selftest
}
