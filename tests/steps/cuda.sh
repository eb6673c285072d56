# shellcheck shell=bash
# The CUDA backend without a GPU.

# For cmake: the tests on stand-ins of NVIDIA's libraries, or nothing, said why.
find_cuda_headers() {
    local headers log=$build/log/cuda-headers.txt
    mkdir -p "${log%/*}"
    cuda_options=()
    if headers=$(cuda_headers 13 2>"$log") && cuda_headers 12 >/dev/null 2>>"$log"; then
        cuda_options=("-DSYNCBLOB_CUDA_HEADERS=$headers")
    elif [ "${SYNCBLOB_NEED_CUDA:-}" = 1 ]; then
        tail -n 20 "$log" >&2
        die "CUDA's headers cannot be fetched"
    else
        echo "skipped         tests on stand-ins of CUDA: its headers cannot be fetched ($log)"
    fi
}

# Ours against NVIDIA's of both versions.
check_cuda_declarations() {
    local version folders
    for version in 12 13; do
        mapfile -t folders < <(cuda_headers $version | tr ';' '\n')
        gcc -std=c17 -Wall -Wextra -Werror -fsyntax-only -Icuda -Ic/include \
            "${folders[@]/#/-isystem}" tests/cuda/standin/check_declarations.c
    done
}

cuda_steps() {
    if [ ${#cuda_options[@]} != 0 ]; then
        aside 'CUDA declarations against NVIDIA headers' check_cuda_declarations
    fi
}

cuda() {
    steps_of='./dev cuda'
    need "$build_needs" "$python_needs" "$test_needs"
    make_python
    SYNCBLOB_NEED_CUDA=1 find_cuda_headers
    cuda_steps
    on debug step 'tests on stand-ins' run_ctest debug -R '^(standin|gpu)'
    on asan step 'tests on stand-ins, addresses and undefined behaviour' \
        run_ctest asan -R '^(standin|gpu)'
    on tsan step 'tests on stand-ins, races' run_ctest tsan -R '^(standin|gpu)'
    step 'the CUDA backend, each wait, push and pop left out' run_mutate --cuda
    on gpu_programs step 'programs for a GPU, on stand-ins' run_gpu_programs_on_standins
    summary
}
