# shellcheck shell=bash
# Tests the CUDA backend without a GPU, and builds the programs that test and measure it on a GPU.

check_cuda_declarations() {
    local version headers folders
    sh tests/cuda/fake/list_constants.sh >"$build/constants.inc"
    for version in 12 13; do
        headers=$(cuda_headers $version) || headers=
        if [ -z "$headers" ]; then
            [ "${SYNCBLOB_NEED_CUDA:-}" != 1 ] || die "CUDA's headers cannot be fetched"
            skip "CUDA's headers cannot be fetched: no tests on a fake driver"
        fi
        IFS=';' read -ra folders <<<"$headers"
        gcc -std=c17 -Wall -Wextra -Werror -fsyntax-only -Ic/comm/src/nccl -Ic/include "-I$build" \
            "${folders[@]/#/-isystem}" tests/cuda/fake/check_declarations.c
    done
}

# Tests the backend with NVIDIA's real driver library, but without a device.
check_real_driver() { # SUITE
    local library folder=$build/real-driver/$1 program=$build/asan/tests/cuda/fake/fake.open
    [ -x "$program" ] || skip "no program is built: CUDA's headers cannot be fetched"
    [ "$(uname -m)" = x86_64 ] || skip 'the driver is fetched only on x86-64'
    DEBIAN="$1 non-free" cross sysroot amd64 "$cache/driver-$1" libcuda1
    library=$(find "$cache/driver-$1" -name libcuda.so.1 | grep .)
    mkdir -p "$folder"
    tr -d '\\\n' <cuda/declarations.h | grep -oE 'F\(sb__cu_result, *[a-zA-Z0-9_]+' | sed 's/.*, *//' |
        sort >"$folder/wanted"
    [ "$(wc -l <"$folder/wanted")" -ge 6 ] || die 'no names are found in cuda/declarations.h'
    nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u |
        comm -23 "$folder/wanted" - | diff - /dev/null # fails if the library lacks a name
    # version 535 of the driver leaks memory when it is closed
    ASAN_OPTIONS=detect_leaks=0 LD_LIBRARY_PATH=${library%/*} "$program" --real-driver
}

# RHEL 8 has this version of glibc.
gpu_glibc=2.28

# With --disable-new-dtags the loader also searches the folder lib for the dependencies of the libraries in lib.
build_gpu_programs() { # [PROCESSOR...]
    local processor target suffix
    for processor in "${@:-x86_64}"; do
        target=$processor-linux-gnu.$gpu_glibc suffix=
        [ "$processor" = x86_64 ] || suffix=-$processor
        make_zig "$target"
        cross cmocka "$cache/$target" "-DSYNCBLOB_ZIG=$zig" "-DSYNCBLOB_ZIG_TARGET=$target" "${zig_options[@]}"
        build "gpu-build$suffix" release "-DSYNCBLOB_ZIG=$zig" "-DSYNCBLOB_ZIG_TARGET=$target" \
            "-DSYNCBLOB_SYSROOT=$cache/$target" "${zig_options[@]}" -DSYNCBLOB_WERROR=OFF \
            "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags,-rpath,'\$ORIGIN/lib'" \
            "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-rpath,'\$ORIGIN'" \
            -- gpu_programs fake.probe fake.conformance
        gather_gpu_programs "$build/gpu-build$suffix" "$build/gpu$suffix"
        check_gpu_bundle "$build/gpu$suffix"
    done
}

gather_gpu_programs() { # FROM TO
    local from=$1 out=$2 program
    rm -rf "$out"
    mkdir -p "$out/lib"
    cp tests/cuda/gpu/{run.sh,beside_torch.py} tests/cuda/fake/contract.tsv \
        "$from"/tests/cuda/gpu/{bench,ranks,gpu.*} "$out"
    for program in probe conformance; do cp "$from/tests/cuda/fake/fake.$program" "$out/$program"; done
    cp "$from"/c/libsyncblob.so.?.? "$from"/c/comm/libsyncblob-comm.so.?.? "$out/lib"
    [ "$(du -sm "$out" | cut -f1)" -lt 64 ] || die "$out is too large: $(du -sh "$out")"
}

# The files of the bundle may need only an old glibc and each other.
check_gpu_bundle() { # FOLDER
    local file newest foreign
    for file in "$1"/{gpu.*,bench,ranks,probe,conformance,lib/*}; do
        newest=$(readelf -W -V "$file" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
        is_at_least $gpu_glibc "$newest" || die "${file##*/} needs glibc $newest"
        foreign=$(readelf -W -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
            sed -E '/^(libc|libm|libdl|libpthread|librt|ld-linux[^ ]*)\.so/d' |
            while read -r name; do [ -e "$1/lib/$name" ] || echo "$name"; done)
        [ -z "$foreign" ] || die "${file##*/} needs $foreign"
    done
}

# run.sh must find NCCL in the folder of a Python package.
run_gpu_programs() {
    local libraries=$build/debug/tests/cuda/fake packages=$build/gpu-packages
    mkdir -p "$packages/nvidia/nccl/lib"
    ln -sf "$libraries/libn/libnccl.so.2" "$packages/nvidia/nccl/lib/"
    env -i PATH=/usr/bin:/bin "FAKE_MEMORY=$((4 << 30))" "PYTHONPATH=$packages" \
        "LD_LIBRARY_PATH=$libraries/lib:$libraries/lib13" bash "$build/gpu/run.sh" | tee "$packages/results.md"
    grep -qxF "| NCCL's ranks | ok |" "$packages/results.md"
}

emulate_gpu_programs() { # FOLDER
    local sysroot=$cache/sysroot-arm64-libc program
    cross sysroot arm64 "$sysroot" libc6
    rm -rf "$1"
    cp -r "$build/gpu-aarch64" "$1"
    for program in "$1"/{gpu.*,bench,ranks,probe,conformance}; do
        printf '#!/bin/sh\nexec qemu-aarch64 -0 %q -L %q %q "$@"\n' "$program" "$sysroot" \
            "$build/gpu-aarch64/${program##*/}" >"$program"
    done
}

run_gpu_programs_elsewhere() {
    local folder status fakes=$build/gpu-build-aarch64/tests/cuda/fake emulated=$build/gpu-emulated
    emulate_gpu_programs "$emulated"
    for folder in "$build/gpu" "$emulated"; do
        status=0
        env -i PATH=/usr/bin:/bin bash "$folder/run.sh" || status=$?
        [ $status = 77 ] || die "status $status without a device"
    done
    env -i PATH=/usr/bin:/bin "LD_LIBRARY_PATH=$fakes/lib:$fakes/lib13:$fakes/libn" \
        bash "$emulated/run.sh" "$emulated" probe tests ranks
}
