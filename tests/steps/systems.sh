# shellcheck shell=bash
# Builds and tests for other processors, i386 and Windows (by qemu-user, natively and by wine).

build_for() { # MACHINE ARCHITECTURE-OF-DEBIAN OPTION-OF-CMAKE... [-- TARGET...]
    local needed=(libc6 libgcc-s1 libprotobuf-c1 libprotobuf-c-dev libcmocka0 libcmocka-dev librandom123-dev)
    [ "$1" != aarch64 ] || needed+=(libopenblas0-serial libopenblas-serial-dev libgfortran5)
    cross sysroot "$2" "$cache/sysroot-$2" "${needed[@]}"
    build "$1" release "-DSYNCBLOB_MACHINE=$1" "-DSYNCBLOB_SYSROOT=$cache/sysroot-$2" \
        "-DCMAKE_TOOLCHAIN_FILE=$PWD/tests/project/cross/debian.cmake" "${@:3}"
}

# qemu-user never frees a page, so a limit prevents a program from using all memory.
emulated_tests() { # MACHINE OPTION-OF-CTEST...
    ulimit -d 8000000
    c_tests "$@"
}

# --- Windows

windows_target=x86_64-pc-windows-gnu

build_windows() { # [-- TARGET...]
    local sysroot=$cache/windows toolchain=-DCMAKE_TOOLCHAIN_FILE=$PWD/tests/project/cross/windows.cmake
    cross cmocka "$sysroot" "$toolchain"
    build windows release "-DSYNCBLOB_SYSROOT=$sysroot" "$toolchain" -DSYNCBLOB_OPENBLAS=OFF \
        -DSYNCBLOB_PROTOBUF_C=OFF -DSYNCBLOB_RANDOM123=OFF "$@"
}

in_wine() { # COMMAND...
    local status jobs=4 # a program under wine mostly waits
    local -
    export WINEPREFIX=$build/windows/wine WINEDEBUG=-all WINEDLLOVERRIDES='mscoree=;mshtml=;winemenubuilder.exe='
    export WINEPATH=${WINEPATH:+$WINEPATH;}Z:${build//\//\\}\\windows
    if [ ! -e "$WINEPREFIX/system.reg" ]; then wineboot --init; fi
    set +e
    (set -e; "$@") # before "||" bash would ignore set -e
    status=$?
    wineserver -k
    return $status
}

# The DLLs must export the same functions as the shared libraries, and need only system DLLs and the core's DLL.
check_windows_dlls() {
    local library names
    for library in c/abi/libsyncblob c/comm/libsyncblob-comm c/testing/libsyncblob-testing \
        c/conformance/libsyncblob-conformance; do
        names=$(x86_64-w64-mingw32-objdump -p "$build/windows/${library/abi\//}.dll")
        diff <(sed -n 's/^    \(sb_[a-z0-9_]*\);$/\1/p' $library.map | sort) \
            <(sed -n '/Export Address Table/,$s/.*\b\(sb_[a-z0-9_]*\)$/\1/p' <<<"$names" | sort -u)
        if grep 'DLL Name' <<<"$names" | grep -viE 'kernel32|advapi32|msvcrt|libsyncblob\.dll'; then return 1; fi
    done
}

check_windows_package() {
    local prefix=$build/windows/prefix client=$build/windows/client component kind flags
    rm -rf "$prefix" "$client"
    for component in Runtime Development Static; do
        cmake --install "$build/windows" --prefix "$prefix" --component $component
    done
    mkdir "$client"
    cat >"$client/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(client C)
find_package(syncblob REQUIRED COMPONENTS \${kind})
add_executable(by_\${kind} "$PWD/tests/users/consumer/main.c")
target_link_libraries(by_\${kind} PRIVATE syncblob::syncblob)
END
    for kind in shared static; do
        cmake -G Ninja -S "$client" -B "$client/$kind" -Dkind=$kind "-DCMAKE_RUNTIME_OUTPUT_DIRECTORY=$client" \
            "-DCMAKE_TOOLCHAIN_FILE=$PWD/c/cmake/mingw.cmake" "-DCMAKE_PREFIX_PATH=$prefix"
        cmake --build "$client/$kind"
    done
    flags=$(PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig pkg-config --static --cflags --libs syncblob)
    # shellcheck disable=SC2086 # several words
    x86_64-w64-mingw32-gcc -static tests/users/consumer/main.c $flags -o "$client/by_pkg_config.exe"
    # shellcheck disable=SC2016 # the inner shell's
    WINEPATH=Z:${prefix//\//\\}\\bin in_wine bash -ec 'cd "$0"; for name; do wine "by_$name.exe" 0.1.0; done' \
        "$client" shared static pkg_config
}

# All build folders share FOLDER, so that crates from the registry are compiled once.
windows_cargo() { # FOLDER WORD OPTION...
    local compiler=x86_64-w64-mingw32-gcc-posix
    env -u RUSTC_WORKSPACE_WRAPPER "CARGO_TARGET_DIR=$1" \
        "CC_x86_64_pc_windows_gnu=${CMAKE_C_COMPILER_LAUNCHER:-} $compiler" \
        CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=$compiler CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine \
        cargo "$2" --locked --target $windows_target -p syncblob-cli "${@:3}"
}

# Rust's standard library needs bcryptprimitives.dll, which wine 8 lacks.
make_random_dll() {
    mkdir -p "$build/windows"
    x86_64-w64-mingw32-gcc-posix -O2 -shared -static-libgcc tests/windows/bcryptprimitives.c \
        -o "$build/windows/bcryptprimitives.dll" -ladvapi32
}

# If rustup is installed, the function may fetch the standard library.
has_rust_target() { # TARGET
    local folder
    folder=$(rustc --print sysroot)/lib/rustlib/$1/lib
    [ -d "$folder" ] && return
    [ -z "${SYNCBLOB_NO_INSTALL:-}" ] && command -v rustup >/dev/null || return 1
    rustup target add "$1" && [ -d "$folder" ]
}

# The command must print the same JSON for a large model as the program of the Rust tests.
compare_command() { # COMMAND...
    local model here there
    model=$(download model)
    here=$("$CARGO_TARGET_DIR/debug/syncblob" info --json "$model")
    there=$("$@" info --json "$model")
    diff <(echo "$here") <(echo "$there")
    wc -c <<<"$there"
}
