# shellcheck shell=bash
# Tests that only a full run makes: the library for macOS, which is built and linked but not run; the library
# on Linux with musl; the static command and the published wheels, for x86-64 and aarch64.

zig_options=(-DSYNCBLOB_OPENBLAS=OFF -DSYNCBLOB_PROTOBUF_C=OFF -DSYNCBLOB_RANDOM123=OFF
    "-DCMAKE_TOOLCHAIN_FILE=$PWD/tests/project/cross/zig.cmake")
static_options=(-Clink-self-contained=no -Cstrip=symbols)

# Makes scripts in the folder $zig that run zig's compiler and tools, because CMake and cargo need a command
# of one word. The scripts omit --target=, which cargo's build scripts write in a form that zig does not know.
# For --version the scripts pass no target: with macOS as the target zig would leave an empty file.
make_zig() { # TARGET...
    local python target tool program
    [ "$(uname -m)" = x86_64 ] || skip 'zig is pinned for x86-64 alone'
    python=$(environment zig)
    program=$(echo "${python%/bin/*}"/lib/python3*/site-packages/ziglang/zig)
    zig=$cache/zig-tools
    mkdir -p "$zig"
    for target in "$@"; do
        cat >"$zig/cc-$target" <<END
#!/bin/sh
[ "\$*" != --version ] || exec $program cc --version
for word; do
    shift
    case \$word in --target=*) ;; *) set -- "\$@" "\$word" ;; esac
done
exec $program cc -fno-sanitize=undefined -target $target "\$@"
END
    done
    for tool in ar ranlib nm; do
        printf '#!/bin/sh\nexec %q %s "$@"\n' "$program" "$tool" >"$zig/$tool"
    done
    chmod +x "$zig"/*
}

build_with_zig() { # FOLDER TARGET [OPTION-OF-CMAKE...]
    make_zig "$2"
    build "$1" release "-DSYNCBLOB_ZIG=$zig" "-DSYNCBLOB_ZIG_TARGET=$2" "${zig_options[@]}" "${@:3}"
}

build_musl() {
    local target=x86_64-linux-musl
    make_zig "$target"
    cross cmocka "$cache/$target" "-DSYNCBLOB_ZIG=$zig" "-DSYNCBLOB_ZIG_TARGET=$target" "${zig_options[@]}"
    build_with_zig musl "$target" "-DSYNCBLOB_SYSROOT=$cache/$target" -DBUILD_SHARED_LIBS=OFF \
        -DSYNCBLOB_WERROR=OFF -DCMAKE_EXE_LINKER_FLAGS=-static
}

# Builds a Rust program for another system, linked by zig, which has the system's libraries.
zig_command() { # RUST-TARGET ZIG-TARGET OUT OPTION-OF-RUSTC...
    local target=$1 name=${1//-/_} folder=$cache/rust-${1%%-*} crate=${crate:-bindings/syncblob-cli}
    make_zig "$2"
    cross rust "$cache/rust" "$target"
    by_hand env "PATH=$cache/rust/bin:$PATH" "CARGO_TARGET_DIR=$folder" "AR_$name=$zig/ar" \
        "CC_$name=$zig/cc-$2" "CARGO_TARGET_${name^^}_LINKER=$zig/cc-$2" \
        cargo rustc --manifest-path "$crate/Cargo.toml" --bin "${3##*/}" --release --locked --target "$target" \
        -- "${@:4}"
    mkdir -p "${3%/*}"
    cp "$folder/$target/release/${3##*/}" "$3"
}

# The oldest macOS that zig links for; without a version zig links for the newest.
oldest_macos=11.0

