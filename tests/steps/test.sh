# shellcheck shell=bash
# ./dev test: which steps there are, and in which runs. Each of them says what no other finds.

# What the README gives. Wrong behaviour; reads and writes out of bounds; the crates.
test_steps() {
    step 'Rust tests' cargo test --workspace --locked
    on asan step 'C tests, addresses and undefined behaviour' run_ctest asan
    pages_steps
}

# What CI adds. The optimiser's view and whole tables; the library without its options; races;
# reads of what nobody wrote; what users build; costs; the ABI.
more_steps() {
    # But what is the same however it is compiled.
    on 'abi_needs release' step 'C tests, optimised, tables whole' \
        run_ctest SYNCBLOB_TEST_WHOLE=1 release -E '^(abi\.headers|consumer\.|faults\.functions)'
    on least step 'the library needs no header of others' check_least
    aside 'the library is built where there is a C compiler and nothing else' build_plainly
    on least step 'C tests, static, without any other library' run_ctest least
    on tsan step 'C tests, races' run_ctest tsan -R \
        '^(threads\.|comm\.|behaviour\.(mem_async|page_size)$|standin\.(threads|behaviour\.mem_async)|(standin|gpu)\..*\.random$)'
    on release step 'C tests, what nobody wrote (valgrind)' run_valgrind release
    aside 'quarantine, all interleavings of a model' \
        python3 tests/survival/threads/model_quarantine.py
    mpi_steps
    cuda_steps
    abi_steps
    package_steps
    peer_steps
    python_steps
    caffe_steps
    onnx_steps
    cost_steps
    cross_steps
    windows_steps
    documents_steps
    aside 'demo' demo
}

# What takes hours, or what most changes cannot break.
full_steps() {
    on release step 'C tests under valgrind, all' run_valgrind release all
    mutation_full_steps
    abi_full_steps
    package_full_steps
    release_full_steps
    mpi_full_steps
    simgrid_full_steps
    cross_full_steps
    windows_full_steps
    zig_full_steps
    cuda_full_steps
    forks_full_steps
    lint_full_steps
    documents_full_steps
    prove_full_steps
    on coverage_needs step 'coverage' coverage
    for sanitizer in address undefined memory; do
        on fuzz_needs step "fuzzers as ClusterFuzzLite builds them: $sanitizer" .clusterfuzzlite/check.sh $sanitizer
    done
    on 'fuzz_needs afl_needs' step 'fuzzers as OSS-Fuzz builds them for AFL++' \
        .clusterfuzzlite/check.sh afl
    on 'fuzz_needs afl_needs' step 'AFL++ finds planted bugs, and none beside' run_afl
    peer_full_steps
    python_full_steps
    caffe_full_steps
    onnx_full_steps
    step 'cargo test under AddressSanitizer' bindings/sanitize.sh address
    step 'cargo test under ThreadSanitizer' bindings/sanitize.sh thread
    step 'random calls of the safe crate' bindings/sanitize.sh fuzz 60
    on release step 'C tests, optimised, the slow ones too' run_ctest SYNCBLOB_TEST_FULL=1 release
    cost_full_steps
    # One thread, and a sanitizer makes it last for ever.
    on all_tsan step 'C tests, races, all' \
        run_ctest SYNCBLOB_STRESS_SECONDS=120 SYNCBLOB_TEST_FULL=1 tsan -E short_messages
}

run_lists() { # LIST...
    local list
    plan "$@"
    need "${needed[@]}"
    for list in "$@"; do $list; done
}

run_tests() { # --more | --full | NAME...
    local name
    for name in "$@"; do
        if [ -z "$name" ] || { [[ $1 == --* ]] && [ $# != 1 ]; }; then
            die 'test takes --more or --full alone, or names'
        fi
    done
    case ${1:-} in '' | --more | --full | [!-]*) ;; *) die "test takes --more, --full or names, not $1" ;; esac
    need "$build_needs" "$python_needs" "$test_needs"
    make_python
    find_cuda_headers
    case ${1:-} in
    '') run_lists test_steps ;;
    --more) run_lists more_steps ;;
    --full) run_lists test_steps more_steps full_steps ;;
    *) run_named "$@" ;;
    esac
    summary
}
