# shellcheck shell=bash
# ./dev caffe: Caffe on bindings/caffe, beside Caffe with its own Blob and SyncedMemory.

# The folder of Caffe's sources: that of the source distribution, unless one is given.
find_caffe() { # [FOLDER]
    local archive folder=$build/caffe/sources
    if [ -n "${1:-}" ]; then
        [ -e "$1/src/caffe/blob.cpp" ] || die "$1 has no src/caffe/blob.cpp: it is not Caffe"
        readlink -f "$1"
        return
    fi
    archive=$(fetch_archive "${caffe_package[@]}")
    if [ ! -e "$folder/src/caffe/blob.cpp" ]; then
        mkdir -p "$folder"
        tar -xzf "$archive" -C "$folder" --strip-components=1
    fi
    echo "$folder"
}

# The library as users have it, and Caffe in $build/caffe/NAME.
make_caffe() { # NAME SOURCES TARGET... [-- OPTION...]
    local folder=$build/caffe/$1 sources=$2 targets=()
    shift 2
    while [ $# != 0 ] && [ "$1" != -- ]; do
        targets+=("$1")
        shift
    done
    make_build caffe/library release $gcc -DSYNCBLOB_BUILD_TESTS=OFF -- syncblob syncblob_testing
    cmake -G Ninja -S tests/users/caffe -B "$folder" -DCAFFE="$sources" \
        -DSYNCBLOB="$build/caffe/library/c/libsyncblob.so" \
        -DSYNCBLOB_TESTING="$build/caffe/library/c/testing/libsyncblob-testing.so" "${cuda_options[@]}" "${@:2}"
    cmake --build "$folder" -j "$jobs" --target "${targets[@]}"
}

# Every test that Caffe has for the CPU, and the nets, on both.
run_caffe() { # [FOLDER]
    local sources folder=$build/caffe/whole
    sources=$(find_caffe "$@")
    make_caffe whole "$sources" own ours -- -DCMAKE_BUILD_TYPE=Release
    check_caffe_edges "$folder"
    check_caffe_device "$folder"
    check_caffe_nets "$folder" "$sources"
    {
        python3 tests/users/caffe/check.py tests "$folder" "$sources"
        python3 tests/users/caffe/check.py nets "$folder"
        run_answers "$folder"
    } | tee "$build/caffe/report.txt"
}

# Caffe's answers, of layers and of whole nets: those that tests/users/onnx keeps, within rounding.
run_answers() { # FOLDER [--write]
    build_onnx
    run_onnx record layers "$@"
    run_onnx record nets "$@"
}

# They are kept anew: the two programs alone are built for that.
write_answers() {
    local sources
    sources=$(find_caffe)
    make_caffe whole "$sources" own_answers -- -DCMAKE_BUILD_TYPE=Release
    run_answers "$build/caffe/whole" --write
}

# The tests of blobs and memories, of what shares them and of what fills them, and of nets: on
# ours alone, without optimisation, which is sooner built than run otherwise.
run_caffe_part() {
    local sources folder=$build/caffe/part
    sources=$(find_caffe)
    make_caffe part "$sources" own_edges own_differences own_sums own_upgrade ours_tests ours_edges ours_sums throws -- -DCMAKE_BUILD_TYPE=Debug \
        "-DPARTS=blob;syncedmem;filler;split_layer;net"
    check_caffe_edges "$folder"
    check_caffe_device "$folder"
    check_caffe_nets "$folder" "$sources"
    python3 tests/users/caffe/check.py tests "$folder" "$sources" --ours
}

# The schema of nets, and how nets of older generations are brought into the current form.
check_caffe_nets() { # FOLDER SOURCES
    python3 tests/users/caffe/schema.py "$2"
    build_onnx
    cargo build --quiet --locked --package syncblob-cli
    "$cache/python-onnx/bin/python" -B tests/users/caffe/upgrade.py "$1/own_upgrade" "$2" \
        "$CARGO_TARGET_DIR/debug/syncblob" "${SYNCBLOB_TEST_DATA:-../shared/data}/nets"
}

check_caffe_edges() { # FOLDER
    compare_caffe "$1" edges
    "$1/throws"
    python3 tests/users/differences/check.py c/guide/caffe.md Caffe "$1/own_differences"
    for side in own ours; do "$1/${side}_sums" | sed "s/^/$side: numbers, error of their norm: /"; done
}

# The half of both classes that a device has, without a GPU.
check_caffe_device() { # FOLDER
    if [ ${#cuda_options[@]} = 0 ]; then
        echo "skipped: the classes between host and device: CUDA's headers cannot be fetched"
        return
    fi
    cmake --build "$1" -j "$jobs" --target own_device ours_device
    compare_caffe "$1" device
}

# The lines of a program with Caffe's own classes, and with ours.
compare_caffe() { # FOLDER PROGRAM
    local side
    for side in own ours; do "$1/${side}_$2" >"$1/$2-$side.txt"; done
    diff -u --label own --label ours "$1/$2-own.txt" "$1/$2-ours.txt"
}

caffe() { # [FOLDER | --answers]
    steps_of='./dev caffe'
    need "$build_needs" "$python_needs" "$bench_needs" "$peer_needs" "$caffe_needs"
    make_python
    find_cuda_headers
    if [ "${1:-}" = --answers ]; then
        step "Caffe's answers to the nets of tests/users/onnx" write_answers
        summary
        return
    fi
    step 'Caffe on syncblob' run_caffe "$@"
    [ "$step_status" != 0 ] || cat "$build/caffe/report.txt"
    summary
}

caffe_steps() {
    on 'bench_needs peer_needs caffe_needs peers onnx program' \
        step 'Caffe on syncblob, its blobs, fillers and nets' run_caffe_part
}

caffe_full_steps() {
    on 'bench_needs peer_needs caffe_needs peers onnx program' step 'Caffe on syncblob' run_caffe
}
