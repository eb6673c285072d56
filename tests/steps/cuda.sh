# shellcheck shell=bash
# The CUDA backend without a GPU, and the programs that test and measure it on one.

# Our declarations against NVIDIA's headers of both versions.
check_cuda_declarations() {
    local version headers folders
    for version in 12 13; do
        headers=$(cuda_headers $version) || headers=
        if [ -z "$headers" ]; then
            [ "${SYNCBLOB_NEED_CUDA:-}" != 1 ] || die "CUDA's headers cannot be fetched"
            skip "CUDA's headers cannot be fetched: no tests on a fake driver"
        fi
        IFS=';' read -ra folders <<<"$headers"
        gcc -std=c17 -Wall -Wextra -Werror -fsyntax-only -Ic/comm/src/nccl -Ic/include \
            "${folders[@]/#/-isystem}" tests/cuda/fake/check_declarations.c
    done
}

# NVIDIA's driver library as a release of Debian has it, without a device.
check_real_driver() { # SUITE
    local library folder=$build/real-driver/$1
    library=$(tests/cuda/fetch_package.sh "$1" non-free libcuda1 libcuda.so.1 "$cache/libcuda/$1") ||
        skip "the driver of $1: $library"
    mkdir -p "$folder"
    tr -d '\\\n' <cuda/declarations.h | grep -oE 'F\(sb__cu_result, *[a-zA-Z0-9_]+' | sed 's/.*, *//' |
        sort >"$folder/wanted"
    [ "$(wc -l <"$folder/wanted")" -ge 6 ] || die 'no names are found in cuda/declarations.h'
    nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u |
        comm -23 "$folder/wanted" - | diff - /dev/null # the names that it lacks
    gcc -std=c17 -Wall -Wextra -Werror -fsanitize=address,undefined -Ic/include \
        tests/cuda/fake/no_device.c -o "$folder/no_device" -L"$build/asan/c" -lsyncblob
    # 535 leaves memory behind when it is closed, which is not the library's
    ASAN_OPTIONS=detect_leaks=0 LD_LIBRARY_PATH=$build/asan/c:${library%/*} "$folder/no_device"
}

# The glibc of RHEL 8; Ubuntu 20.04 has a newer one.
gpu_glibc=2.28

# The programs find libraries beside them, and need no more than an old glibc: zig links them against
# that, without OpenBLAS and gcc's library. The flag for an older tag makes the loader look there for
# libraries of libraries, too.
build_gpu_programs() {
    local target=x86_64-linux-gnu.$gpu_glibc
    make_zig "$target"
    cross cmocka "$cache/$target" "-DSYNCBLOB_ZIG=$zig" "-DSYNCBLOB_ZIG_TARGET=$target" "${zig_options[@]}"
    build gpu-build release "-DSYNCBLOB_ZIG=$zig" "-DSYNCBLOB_ZIG_TARGET=$target" \
        "-DSYNCBLOB_SYSROOT=$cache/$target" "${zig_options[@]}" -DSYNCBLOB_WERROR=OFF \
        "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags,-rpath,'\$ORIGIN/lib'" \
        "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-rpath,'\$ORIGIN'" \
        -- gpu_programs fake.probe fake.conformance
    gather_gpu_programs
    check_gpu_bundle
}

# "NAME PATH" of the libraries that programs need, but those of glibc.
needed_libraries() { # PROGRAM...
    ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
        sed -E '/^(libc|libm|libdl|libpthread|librt|ld-linux[^ ]*)\.so/d'
}

gather_gpu_programs() {
    local from=$build/gpu-build/tests/cuda out=$build/gpu program name path
    rm -rf "$out"
    mkdir -p "$out/lib"
    cp tests/cuda/gpu/{run.sh,peers.py,beside_torch.py} tests/cuda/fake/contract.tsv \
        "$from/gpu/bench" "$from"/gpu/gpu.* "$out"
    for program in probe conformance; do cp "$from/fake/fake.$program" "$out/$program"; done
    { needed_libraries "$out"/gpu.* "$out"/{bench,probe,conformance}
      needed_libraries "$build/gpu-build/c/libsyncblob.so"; } |
        while read -r name path; do cp -L "$path" "$out/lib/$name"; done
    [ "$(du -sm "$out" | cut -f1)" -lt 64 ] || die "$out is too large: $(du -sh "$out")"
}

# No file of the bundle needs a newer glibc, gcc's library or OpenBLAS.
check_gpu_bundle() {
    local file newest
    for file in "$build"/gpu/{gpu.*,bench,probe,conformance,lib/*}; do
        newest=$(objdump -T "$file" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
        is_at_least $gpu_glibc "$newest" || die "${file##*/} needs glibc $newest"
        if objdump -p "$file" | grep -E 'NEEDED.*(libgcc|openblas|gfortran)'; then die "${file##*/} needs it"; fi
    done
}

# As on another machine, with a small card: with nothing of this environment and of the build folder.
run_gpu_programs() {
    local libraries=$build/debug/tests/cuda/fake
    env -i PATH=/usr/bin:/bin "FAKE_MEMORY=$((4 << 30))" \
        "LD_LIBRARY_PATH=$libraries/lib:$libraries/lib13:$libraries/libn" bash "$build/gpu/run.sh"
}
