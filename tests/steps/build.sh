# shellcheck shell=bash
# The builds that steps name with "on", and ctest in their folders.

if command -v ccache >/dev/null; then export CMAKE_C_COMPILER_LAUNCHER=ccache; fi

make_build() { # FOLDER PRESET [OPTION...] [-- TARGET...]
    local folder=$build/$1 preset=$2 options=()
    shift 2
    while [ $# != 0 ] && [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    cmake --preset "$preset" -B "$folder" "${options[@]}"
    if [ $# != 0 ]; then set -- --target "${@:2}"; fi
    cmake --build "$folder" -j "$jobs" "$@"
}

gcc=-DCMAKE_C_COMPILER=gcc
clang=-DCMAKE_C_COMPILER=clang

build_debug() { make_build debug debug $gcc "${cuda_options[@]}"; }

build_asan() { make_build asan asan $gcc "${cuda_options[@]}"; }

build_release() { make_build release release $gcc; }

build_tsan() { make_build tsan tsan $clang "${cuda_options[@]}" -- thread_programs; }

build_all_tsan() { make_build tsan tsan $clang "${cuda_options[@]}"; }

# Everything that can be left out is: one library, static, without OpenBLAS and CUDA; by clang.
build_least() {
    make_build least debug $clang -DBUILD_SHARED_LIBS=OFF -DSYNCBLOB_OPENBLAS=OFF -DSYNCBLOB_CUDA=OFF
}

# The program syncblob as the tests of the crates have it: with its C library optimised.
build_program() { cargo test --workspace --locked --no-run; }

build_released_program() { cargo build --release --locked -p syncblob-cli; }

run_ctest() { # FOLDER OPTION...
    ctest -j "$jobs" --output-on-failure --no-tests=error --test-dir "$build/$1" "${@:2}"
}

# With every table whole.
run_whole_ctest() { # FOLDER OPTION...
    SYNCBLOB_TEST_WHOLE=1 run_ctest "$@"
}

# With what takes minutes, too.
run_full_ctest() { # FOLDER OPTION...
    SYNCBLOB_TEST_FULL=1 run_ctest "$@"
}
