# shellcheck shell=bash
# The builds that steps name with "on", and ctest in their folders.

if command -v ccache >/dev/null; then export CMAKE_C_COMPILER_LAUNCHER=ccache; fi

configure_and_build() { # FOLDER PRESET OPTION...
    local folder=$build/$1 preset=$2
    shift 2
    cmake --preset "$preset" -B "$folder" "$@"
    cmake --build "$folder" -j "$jobs"
}

build_debug() {
    configure_and_build debug debug -DCMAKE_C_COMPILER=gcc "${cuda_options[@]}"
}

build_asan() {
    configure_and_build asan asan -DCMAKE_C_COMPILER=gcc "${cuda_options[@]}"
}

build_release() {
    configure_and_build release release -DCMAKE_C_COMPILER=gcc
}

build_tsan() {
    cmake --preset tsan -B "$build/tsan" -DCMAKE_C_COMPILER=clang "${cuda_options[@]}"
    cmake --build "$build/tsan" -j "$jobs" --target thread_programs
}

build_all_tsan() {
    configure_and_build tsan tsan -DCMAKE_C_COMPILER=clang "${cuda_options[@]}"
}

# Everything that can be left out is: one library, static, without OpenBLAS and CUDA; by clang.
build_least() {
    configure_and_build least debug -DCMAKE_C_COMPILER=clang -DBUILD_SHARED_LIBS=OFF \
        -DSYNCBLOB_OPENBLAS=OFF -DSYNCBLOB_CUDA=OFF
}

# The program syncblob as the tests of the crates have it: with its C library optimised.
build_program() {
    cargo test --workspace --locked --no-run
}

build_released_program() {
    cargo build --release --locked -p syncblob-cli
}

run_ctest() { # FOLDER OPTION...
    local folder=$build/$1
    shift
    ctest --test-dir "$folder" -j "$jobs" --output-on-failure --no-tests=error "$@"
}

# With every table whole.
run_whole_ctest() { # FOLDER OPTION...
    SYNCBLOB_TEST_WHOLE=1 run_ctest "$@"
}
