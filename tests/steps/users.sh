# shellcheck shell=bash
# Tests the documentation, the installed library, and programs that use it.

# Older versions of Doxygen warn of each parameter without a description.
make_reference() {
    local version output status=0
    version=$(doxygen --version | cut -d' ' -f1)
    is_at_least "$version" 1.9.4 || skip "doxygen is $version, 1.9.4 or newer is needed"
    rm -rf "$build/reference"
    mkdir -p "$build/reference"
    output=$(SYNCBLOB_REFERENCE=$build/reference doxygen c/Doxyfile 2>&1) || status=$?
    echo "$output"
    [[ $status = 0 && $output != *Traceback* ]] # doxygen ignores a filter that fails
}

install_library() { # FOLDER
    rm -rf "$1"
    cmake --install "$build/release" --prefix "$1" >/dev/null
}

check_pages() { # SCRIPT ARGUMENT...
    install_library "$build/documents/prefix"
    python3 "tests/project/documents/$1" "${@:2}" --prefix "$build/documents/prefix" --cli "$CARGO_TARGET_DIR/debug/syncblob"
}

demo() {
    local model listing
    model=$(download model)
    cargo build --quiet --workspace --bin syncblob --example demo # with the tests' features
    echo "== syncblob info: a ResNet-50 that Yahoo trained with Caffe"
    listing=$("$CARGO_TARGET_DIR/debug/syncblob" info "$model")
    printf '%s\n\n== in short: the model, whether it is safe to load, its largest layer\n' "$listing"
    head -n 1 <<<"$listing"
    "$CARGO_TARGET_DIR/debug/syncblob" verify "$model"
    awk '{ n = $6; gsub(",", "", n); if (n + 0 > most) { most = n + 0; line = $0 } } END { print line }' <<<"$listing"
    echo '== the library at work on it: bindings/syncblob/examples/demo.rs'
    "$CARGO_TARGET_DIR/debug/examples/demo" "$model"
}

run_consumers() {
    local prefix=$build/release/consumer
    export CC=gcc CXX=g++
    install_library "$prefix"
    tests/project/abi/check_headers.sh "$CC" "$CXX" "$prefix/include"
    tests/users/consumer/run.sh reload "$prefix"
    LINK=static tests/users/consumer/run.sh cxx "$prefix"
}

run_net_consumers() {
    install_library "$build/release/net"
    CC=gcc CXX=g++ tests/users/consumer/run.sh net "$build/release/net" "$CARGO_TARGET_DIR/debug/syncblob"
}

# The run path may contain only the folder of OpenBLAS.
check_hardened_program() { # PROFILE
    local blas
    blas=$(readelf -d "$build/release/c/libsyncblob.so" | sed -n 's/.*(RUNPATH).*\[\(.*\)\]/\1/p')
    python3 tests/project/abi/check_hardening.py program "$CARGO_TARGET_DIR/$1/syncblob" --run-path "$blas"
}

# Only tests use the wheel of cargo's profile dev.
make_wheel() { # PROFILE
    local python options=()
    [ "$1" != dev ] || options=(--config profile.dev.package.syncblob-sys.opt-level=0)
    python=$(environment maturin)
    rm -rf "$build/python-$1"
    by_hand env -u RUSTC_WORKSPACE_WRAPPER "${python%/*}/maturin" build --profile "$1" --locked --out "$build/python-$1" \
        "${options[@]}" --manifest-path bindings/syncblob-python/Cargo.toml
}

wheel_environment() { # FOLDER PYTHON NAME OPTION-OF-VENV...
    local pip
    pip=$(environment pip)
    rm -rf "$1"
    "$2" -m venv --without-pip "${@:4}" "$1"
    requirements "$3" >"$1/requirements.txt"
    "$pip" -m pip --python "$1/bin/python" install --quiet "$build/python-dev"/*.whl -r "$1/requirements.txt"
}

check_python_stubs() {
    local folder=$build/python-stubs
    wheel_environment "$folder" python3 mypy
    "$folder/bin/python" -m mypy.stubtest --concise syncblob._syncblob
}

check_python_tvm() {
    local folder=$build/python-tvm
    wheel_environment "$folder" python3 tvm
    PYTHONPATH=tests/users/python "$folder/bin/python" -m unittest test_arrays.tvm_ffi
}

check_dlpack_declarations() { # DLPACK/DLPACK.H
    local compiler language order
    for compiler in gcc clang; do
        for language in 'c -std=c11' 'c -std=c17' 'c++ -std=c++11' 'c++ -std=c++20'; do
            for order in -UDLPACK_FIRST -DDLPACK_FIRST; do
                # shellcheck disable=SC2086 # several words
                "$compiler" -x $language -Wall -Wextra -Wpedantic -Werror $order -Ic/include \
                    -isystem "${1%/dlpack/*}" -fsyntax-only tests/project/abi/check_dlpack.c
            done
        done
    done
}

build_caffe() { # TARGET [FOLDER OF CAFFE]
    local archive sources=${2:-$build/caffe/sources} python options=(-DCMAKE_BUILD_TYPE=Release) headers
    if headers=$(cuda_headers 13); then options+=("-DSYNCBLOB_CUDA_HEADERS=$headers"); fi
    if [ ! -e "$sources/src/caffe/blob.cpp" ]; then
        archive=$(download caffe)
        mkdir -p "$sources"
        tar -xzf "$archive" -C "$sources" --strip-components=1
    fi
    python=$(environment onnx)
    build caffe/library release -DCMAKE_C_COMPILER=gcc -DSYNCBLOB_BUILD_TESTS=OFF -DSYNCBLOB_OPENCL=ON \
        -- syncblob syncblob_testing syncblob_opencl
    by_hand cmake -G Ninja -S tests/users/caffe -B "$build/caffe/whole" "-DCAFFE=$(readlink -f "$sources")" \
        "-DSYNCBLOB=$build/caffe/library/c/libsyncblob.so" \
        "-DSYNCBLOB_TESTING=$build/caffe/library/c/testing/libsyncblob-testing.so" \
        "-DSYNCBLOB_OPENCL=$build/caffe/library/c/opencl/libsyncblob-opencl.so" \
        "-DONNX_PYTHON=$python" "-DSYNCBLOB_PROGRAM=$CARGO_TARGET_DIR/debug/syncblob" "${options[@]}"
    by_hand cmake --build "$build/caffe/whole" -j "$jobs" --target "$1"
}

run_caffe() {
    build_caffe whole "${SYNCBLOB_CAFFE:-}"
    c_tests caffe/whole
}

write_answers() {
    local python
    build_caffe own_answers
    python=$(environment onnx)
    "$python" tests/users/onnx/record.py layers "$build/caffe/whole" --write
    "$python" tests/users/onnx/record.py nets "$build/caffe/whole" --write
}
