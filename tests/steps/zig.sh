# shellcheck shell=bash
# Systems whose headers zig has: macOS, built and linked but not run, and Linux with musl, whose tests
# are static programs that run here.

# shellcheck disable=SC2034 # steps name it
zig_needs='
llvm-14           | command -v llvm-nm-14
'
zig_options=(-DSYNCBLOB_OPENBLAS=OFF -DSYNCBLOB_PROTOBUF_C=OFF -DSYNCBLOB_RANDOM123=OFF
    "-DCMAKE_TOOLCHAIN_FILE=$PWD/tests/project/cross/zig.cmake")

# In a static program the C library's own calls are led elsewhere, too; and no function is looked up
# while it runs.
musl_left_out='behaviour\.page_size|threads\.fast_path'
# Scripts, and what takes minutes.
musl_left_out+='|fuzz\.(seeds|mutations)|faults\.functions|abi\.[^n]|consumer\.|differences\.|behaviour\.filler_statistics'

# zig as compilers and tools of one word, for CMake and cargo, in the folder $zig. cargo's build
# scripts give a target by a name that zig does not know.
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

build_macos() { # TARGET
    make_zig "$1"
    make_build "$1" release "-DSYNCBLOB_ZIG=$zig" "-DSYNCBLOB_ZIG_TARGET=$1" "${zig_options[@]}" \
        -DSYNCBLOB_BUILD_TESTS=OFF
}

build_macos_arm() { build_macos aarch64-macos; }

build_macos_intel() { build_macos x86_64-macos; }

# A program finds all it needs in the static library and the system's; the exports are the map's.
check_macos() { # TARGET
    local folder=$build/$1/c
    "$cache/zig/tools/cc-$1" -std=c11 -Ic/include tests/users/consumer/main.c "$folder/libsyncblob.a" \
        -o "$build/$1/main"
    diff <(sed -n 's/^    \(sb_[a-z0-9_]*\);$/\1/p' c/abi/libsyncblob.map | sort) \
        <(llvm-nm-14 -gU "$folder/libsyncblob.dylib" | sed -n 's/.* _\(sb_[a-z0-9_]*\)$/\1/p' | sort)
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
    on 'zig_needs macos_arm' step 'macOS (arm64): linked, exports' check_macos aarch64-macos
    on 'zig_needs macos_intel' step 'macOS (x86-64): linked, exports' check_macos x86_64-macos
    on musl step 'musl: tests' run_ctest musl -E "^($musl_left_out)"
}
