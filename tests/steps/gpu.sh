# shellcheck shell=bash
# The CUDA backend on a GPU.

# The glibc of RHEL 8; Ubuntu 20.04 has a newer one.
gpu_glibc=2.28

# Programs that find libraries beside them, wherever they are taken, and need no more than an old
# glibc: zig links them against that, without OpenBLAS and gcc's library. The flag for an older tag
# makes libraries of libraries be looked for there, too.
build_gpu_programs() {
    local target=x86_64-linux-gnu.$gpu_glibc
    make_zig "$target"
    tests/project/cross/cmocka.sh "$cache/$target" "-DSYNCBLOB_ZIG=$zig" \
        "-DSYNCBLOB_ZIG_TARGET=$target" "${zig_options[@]}"
    make_build gpu-build release "${cuda_options[@]}" "-DSYNCBLOB_ZIG=$zig" \
        "-DSYNCBLOB_ZIG_TARGET=$target" "-DSYNCBLOB_SYSROOT=$cache/$target" "${zig_options[@]}" \
        -DSYNCBLOB_WERROR=OFF \
        "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags,-rpath,'\$ORIGIN/lib'" \
        "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-rpath,'\$ORIGIN'" \
        -- gpu_programs standin_probe standin_probe_nccl standin_conformance
}

# No file of the bundle asks for a newer glibc than it may, nor for gcc's library or OpenBLAS.
check_gpu_bundle() {
    local file newest status=0
    for file in "$build"/gpu/{gpu.*,bench,probe,probe_nccl,conformance,lib/*}; do
        newest=$(objdump -T "$file" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
        if [ "$(printf '%s\n' "$newest" $gpu_glibc | sort -V | tail -n 1)" != $gpu_glibc ]; then
            echo "${file##*/} needs glibc $newest"
            status=1
        fi
        if objdump -p "$file" | grep -E 'NEEDED.*(libgcc|openblas|gfortran)'; then
            echo "  is needed by ${file##*/}"
            status=1
        fi
    done
    return $status
}

# "NAME PATH" of the libraries that programs need, but those of glibc.
needed_libraries() { # PROGRAM...
    ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
        sed -E '/^(libc|libm|libdl|libpthread|librt|ld-linux[^ ]*)\.so/d'
}

gather_gpu_programs() {
    local from=$build/gpu-build/tests out=$build/gpu name path
    rm -rf "$out"
    mkdir -p "$out/lib"
    cp tests/cuda/gpu/run.sh tests/cuda/gpu/peers.py tests/cuda/standin/contract.tsv \
        tests/cuda/standin/nccl_contract.tsv "$from/cuda/gpu/bench" "$from"/cuda/gpu/gpu.* "$out"
    cp tests/cuda/gpu/beside_torch.py "$out"
    cp "$from/cuda/standin/standin_probe" "$out/probe"
    cp "$from/cuda/standin/standin_probe_nccl" "$out/probe_nccl"
    cp "$from/cuda/standin/standin_conformance" "$out/conformance"
    needed_libraries "$out"/gpu.* "$out"/{bench,probe,probe_nccl,conformance} >"$out/needed"
    needed_libraries "$build/gpu-build/c/libsyncblob.so" >>"$out/needed"
    while read -r name path; do cp -L "$path" "$out/lib/$name"; done <"$out/needed"
    rm "$out/needed"
    [ "$(du -sm "$out" | cut -f1)" -lt 64 ] || die "$out is too large: $(du -sh "$out")"
}

# As on another machine, with a small card: nothing of this environment, nor of the build folder.
run_gpu_programs_on_standins() {
    local libraries=$build/debug/tests/cuda/standin
    gather_gpu_programs
    check_gpu_bundle
    env -i PATH=/usr/bin:/bin "STANDIN_MEMORY=$((4 << 30))" \
        "LD_LIBRARY_PATH=$libraries/lib:$libraries/lib13:$libraries/libn" \
        bash "$build/gpu/run.sh"
}

# On Ubuntu 20.04's glibc, the oldest that Debian's mirrors have, by its own loader. What gpu.memory
# starts again is the loader, so that it stays out.
run_gpu_programs_on_old_glibc() {
    local loader program status=0 libraries=$build/gpu-build/tests/cuda/standin
    loader=$(tests/cuda/fetch_package.sh bullseye main libc6 ld-2.31.so "$cache/glibc") || status=$?
    [ $status = 0 ] || { echo "$loader"; return $status; }
    local run=(env -i "STANDIN_MEMORY=$((4 << 30))" "$loader" --library-path
        "${loader%/*}:$libraries/lib:$libraries/lib13")
    for program in "$build"/gpu/{gpu.[!m]*,conformance}; do "${run[@]}" "$program" || status=1; done
    "${run[@]}" "$build/gpu/probe" "$build/gpu/contract.tsv" || status=1
    "${run[@]}" "$build/gpu/bench" --quick || status=1
    return $status
}

gpu() { # [--pack]
    case ${1:-} in '' | --pack) ;; *) die "gpu takes --pack, not $1" ;; esac
    steps_of='./dev gpu --pack'
    need "$build_needs" "$python_needs" "$test_needs"
    make_python
    SYNCBLOB_NEED_CUDA=1 find_cuda_headers
    {
        step 'programs for a GPU: build' build_gpu_programs
        [ "$step_status" != 0 ] || step "programs for a GPU: in $build/gpu" gather_gpu_programs
        [ "$step_status" != 0 ] || step "programs for a GPU: on glibc $gpu_glibc" check_gpu_bundle
    } >&2
    [ "$step_status" = 0 ] || exit 1
    [ "${1:-}" = --pack ] || exec bash "$build/gpu/run.sh" "$build/gpu"
}
