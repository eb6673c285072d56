# shellcheck shell=bash
# ./dev prove: what a model checker proves of the library (tests/survival/proofs/README.md).

run_proofs() { # OPTION... [NAME...]
    local esbmc
    esbmc=$(fetch_esbmc)
    python3 tests/survival/proofs/prove.py --esbmc "$esbmc" --jobs "$jobs" "$@"
}

prove() {
    need "$build_needs" "$python_needs"
    [ "$(uname -sm)" = 'Linux x86_64' ] || die 'ESBMC is there for Linux on x86-64 alone'
    mkdir -p "$cache"
    make_python
    run_proofs "$@"
}

prove_full_steps() {
    wanted 'proofs, and errors that they refuse' || return 0
    if [ "$(uname -sm)" = 'Linux x86_64' ]; then
        step 'proofs, and errors that they refuse' run_proofs --selftest
    else
        echo 'skipped         proofs: ESBMC is there for Linux on x86-64 alone'
    fi
}
