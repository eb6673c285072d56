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
        gcc -std=c17 -Wall -Wextra -Werror -fsyntax-only -Ic/comm/src/nccl -Ic/include \
            "${folders[@]/#/-isystem}" tests/cuda/standin/check_declarations.c
    done
}

cuda_steps() {
    local suite
    if [ ${#cuda_options[@]} != 0 ]; then
        aside 'CUDA declarations against NVIDIA headers' check_cuda_declarations
    fi
    for suite in bookworm trixie; do
        on asan aside "the driver of Debian's $suite, without a device" check_real_driver $suite
    done
}

# The names that we look up: declared_names driver|cublas.
declared_names() {
    local result=sb__cu_result
    [ "$1" = driver ] || result=sb__cublas_status
    tr -d '\\\n' <cuda/declarations.h | grep -oE "F\($result, *[a-zA-Z0-9_]+" | sed 's/.*, *//' | sort
}

# has_names LIBRARY driver|cublas
has_names() {
    local missing
    missing=$(comm -23 <(declared_names "$2") \
        <(nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u))
    [ "$(declared_names "$2" | wc -l)" -ge 6 ] || die "no names are found in cuda/declarations.h"
    [ -z "$missing" ] || die "$1 lacks $missing"
}

# NVIDIA's driver library as a release of Debian has it, without a device.
check_real_driver() { # SUITE
    local library folder=$build/real-driver/$1 status=0
    library=$(tests/cuda/fetch_package.sh "$1" non-free libcuda1 libcuda.so.1 "$cache/libcuda/$1") ||
        status=$?
    [ $status = 0 ] || { echo "$library"; return $status; }
    has_names "$library" driver
    mkdir -p "$folder"
    gcc -std=c17 -Wall -Wextra -Werror -fsanitize=address,undefined -Ic/include \
        tests/cuda/standin/no_device.c -o "$folder/no_device" -L"$build/asan/c" -lsyncblob
    # 535 leaves memory behind when it is closed, which is not ours to find
    ASAN_OPTIONS=detect_leaks=0 LD_LIBRARY_PATH=$build/asan/c:${library%/*} "$folder/no_device"
}

# cuBLAS of both versions, of which a process without a device can ask no more than the names. Each
# is half a gigabyte, so that it goes again when its names were seen.
check_real_cublas() { # MAJOR
    local seen=$cache/cublas-names-$1 folder=$build/real-cublas package
    package=$(grep -oE '^nvidia-cublas[a-z0-9-]*==.*' "tests/cuda/standin/cuda-$1.txt")
    if ! grep -qsxF "# $package" "$seen"; then
        rm -rf "$folder"
        mkdir -p "$folder"
        "$python" -m pip install --quiet --no-deps --no-compile --target "$folder" "$package" \
            >"$build/log/real-cublas.txt" 2>&1 || { echo "skipped: $package cannot be fetched"; return 77; }
        { echo "# $package"; nm -D --defined-only "$(find "$folder" -name "libcublas.so.$1")"; } >"$seen"
        rm -rf "$folder"
    fi
    local missing
    missing=$(comm -23 <(declared_names cublas) <(awk '{ sub(/@.*/, "", $3); print $3 }' "$seen" | sort -u))
    [ -z "$missing" ] || die "$package lacks $missing"
}

cuda_full_steps() {
    local version
    for version in 12 13; do
        step "cuBLAS $version: every name is there" check_real_cublas $version
    done
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
    cuda_full_steps
    step 'the CUDA backend, each wait, push and pop left out' run_mutate --cuda
    on gpu_programs step 'programs for a GPU, on stand-ins' run_gpu_programs_on_standins
    on gpu_programs step 'programs for a GPU, on an old glibc' run_gpu_programs_on_old_glibc
    summary
}
