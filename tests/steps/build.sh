# shellcheck shell=bash
# Builds of the C library, and their tests.

build_and_test() { # NAME FOLDER PRESET OPTION...
    local name=$1 folder=$2
    shift
    step "$name: build" configure_and_build "$@"
    [ "$step_status" != 0 ] || step "$name: tests" run_ctest "$folder"
}

configure_and_build() { # FOLDER PRESET OPTION...
    local folder=$build/$1 preset=$2
    shift 2
    cmake --preset "$preset" -B "$folder" "$@"
    cmake --build "$folder" -j "$jobs"
}

# The library alone as libsyncblob.a, for the consumers.
build_static() {
    cmake --preset release -B "$build/static" -DCMAKE_C_COMPILER=gcc -DBUILD_SHARED_LIBS=OFF
    cmake --build "$build/static" -j "$jobs" --target syncblob
}

run_ctest() { # FOLDER OPTION...
    local folder=$build/$1
    shift
    ctest --test-dir "$folder" -j "$jobs" --output-on-failure --no-tests=error "$@"
}

# With fewer rounds: where a build is one of several.
run_quick_ctest() { # FOLDER OPTION...
    SYNCBLOB_TEST_QUICK=1 run_ctest "$@"
}
