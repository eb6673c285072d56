# shellcheck shell=bash
# Makes builds, and runs the tests in their folders.

# first_failure.py searches the log for "alone:".
by_hand() { # COMMAND...
    echo "alone:$(printf ' %q' "${@/#"$PWD/"/}")"
    "$@" || return
    echo 'alone:'
}

configure() { # FOLDER PRESET OPTION-OF-CMAKE...
    local options=() headers
    case $1 in
    debug | asan | tsan | aarch64 | gpu-build*)
        if headers=$(cuda_headers 13); then options=("-DSYNCBLOB_CUDA_HEADERS=$headers"); fi
        ;;
    esac
    by_hand cmake --preset "$2" -B "$build/$1" "${options[@]}" "${@:3}"
}

build() { # FOLDER PRESET [OPTION-OF-CMAKE...] [-- TARGET...]
    local folder=$1 options=()
    while [ $# != 0 ] && [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    configure "${options[@]}"
    if [ $# != 0 ]; then set -- --target "${@:2}"; fi
    by_hand cmake --build "$build/$folder" -j "$jobs" "$@"
}

# With SYNCBLOB_TEST_WHOLE=1, table-driven tests run all rows. SYNCBLOB_TEST_FULL=1 adds slow tests.
c_tests() { # [NAME=VALUE...] FOLDER OPTION-OF-CTEST...
    local variables=() status=0
    while [[ $1 == *=* ]]; do
        variables+=("$1")
        shift
    done
    local ctest=(ctest --test-dir "$build/$1" --output-on-failure "${memcheck[@]}")
    echo "alone: cmake --build ${build#"$PWD/"}/$1 && ${variables[*]}${variables:+ }${ctest[*]}"
    # By default ThreadSanitizer sleeps for a second at exit.
    env TSAN_OPTIONS=atexit_sleep_ms=100 "${variables[@]}" "${ctest[@]}" -j $((jobs + 1)) --no-tests=error "${@:2}" || status=$?
    echo 'alone:'
    cat "$build/$1"/Testing/Temporary/{LastTest,MemoryChecker.*}.log 2>/dev/null || true # has the reasons for skipped tests
    return $status
}

# Unlike gcc's sanitizers, memcheck finds reads of uninitialised bytes.
memcheck=()
memcheck() { # FOLDER OPTION-OF-CTEST...
    cat >"$build/$1/DartConfiguration.tcl" <<END
MemoryCheckCommand: $(command -v valgrind)
MemoryCheckCommandOptions: --quiet --error-exitcode=9 --leak-check=full --child-silent-after-fork=yes \
--suppressions=$PWD/tests/support/valgrind.supp --errors-for-leak-kinds=definite,possible
END
    rm -f "$build/$1"/Testing/Temporary/*.log
    memcheck=(-T memcheck)
    c_tests "$@"
}

# Tests that CMake builds the library without pkg-config and without the system's folders.
build_plainly() { # [SOURCES]
    local sources=${1:-.} tools=$build/plain-tools folder=$build/plain program
    rm -rf "$tools" "$folder"
    mkdir -p "$tools"
    for program in cmake ninja gcc as ld ar ranlib; do
        printf '#!/bin/sh\nexec %q "$@"\n' "$(command -v $program)" >"$tools/$program"
    done
    chmod +x "$tools"/*
    by_hand env -i "PATH=$tools" cmake -G Ninja -S "$sources" -B "$folder" -DCMAKE_C_COMPILER=gcc \
        -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF -DSYNCBLOB_OPENBLAS=OFF -DSYNCBLOB_PROTOBUF_C=OFF \
        -DSYNCBLOB_RANDOM123=OFF -DCMAKE_BUILD_TYPE=Debug
    by_hand env -i "PATH=$tools" cmake --build "$folder" -j "$jobs"
    by_hand env -i "PATH=$tools" gcc -std=c11 "-I$sources/c/include" "$sources/tests/users/consumer/main.c" \
        "$folder/c/libsyncblob.a" -lm -o "$folder/main"
    (cd "$folder" && ./main 0.1.0)
    # fails if the compiler found a header of an omitted library
    if ninja -C "$folder" -t deps | grep -E '/(Random123|protobuf-c|cblas)[^ ]*\.h$|/cuda\.h$'; then return 1; fi
}

# --- ./dev test NAME

test_name() { # NAME|FILE
    local name=$1
    if [[ ${name/\/tests\//\/} =~ ([^/]+)/test_([^/]+)\.c$ ]]; then
        echo "${BASH_REMATCH[1]}.${BASH_REMATCH[2]}"
        return
    fi
    case $name in *.c | *.rs) name=${name##*/} name=${name%.*} ;; esac
    echo "${name#test_}"
}

targets_of_tests() {
    local test targets
    targets=$(ninja -C "$build/debug" -t targets all | sed -n 's/: phony$//p')
    sed -E 's/\.(eager|lazy|random)$//; s/^fuzz\./replay./' |
        while read -r test; do grep -xF -e "$test" <<<"$targets" || echo all; done | sort -u
}

# Returns 3 if no C test matches.
c_tests_named() { # NAME|FILE
    local pattern tests
    pattern=$(test_name "$1" | sed 's/[][\.*^$+?()|]/\\&/g')
    case $1 in *.c) pattern+='(\.|$)' ;; esac
    configure debug debug -DCMAKE_C_COMPILER=gcc -DSYNCBLOB_NET=ON >/dev/null
    tests=$(ctest --test-dir "$build/debug" -N -R "$pattern" | sed -n 's/^ *Test *#[0-9]*: //p')
    [ -n "$tests" ] || return 3
    targets_of_tests <<<"$tests" | xargs cmake --build "$build/debug" -j "$jobs" --target
    SYNCBLOB_TEST_WHOLE=1 ctest --test-dir "$build/debug" -j "$jobs" --output-on-failure -R "$pattern"
}

# Returns 3 if no Rust test matches. The members of cargo's workspace enable each other's features.
rust_tests_named() { # NAME|FILE
    local name file targets=()
    name=$(test_name "$1")
    if compgen -G "bindings/*/tests/*$name*.rs" >/dev/null; then
        cargo test --locked --workspace --test "*$name*"
        return
    fi
    while read -r file; do
        case $file in
        bindings/*/tests/*.rs) file=${file##*/} targets+=(--test "${file%.rs}") ;;
        *) targets+=(--lib --bins) ;;
        esac
    done < <(grep -rl '#\[test\]' bindings/*/{src,tests} | grep -F "$name" ||
        grep -rlE "^ *fn [a-z0-9_]*$name" --include='*.rs' bindings/*/{src,tests})
    [ ${#targets[@]} != 0 ] || return 3
    cargo test --locked --workspace "${targets[@]}" -- "$name"
}
