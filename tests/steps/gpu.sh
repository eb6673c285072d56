# shellcheck shell=bash
# The CUDA backend on a GPU.

# Programs that find libraries beside them, wherever they are taken; the flag for an older tag
# makes libraries of libraries be looked for there, too.
build_gpu_programs() {
    make_build gpu-build release $gcc "${cuda_options[@]}" \
        "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags,-rpath,'\$ORIGIN/lib'" \
        "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-rpath,'\$ORIGIN'" \
        -- gpu_programs standin_probe standin_conformance
}

# "NAME PATH" of the libraries that programs need, but those of glibc.
needed_libraries() { # PROGRAM...
    ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
        grep -vE '^(libc|libm|libdl|libpthread|librt|ld-linux[^ ]*)\.so'
}

gather_gpu_programs() {
    local from=$build/gpu-build/tests out=$build/gpu name path
    rm -rf "$out"
    mkdir -p "$out/lib"
    cp tests/cuda/gpu/run.sh tests/cuda/gpu/peers.py tests/cuda/standin/contract.tsv \
        "$from/cuda/gpu/bench" "$from"/cuda/gpu/gpu.* "$out"
    cp "$from/cuda/standin/standin_probe" "$out/probe"
    cp "$from/cuda/standin/standin_conformance" "$out/conformance"
    # OpenBLAS is the one that the library itself was linked with
    needed_libraries "$out"/gpu.* "$out/bench" "$out/probe" "$out/conformance" >"$out/needed"
    needed_libraries "$build/gpu-build/c/libsyncblob.so" >>"$out/needed"
    while read -r name path; do cp -L "$path" "$out/lib/$name"; done <"$out/needed"
    rm "$out/needed"
    [ "$(du -sm "$out" | cut -f1)" -lt 64 ] || die "$out is too large: $(du -sh "$out")"
}

# As on another machine: nothing of this environment, nor of the build folder.
run_gpu_programs_on_standins() {
    local libraries=$build/debug/tests/cuda/standin
    gather_gpu_programs
    env -i PATH=/usr/bin:/bin "LD_LIBRARY_PATH=$libraries/lib:$libraries/lib13" \
        bash "$build/gpu/run.sh"
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
    } >&2
    [ "$step_status" = 0 ] || exit 1
    [ "${1:-}" = --pack ] || exec bash "$build/gpu/run.sh" "$build/gpu"
}
