# shellcheck shell=bash
# ./dev bench. SYNCBLOB_VECTORS=portable or =avx2 measures code for processors with narrower vectors.

bench_folder=$build/bench${SYNCBLOB_VECTORS:+-$SYNCBLOB_VECTORS}

make_caffe_peer() {
    local archive
    archive=$(download caffe)
    tests/bench/peers/build_caffe.sh "$archive" "$cache/caffe-peer"
}

build_bench() {
    build "${bench_folder##*/}" release -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Release -DSYNCBLOB_WERROR=OFF \
        -DSYNCBLOB_BUILD_TESTS=OFF -DSYNCBLOB_BUILD_BENCH=ON \
        "-DSYNCBLOB_BENCH_VECTORS=${SYNCBLOB_VECTORS:-avx512}" "$@" >"$build/log/bench.txt" ||
        die "the benchmarks do not build: $build/log/bench.txt"
}

check_instructions() { # [--write]
    build_bench -- operations
    python3 tests/bench/instructions.py "$bench_folder/tests/bench/operations" "$@"
}

# Unsets settings of environment.sh that only ranks on a shared processor need.
bench_comm() { # [ROUNDS]
    build_bench -- syncblob_static syncblob_comm_static
    . tests/mpi/environment.sh
    unset OMPI_MCA_mpi_yield_when_idle OMPI_MCA_btl_vader_single_copy_mechanism
    compile_for_mpi mpicc "$build/bench/comm" tests/bench/comm.c "$build/bench" -O2 tests/bench/harness.c
    mpirun -n 2 "$build/bench/comm" "$@"
}

bench_opencl() {
    build_bench -DSYNCBLOB_OPENCL=ON -- bench_opencl
    "$bench_folder/tests/bench/bench_opencl"
}

bench_rust() {
    cargo run --quiet --release --locked -p syncblob-tests
}

bench_onnx() {
    local python model prototxt
    python=$(environment onnx)
    model=$(download model)
    prototxt=$(download prototxt)
    cargo build --release --locked -p syncblob-cli
    "$python" tests/bench/peers/processes.py onnx "$model" "$prototxt" "$CARGO_TARGET_DIR/release/syncblob"
}

# shellcheck disable=SC2120 # a step passes --check
bench_python() { # [--check]
    local python model prototxt proto
    make_wheel release
    python=$(environment bench)
    model=$(download model)
    prototxt=$(download prototxt)
    cargo build --release --locked -p syncblob-cli
    "$python" -m pip install --quiet --no-deps --force-reinstall "$build/python-release"/*.whl
    proto=$(download caffe.proto)
    protoc "-I${proto%/*}" -o "$build/caffe.descriptors" "$proto"
    CAFFE_DESCRIPTORS=$build/caffe.descriptors "$python" tests/bench/peers/processes.py "$@" python "$model" "$prototxt" \
        "$CARGO_TARGET_DIR/release/syncblob"
}

# SMPI loads a copy of the program for each rank, so the program must contain the library.
bench_simgrid() { # [HOSTS...]
    build simgrid release -DCMAKE_C_COMPILER=gcc -DBUILD_SHARED_LIBS=OFF -DSYNCBLOB_OPENBLAS=OFF \
        -DSYNCBLOB_CUDA=OFF -DSYNCBLOB_PROTOBUF_C=OFF -DSYNCBLOB_RANDOM123=OFF \
        -DSYNCBLOB_HARDENING=OFF -DSYNCBLOB_BUILD_TESTS=OFF -- syncblob syncblob_comm
    by_hand python3 tests/simgrid/simulate.py "$build/simgrid/c/comm/libsyncblob-comm.a" \
        "$build/simgrid/c/libsyncblob.a" "$build/simgrid/results" "$@"
}

bench_web() {
    need web_packages
    build_web
    check_web large
}

record_results() { # MACHINE
    local model caches
    model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
    caches=$(lscpu | sed -n 's/^\(L1d\|L2\|L3\)[^:]*: */\1 /p' | paste -sd ,)
    {
        echo "# $(nproc) × $model; $caches; $(uname -sr); gcc $(gcc -dumpfullversion)${SYNCBLOB_VECTORS:+; $SYNCBLOB_VECTORS}"
        echo case,threads,best,goal,unit
        cat "$bench_folder/goals.csv"
        sed -nE 's/^(.*): ([0-9.]+), at most ([0-9.]+): (met|MISSED)$/"\1",1,\2,\3,times/; s/, MiB"(.*)times$/"\1MiB/; /^".*,(times|MiB)$/p' \
            "$bench_folder/processes.txt"
    } >"tests/bench/results/$1.csv"
}

bench() { # comm|opencl|rust|onnx|simgrid|web|--show|--instructions ARGUMENT... | [OPTION...] [CASE...]
    local argument arguments=() cases=() peers='' record='' program=() part
    case ${1:-} in
    comm | opencl | rust | onnx | simgrid | web) "bench_$1" "${@:2}"; return ;;
    --instructions) check_instructions "${@:2}"; return ;;
    --show) python3 tests/bench/show.py "$2"; return ;;
    esac
    for argument in "$@"; do
        case $argument in
        --peers) peers=1 ;;
        --record=*) record=${argument#*=} ;;
        --*) arguments+=("$argument") ;;
        *) cases+=("$argument") ;;
        esac
    done
    build_bench -- bench
    program=("$bench_folder/tests/bench/bench" --out "$bench_folder" "${arguments[@]}")
    if [ -n "$peers" ]; then
        make_caffe_peer
        program+=(--caffe "$cache/caffe-peer/libcaffe_peer.so")
    fi
    rm -f "$bench_folder"/{goals,times}.csv
    : >"$bench_folder/processes.txt"
    case ${SYNCBLOB_VECTORS:-} in avx2) export OPENBLAS_CORETYPE=Haswell ;; portable) export OPENBLAS_CORETYPE=Nehalem ;; esac
    "${program[@]}" "${cases[@]}"
    if [ "$peers${cases[*]}" = 1 ]; then
        for part in python ${record:+onnx web}; do "bench_$part"; done | tee "$bench_folder/processes.txt"
        cargo run --quiet --release --locked -p syncblob-tests --bin peers
    fi
    if [ -n "$record" ]; then record_results "$record"; fi
    echo "all times: $bench_folder/times.csv"
}
