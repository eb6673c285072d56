# shellcheck shell=bash
# ./dev bench.

build_bench() {
    make_build bench release $gcc -DCMAKE_BUILD_TYPE=Release -DSYNCBLOB_WERROR=OFF \
        -DSYNCBLOB_BUILD_TESTS=OFF -DSYNCBLOB_BUILD_BENCH=ON -- bench operations
}

# Caffe as a shared library, in the cache; its path is printed.
build_caffe() {
    local archive
    archive=$(fetch_archive "${caffe_package[@]}")
    tests/bench/build_caffe.sh "$archive" "$cache/caffe-peer" >&2
    echo "$cache/caffe-peer/libcaffe_peer.so"
}

check_instructions() {
    build_bench
    python3 tests/bench/instructions.py --jobs "$jobs" "$build/bench/tests/bench/operations" "$@"
}

bench_other_languages() {
    printf '\nPython: NumPy, protobuf\n'
    "$python" tests/bench/peers.py "$build/bench/c/libsyncblob.so"
    printf '\nPython: the module syncblob, protobuf; a net of 24 MB\n'
    measure_python ''
    printf '\nRust: prost, safetensors\n'
    cargo run --quiet --release --locked -p syncblob-tests --bin peers
}

bench() {
    local argument caffe arguments=() peers=
    need "$build_needs" "$python_needs" "$bench_needs"
    if [ "${1:-}" = --instructions ]; then
        shift
        check_instructions "$@"
        return
    fi
    for argument in "$@"; do
        if [ "$argument" = --peers ]; then peers=1; else arguments+=("$argument"); fi
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
    "$build/bench/tests/bench/bench" --folder "$build/bench" --json "$build/bench/report.json" \
        "${arguments[@]}"
    "$python" tests/bench/report.py "$build/bench/report.json" "$build/bench/report.html"
    [ -z "$peers" ] || bench_other_languages
    echo "plots: $build/bench/report.html"
}
