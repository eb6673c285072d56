# shellcheck shell=bash
# The builds that steps name with "on", and ctest in their folders.

# One run at a time in a folder of builds: the others wait. Steps do not hold it: something may stay
# behind them.
lock_build() { # WORD... of ./dev
    mkdir -p "$build"
    exec 9>>"$build/lock"
    if ! flock -n 9; then
        echo "waiting for $(cat "$build/lock"), in $build"
        flock 9
    fi
    echo "./dev $*, process $$, since $(date +%T)" >"$build/lock"
}

if command -v ccache >/dev/null; then export CMAKE_C_COMPILER_LAUNCHER=ccache; fi

make_build() { # FOLDER PRESET [OPTION...] [-- TARGET...]
    local folder=$build/$1 preset=$2 options=()
    shift 2
    while [ $# != 0 ] && [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    told cmake --preset "$preset" -B "$folder" "${options[@]}"
    if [ $# != 0 ]; then set -- --target "${@:2}"; fi
    told cmake --build "$folder" -j "$jobs" "$@"
}

gcc=-DCMAKE_C_COMPILER=gcc
clang=-DCMAKE_C_COMPILER=clang

net=-DSYNCBLOB_NET=ON

build_debug() { make_build debug debug $gcc $net "${cuda_options[@]}"; }

build_asan() { make_build asan asan $gcc $net "${cuda_options[@]}"; }

build_release() { make_build release release $gcc $net; }

build_tsan() { make_build tsan tsan $clang "${cuda_options[@]}" -- thread_programs; }

build_all_tsan() { make_build tsan tsan $clang "${cuda_options[@]}"; }

# Everything that can be left out is: one library, static, without OpenBLAS and CUDA; by clang.
build_least() {
    make_build least debug $clang -DBUILD_SHARED_LIBS=OFF -DSYNCBLOB_OPENBLAS=OFF -DSYNCBLOB_CUDA=OFF \
        -DSYNCBLOB_PROTOBUF_C=OFF -DSYNCBLOB_RANDOM123=OFF
}

# None of its sources was compiled with a header of what was left out, which may well be installed.
check_least() {
    local of_library
    of_library=$(ninja -C "$build/least" -t deps | awk '/^[^ ]/ { ours = /^c\/CMakeFiles\// } ours')
    grep -c '^c/CMakeFiles/' <<<"$of_library"
    if grep -E '/(Random123|protobuf-c|cblas|cuda)[^ ]*\.h$' <<<"$of_library"; then return 1; fi
}

# As check_least, where there is nothing else: CMake sees a C compiler and no folder of the system's,
# and no pkg-config. A program is linked with what came of it.
build_plainly() { # [SOURCES]
    local sources=${1:-.} tools=$build/plain-tools folder=$build/plain program
    rm -rf "$tools" "$folder"
    mkdir -p "$tools"
    for program in cmake ninja gcc as ld ar ranlib; do
        printf '#!/bin/sh\nexec %q "$@"\n' "$(command -v $program)" >"$tools/$program"
    done
    chmod +x "$tools"/*
    told env -i "PATH=$tools" cmake -G Ninja -S "$sources" -B "$folder" -DCMAKE_C_COMPILER=gcc \
        -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF -DSYNCBLOB_OPENBLAS=OFF -DSYNCBLOB_PROTOBUF_C=OFF \
        -DSYNCBLOB_RANDOM123=OFF
    told env -i "PATH=$tools" cmake --build "$folder" -j "$jobs"
    told env -i "PATH=$tools" gcc -std=c11 "-I$sources/c/include" "$sources/tests/users/consumer/main.c" \
        "$folder/c/libsyncblob.a" -lm -o "$folder/main"
    (cd "$folder" && ./main 0.1.0)
}

# The program syncblob as the tests of the crates have it: with its C library optimised.
build_program() { told cargo test --workspace --locked --no-run; }

build_released_program() { told cargo build --release --locked -p syncblob-cli; }

# The variables are those that the tests read: SYNCBLOB_TEST_WHOLE=1 makes every table whole,
# SYNCBLOB_TEST_FULL=1 adds what takes minutes.
run_ctest() { # [NAME=VALUE...] FOLDER OPTION...
    local variables=()
    while [[ $1 == *=* ]]; do
        variables+=("$1")
        shift
    done
    echo "alone: cmake --build ${build#"$PWD/"}/$1 && ${variables[*]}${variables:+ }ctest" \
        "--test-dir ${build#"$PWD/"}/$1 --output-on-failure"
    # ThreadSanitizer's programs sleep a second at their end, in case a thread still does something.
    env TSAN_OPTIONS=atexit_sleep_ms=100 "${variables[@]}" ctest -j "$jobs" --output-on-failure --no-tests=error \
        --test-dir "$build/$1" "${@:2}"
    by_hand
    cat "$build/$1/Testing/Temporary/LastTest.log" # what those that passed say, too
}