# Checks a file's processor, oldest macOS, libraries and signature. Apple's processors need signed code.
check_mach_o() { # MACHINE FILE
    local headers
    local -A processors=([aarch64]=ARM64 [x86_64]=X86_64)
    headers=$(llvm-objdump-14 --macho --private-headers "$2")
    diff - <(awk '
        $1 == "MH_MAGIC_64" { print "for " $2 }
        $1 == "cmd" { command = $2 }
        $1 == "minos" { print "from macOS " $2 }
        command == "LC_ID_DYLIB" { next }
        $1 == "name" && command ~ /DYLIB$/ { print "needs " $2 }' <<<"$headers" | sort) <<END
for ${processors[$1]}
from macOS $oldest_macos
needs /usr/lib/libSystem.B.dylib
END
    [ "$1" = x86_64 ] || grep -w LC_CODE_SIGNATURE <<<"$headers"
}

# Checks that a program links with only the static library and the system's libraries, and that the map
# lists the exports.
check_macos() { # MACHINE
    local folder=$build/$1-macos
    build_with_zig "$1-macos" "$1-macos.$oldest_macos" -DSYNCBLOB_BUILD_TESTS=OFF
    "$zig/cc-$1-macos.$oldest_macos" -std=c11 -Ic/include tests/users/consumer/main.c \
        "$folder/c/libsyncblob.a" -o "$folder/main"
    check_mach_o "$1" "$folder/main"
    check_mach_o "$1" "$folder/c/libsyncblob.dylib"
    diff <(sed -n 's/^    \(sb_[a-z0-9_]*\);$/\1/p' c/abi/libsyncblob.map | sort) \
        <(llvm-nm-14 -gU "$folder/c/libsyncblob.dylib" | sed -n 's/.* _\(sb_[a-z0-9_]*\)$/\1/p' | sort)
}

# An empty libiconv replaces Apple's SDK: Rust's crate libc links iconv but never calls it, and zig does
# not have it. The program is not stripped: the distribution's Rust has no tool for this.
check_macos_command() { # MACHINE
    local out=$build/$1-macos-command/syncblob sdk=$cache/macos-sdk
    mkdir -p "$sdk"
    printf '!<arch>\n' >"$sdk/libiconv.a"
    SDKROOT=$sdk zig_command "$1-apple-darwin" "$1-macos.$oldest_macos" "$out" "-Lnative=$sdk" -Cstrip=none
    check_mach_o "$1" "$out"
}

static_command() { # OUT [CRATE]
    if [ ! -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ]; then
        cross rust "$cache/rust"
        local PATH=$cache/rust/bin:$PATH
    fi
    bindings/syncblob-cli/static.sh "$@"
}

# Runs two static programs in a root folder without other files. An emulator runs programs for aarch64.
check_static_commands() { # MACHINE
    local model folder=$build/static-$1 target=$1-linux-musl
    model=$(download model)
    if [ "$1" = "$(uname -m)" ]; then
        static_command "$folder/syncblob"
        static_command "$folder/unwind" tests/users/consumer/unwind
        tests/users/consumer/static_command.sh "$folder" "$model"
    else
        zig_command "$1-unknown-linux-musl" "$target" "$folder/syncblob" "${static_options[@]}"
        crate=tests/users/consumer/unwind zig_command "$1-unknown-linux-musl" "$target" "$folder/unwind" \
            "${static_options[@]}"
        tests/users/consumer/static_command.sh "$folder" "$model" "qemu-$1"
        compare_command "qemu-$1" "$folder/syncblob"
    fi
}

# Builds and tests the published wheel, which needs glibc 2.28 or newer and no other library. zig links for
# glibc 2.28, but does not have the function that __builtin_cpu_supports calls. gcc's runtime has it.
check_published_wheel() { # MACHINE
    local target=$1-unknown-linux-gnu out=$build/python-$1 linking=() python tool
    tool=$(environment published)
    python=$(environment pip)
    if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
        cross rust "$cache/rust" "$target"
        local PATH=$cache/rust/bin:$PATH CARGO_TARGET_DIR=$cache/rust-$1
    fi
    [ "$1" != x86_64 ] || linking=(-- -C "link-arg=$(gcc -print-libgcc-file-name)")
    rm -rf "$out"
    by_hand env PATH="${tool%/*}:$PATH" maturin build --release --strip --locked \
        --manifest-path bindings/syncblob-python/Cargo.toml --zig --compatibility manylinux_2_28 \
        --target "$target" --out "$out" "${linking[@]}"
    "$tool" tests/users/python/check_published.py "$out"/*.whl
    if [ "$1" = "$(uname -m)" ]; then
        "$python" tests/users/python/check.py "$out"/*.whl
    else
        emulate_python "$out" "$python"
    fi
}

# Tests a wheel with the distribution's Python for aarch64, by a script that Python can also use to start itself.
# This machine's pip fetches the packages: under qemu-user pip is too slow for the servers.
emulate_python() { # FOLDER-OF-WHEEL PYTHON
    local version list sysroot=$cache/sysroot-arm64-python
    version=$(/usr/bin/python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    cross sysroot arm64 "$sysroot" libc6 libgcc-s1 "$version-minimal" "lib$version-minimal" \
        "lib$version-stdlib" zlib1g libexpat1 libffi8 libbz2-1.0 liblzma5 libssl3
    # shellcheck disable=SC2016 # the script's own
    printf '#!/bin/sh\nexec qemu-aarch64 -L %q -0 "$0" %q "$@"\n' "$sysroot" "$sysroot/usr/bin/$version" \
        >"$sysroot/usr/bin/python3"
    chmod +x "$sysroot/usr/bin/python3"
    for list in numpy-1 numpy-2; do
        requirements $list >"$1/$list.txt"
        "$2" -m pip --python /usr/bin/python3 download --quiet --only-binary :all: \
            --platform manylinux2014_aarch64 --dest "$1/needed" -r "$1/$list.txt"
    done
    ulimit -d 8000000 # qemu-user never frees a page
    PIP_NO_INDEX=1 PIP_FIND_LINKS=$1/needed \
        "$2" tests/users/python/check.py "$1"/*.whl --python "$sysroot/usr/bin/python3"
}

# Checks the public headers as MSVC reads them: with only the compiler's headers, and without the attributes
# of GNU C. clang accepts these attributes for MSVC's target, too.
check_windows_headers() {
    local compiler=$build/clang-cl
    cat >"$compiler" <<'END'
#!/bin/sh
exec clang --target=x86_64-pc-windows-msvc -fms-compatibility-version=19.20 -ffreestanding \
    '-D__attribute__(x)=not_in_MSVC' "$@"
END
    chmod +x "$compiler"
    tests/project/abi/check_headers.sh "$compiler" "$compiler" c/{,testing/,conformance/,comm/}include
}

# Tests the command for Windows with the oldest supported Rust.
test_windows_command() {
    cross rust "$cache/rust" "$windows_target"
    make_random_dll
    export PATH=$cache/rust/bin:$PATH RUST_TEST_THREADS=1
    in_wine windows_cargo "$cache/rust-windows" test --no-fail-fast
    compare_command in_wine wine "$cache/rust-windows/$windows_target/debug/syncblob.exe"
}
