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

run_weakened_backend() {
    python3 tests/cuda/standin/weaken.py --headers "$(cuda_headers 13)"
}

cuda() {
    need "$build_needs" "$python_needs" "$test_needs"
    make_python
    SYNCBLOB_NEED_CUDA=1 find_cuda_headers
    step 'CUDA declarations against NVIDIA headers' check_cuda_declarations
    for_standins 'gcc debug' debug debug gcc
    for_standins 'asan and ubsan' asan asan gcc
    for_standins 'clang tsan' tsan tsan clang
    step 'the CUDA backend, each wait, push and pop left out' run_weakened_backend
    step 'programs for a GPU: build' build_gpu_programs
    [ "$step_status" != 0 ] || step 'programs for a GPU, on stand-ins' run_gpu_programs_on_standins
    summary
}

for_standins() { # NAME FOLDER PRESET COMPILER
    step "$1: build" configure_and_build "$2" "$3" "-DCMAKE_C_COMPILER=$4" "${cuda_options[@]}"
    [ "$step_status" != 0 ] || step "$1: tests on stand-ins" run_ctest "$2" -R '^(standin|gpu)'
}
