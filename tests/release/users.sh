# shellcheck shell=bash
# Tests packages, crates, wheels and programs that use the library, in a full run.

pack_debian() { # [FOLDER]: where the packages go
    local model
    model=$(download model)
    build packages release -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Release -DSYNCBLOB_WERROR=OFF \
        -DSYNCBLOB_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr -DSYNCBLOB_BUILD_CLI=ON -DSYNCBLOB_MPI=ON \
        -DSYNCBLOB_NET=ON
    CC=gcc CXX=g++ tests/users/consumer/packages.sh "$build/packages" "$model" "$@"
}

check_crates() {
    if (cross rust "$cache/rust"); then export SYNCBLOB_OLDEST_RUST=$cache/rust/bin; fi
    python3 tests/users/consumer/crates.py
}

# Tests the module that pip builds from a checkout. pip fetches the tools that the build needs.
check_python_sources() {
    local folder=$build/python-sources
    python3 -m venv --clear "$folder"
    by_hand "$folder/bin/python" -m pip install --quiet ./bindings/syncblob-python
    (cd / && "$folder/bin/syncblob" --version &&
        "$folder/bin/python" -c 'import syncblob; print(syncblob.Blob(3).asum_data())')
}

# Tests "cuda:0" on the fake driver, which runs work at once, as late as allowed, or at random times.
check_python_cuda() {
    local folder=$build/python-cuda fakes=$build/debug/tests/cuda/fake schedule
    [ -d "$fakes/lib13" ] || skip "Python on a fake driver: CUDA's headers cannot be fetched"
    wheel_environment "$folder" python3 numpy-2
    for schedule in eager lazy random; do
        FAKE_SCHEDULE=$schedule LD_LIBRARY_PATH=$fakes/lib:$fakes/lib13 PYTHONPATH=tests/users/python \
            "$folder/bin/python" -X faulthandler -m unittest test_blob test_threads
    done
}

# Tests with the distribution's PyTorch, which is packaged for the CPU only.
check_python_torch() {
    local folder=$build/python-torch model
    /usr/bin/python3 -c 'import torch' 2>/dev/null || skip 'this system has no package python3-torch'
    model=$(download model)
    wheel_environment "$folder" /usr/bin/python3 torch --system-site-packages
    SYNCBLOB_TEST_RESNET=$model "$folder/bin/python" -m unittest discover -s tests/users/python -p 'test_[abdmt]*.py'
}

# Compares how OpenCV 4 and OpenCV 5 read nets, in two programs: one program cannot load both.
check_python_opencv() {
    local folder=$build/python-opencv boxes=tests/users/opencv/boxes.py four five
    [ -d "$SYNCBLOB_TEST_DATA/nets" ] || skip "OpenCV 4 and 5: no nets in $SYNCBLOB_TEST_DATA"
    rm -rf "$folder"
    mkdir -p "$folder"
    four=$(environment opencv-4)
    five=$(environment opencv-5)
    "$five" -m pip install --quiet --no-deps --force-reinstall "$build/python-dev"/*.whl
    "$four" "$boxes" run "$folder/4.npz"
    "$five" "$boxes" run "$folder/5.npz"
    "$five" "$boxes" compare "$folder/4.npz" "$folder/5.npz"
}

# Prints the first installed Python of the given versions.
find_python() { # VERSION...
    local version program
    for version in "$@"; do
        for program in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
            if "$program" --version >/dev/null 2>&1; then
                echo "$program"
                return
            fi
        done
    done
    return 1
}

# Makes environments in $cache/peers for the other converters of Caffe's nets and for OpenCV 4 and 5. The
# first line of an environment's list may name versions of Python. If an environment NAME cannot be made,
# NAME.why has the reason.
make_onnx_peers() {
    local name list folder versions program
    mkdir -p "$cache/peers"
    for name in caffe-onnx caffe2onnx mmdnn mnn x2paddle opencv-4 opencv-5; do
        folder=$cache/peers/$name list=$cache/peers/$name.txt
        rm -f "$folder.why"
        requirements "$name" >"$list"
        if cmp -s "$list" "$folder/installed"; then continue; fi
        versions=$(sed -n '1s/^# Python: //p' "$list")
        # shellcheck disable=SC2086 # several
        if ! program=$(find_python ${versions:-3}); then
            echo "there is no Python $versions" >"$folder.why"
        elif ! { "$program" -m venv --clear "$folder" &&
            "$folder/bin/python" -m pip install --quiet -r "$list"; } 2>"$folder.log"; then
            grep -m 1 ERROR "$folder.log" >"$folder.why" || echo 'pip fails' >"$folder.why"
        else
            cp "$list" "$folder/installed"
        fi
    done
    tail -n +1 "$cache"/peers/*.why 2>/dev/null || true
}

# Runs the C tests and compares each status that a function returns with the function's list of errors.
# CMake tests the compiler first, without the linker flags, since only the tests can be linked with them.
watch_errors() {
    local folder=$build/errors
    rm -rf "$folder"
    configure errors debug -DCMAKE_C_COMPILER=gcc
    python3 tests/project/documents/watch_errors.py "$folder"
    gcc -std=c17 -O1 -Wall -Wextra -Werror -Ic/include -Ic/testing/include -Ic/comm/include -Ic/conformance/include \
        -c "$folder/watch.c" -o "$folder/watch.o"
    build errors debug "-DCMAKE_EXE_LINKER_FLAGS=$folder/watch.o @$folder/watch.flags"
    # a control: with empty lists of errors, every failure in a test must be reported
    c_tests SYNCBLOB_ERRORS_ALL=1 "SYNCBLOB_ERRORS_LOG=$folder/control.txt" errors -R '^behaviour\.proto_read$'
    grep 'sb_blob_from_proto returned SB_ERR_SHAPE_MISMATCH' "$folder/control.txt" | sort -u
    c_tests "SYNCBLOB_ERRORS_LOG=$folder/returned.txt" errors -E '^(consumer|abi|input)'
    if [ -e "$folder/returned.txt" ]; then
        sort "$folder/returned.txt" | uniq -c
        return 1
    fi
}
