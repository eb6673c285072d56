# shellcheck shell=bash
# ./dev test: all steps, in their order.

# What finds most mistakes in a few minutes.
quick_steps() {
    find_cuda_headers
    build_and_test 'gcc debug' debug debug -DCMAKE_C_COMPILER=gcc "${cuda_options[@]}"
    step 'cargo test' cargo test --workspace --locked
}

c_steps() {
    step 'clang debug: build' configure_and_build debug-clang debug -DCMAKE_C_COMPILER=clang
    [ "$step_status" != 0 ] || step 'clang debug: tests' run_quick_ctest debug-clang
    build_and_test 'gcc release' release release -DCMAKE_C_COMPILER=gcc
    step 'static library: build' build_static
    [ "$step_status" != 0 ] || step 'static library: consumers' run_ctest static -R consumer
    step 'without OpenBLAS and CUDA: build' configure_and_build plain release \
        -DCMAKE_C_COMPILER=gcc -DSYNCBLOB_OPENBLAS=OFF -DSYNCBLOB_CUDA=OFF
    [ "$step_status" != 0 ] ||
        step 'without OpenBLAS and CUDA: tests' run_ctest plain -R 'arithmetic|backend|caffe|abi|consumer'
    build_and_test 'asan and ubsan' asan asan -DCMAKE_C_COMPILER=gcc "${cuda_options[@]}"
    step 'valgrind' run_valgrind debug
    step 'clang tsan: build' configure_and_build tsan tsan -DCMAKE_C_COMPILER=clang "${cuda_options[@]}"
    step 'clang tsan: tests of threads' run_ctest tsan -R '^(threads\.|behaviour\.mem_async$)'
    step 'locks, orders and waits, each weakened' python3 tests/survival/threads/weaken.py
    step 'quarantine, all interleavings of a model' python3 tests/survival/threads/model_quarantine.py
    if [ ${#cuda_options[@]} != 0 ]; then
        step 'clang tsan: CUDA on stand-ins' run_quick_ctest tsan -R '^(standin|gpu)'
        step 'CUDA declarations against NVIDIA headers' check_cuda_declarations
        step 'the CUDA backend, each wait, push and pop left out' run_weakened_backend
    fi
    step 'instructions of the small operations' check_instructions
    step 'time linear in the input' run_linear_time
}

rust_steps() {
    step 'cargo test under ThreadSanitizer' bindings/sanitize.sh thread
    step 'the crates as users get them' python3 tests/users/consumer/crates.py by_path \
        packages_are_whole packed documentation_needs_no_tools message_without_tools \
        message_without_libraries
    step 'golden: against Google protobuf' run_golden
    step 'DLPack declarations against its header' check_dlpack_declarations
    step 'DLPack with NumPy and TVM' run_interop
    step 'memory of the command line' run_cli_memory
    step 'memory and speed of conversions' run_convert_promises
    step 'demo' demo
}

full_steps() {
    abi_full_steps
    package_full_steps
    cross_full_steps
    lint_full_steps
    documents_full_steps
    prove_full_steps
    step 'coverage' coverage
    step 'fuzzers as OSS-Fuzz builds them' fuzz/oss-fuzz/check.sh libfuzzer
    step 'fuzzers as OSS-Fuzz builds them for AFL++' fuzz/oss-fuzz/check.sh afl
    step 'AFL++ finds planted bugs, and none beside' run_afl
    if find_torch; then step 'DLPack with PyTorch' run_torch_interop; fi
    step 'the crates as users get them, all ways' python3 tests/users/consumer/crates.py
    step 'cargo test under AddressSanitizer' bindings/sanitize.sh address
    step 'random calls of the safe crate' bindings/sanitize.sh fuzz 60
    export SYNCBLOB_TEST_FULL=1
    step 'gcc release, with the large tests' run_ctest release
    step 'time linear in the input, at full size' run_linear_time --full
    step 'memory of the command line, at full size' run_cli_memory --full
    step 'memory of conversions, at full size' run_convert_promises --mib 1024
    export SYNCBLOB_STRESS_SECONDS=120
    # One thread, and a sanitizer makes it last for ever.
    step 'clang tsan: all tests' run_ctest tsan -E short_messages
}

run_tests() {
    local more=
    case ${1:-} in
    '' | --quick) ;;
    --full) more=$coverage_needs$fuzz_needs$afl_needs$package_full_needs$cross_needs$lint_needs ;;
    *) die "test takes --quick or --full, not $1" ;;
    esac
    need "$build_needs" "$python_needs" "$test_needs" "$abi_needs" "$package_needs" \
        "$documents_needs" "$big_endian_needs" "$more"
    make_python
    quick_steps
    if [ "${1:-}" != --quick ]; then
        c_steps
        abi_steps
        package_steps
        cross_steps
        rust_steps
        documents_steps
    fi
    [ "${1:-}" != --full ] || full_steps
    summary
}
