# shellcheck shell=bash
# Systems whose headers zig has: macOS, built and linked but not run, and Linux with musl, whose tests
# are static programs that run here.

# shellcheck disable=SC2034 # steps name it
zig_needs='
llvm-14           | command -v llvm-nm-14
'
zig_options=(-DSYNCBLOB_OPENBLAS=OFF -DSYNCBLOB_PROTOBUF_C=OFF -DSYNCBLOB_RANDOM123=OFF
    "-DCMAKE_TOOLCHAIN_FILE=$PWD/tests/project/cross/zig.cmake")

# A static program looks no function up while it runs.
musl_left_out='threads\.fast_path'
# Scripts, and what takes minutes.
musl_left_out+='|fuzz\.mutations|faults\.functions|abi\.|consumer\.|differences\.|behaviour\.filler_statistics'

# zig as compilers and tools of one word, for CMake and cargo, in the folder $zig. cargo's build
# scripts give a target by a name that zig does not know. Asked for its version with macOS as the
# target, it leaves an empty file behind.
make_zig() { # TARGET...
    local target tool program
    [ "$(uname -m)" = x86_64 ] || { echo 'skipped: zig is pinned for x86-64 alone'; return 77; }
    make_environment "$cache/zig" tests/project/cross/zig.txt --require-hashes
    program=$(echo "$cache"/zig/lib/python3*/site-packages/ziglang/zig)
    zig=$cache/zig/tools
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

# The oldest macOS that takes what zig links, which asks for its newest one otherwise.
oldest_macos=11.0

build_macos() { # MACHINE
    local target=$1-macos.$oldest_macos
    make_zig "$target"
    make_build "$1-macos" release "-DSYNCBLOB_ZIG=$zig" "-DSYNCBLOB_ZIG_TARGET=$target" \
        "${zig_options[@]}" -DSYNCBLOB_BUILD_TESTS=OFF
}

build_macos_arm() { build_macos aarch64; }

build_macos_intel() { build_macos x86_64; }

# Its processor, the oldest macOS, the libraries. Apple's processors run nothing that is not signed.
check_mach_o() { # MACHINE FILE
    local said
    local -A processors=([aarch64]=ARM64 [x86_64]=X86_64)
    said=$(llvm-objdump-14 --macho --private-headers "$2")
    diff - <(awk '
        $1 == "MH_MAGIC_64" { print "for " $2 }
        $1 == "cmd" { command = $2 }
        $1 == "minos" { print "from macOS " $2 }
        command == "LC_ID_DYLIB" { next }
        $1 == "name" && command ~ /DYLIB$/ { print "needs " $2 }' <<<"$said" | sort) <<END
for ${processors[$1]}
from macOS $oldest_macos
needs /usr/lib/libSystem.B.dylib
END
    [ "$1" = x86_64 ] || grep -w LC_CODE_SIGNATURE <<<"$said"
}

# A program finds all it needs in the static library and the system's; the exports are the map's.
check_macos() { # MACHINE
    local folder=$build/$1-macos
    "$cache/zig/tools/cc-$1-macos.$oldest_macos" -std=c11 -Ic/include tests/users/consumer/main.c \
        "$folder/c/libsyncblob.a" -o "$folder/main"
    check_mach_o "$1" "$folder/main"
    check_mach_o "$1" "$folder/c/libsyncblob.dylib"
    diff <(sed -n 's/^    \(sb_[a-z0-9_]*\);$/\1/p' c/abi/libsyncblob.map | sort) \
        <(llvm-nm-14 -gU "$folder/c/libsyncblob.dylib" | sed -n 's/.* _\(sb_[a-z0-9_]*\)$/\1/p' | sort)
}

# The folder that stands for Apple's SDK has one library, which is empty: Rust's crate libc asks for
# iconv, of which zig has no list of functions. Nobody calls them, or the program is not linked. The
# distribution's Rust has no tool that strips it.
check_macos_command() { # MACHINE
    local folder=$build/$1-macos-command sdk=$cache/zig/sdk
    mkdir -p "$sdk"
    printf '!<arch>\n' >"$sdk/libiconv.a"
    SDKROOT=$sdk link_by_zig "$1-apple-darwin" "$1-macos.$oldest_macos" bindings/syncblob-cli \
        syncblob "$folder" "-Lnative=$sdk" -Cstrip=none
    check_mach_o "$1" "$folder/syncblob"
}

build_musl() {
    local target=x86_64-linux-musl status=0
    make_zig $target
    tests/project/cross/cmocka.sh "$cache/$target" "-DSYNCBLOB_ZIG=$zig" "-DSYNCBLOB_ZIG_TARGET=$target" \
        "${zig_options[@]}" || status=$?
    if [ $status = 3 ]; then
        echo "skipped: tests on musl: cmocka's source cannot be had"
        return 77
    fi
    [ $status = 0 ] || return $status
    make_build musl release "-DSYNCBLOB_ZIG=$zig" "-DSYNCBLOB_ZIG_TARGET=$target" \
        "-DSYNCBLOB_SYSROOT=$cache/$target" "${zig_options[@]}" -DBUILD_SHARED_LIBS=OFF \
        -DSYNCBLOB_WERROR=OFF -DCMAKE_EXE_LINKER_FLAGS=-static
}

zig_full_steps() {
    on 'zig_needs macos_arm' step 'macOS (arm64): linked, exports' check_macos aarch64
    on 'zig_needs macos_intel' step 'macOS (x86-64): linked, exports' check_macos x86_64
    on zig_needs step 'macOS (arm64): the command, linked' check_macos_command aarch64
    on zig_needs step 'macOS (x86-64): the command, linked' check_macos_command x86_64
    on musl step 'musl: tests' run_ctest musl -E "^($musl_left_out)"
}
