# shellcheck shell=bash
# Nets in onnxruntime beside Caffe's answers.

build_onnx() { make_environment "$cache/python-onnx" tests/users/onnx/requirements.txt; }

run_onnx() { # SCRIPT [ARGUMENT...]
    told "$cache/python-onnx/bin/python" -B "tests/users/onnx/$1.py" "${@:2}"
}

# As the scripts take it: words of the shell.
onnx_command() { printf '%q convert' "$CARGO_TARGET_DIR/$1/syncblob"; } # PROFILE

run_onnx_layers() { run_onnx check layers --command "$(onnx_command debug)"; }

run_onnx_nets() { # PROFILE [OPTION...]
    local proto
    proto=$(fetch_member "${caffe_package[@]}" "$caffe_member")
    run_onnx check nets --proto "$proto" --command "$(onnx_command "$1")" "${@:2}"
}

# All of them, gigabytes of weights: by the optimised program.
run_large_onnx_nets() {
    build_released_program
    run_onnx options "$CARGO_TARGET_DIR/release/syncblob" huge
    run_onnx_nets release
}

run_mutated_onnx_nets() {
    run_onnx check_mutated "$CARGO_TARGET_DIR/debug/examples/mutated_nets" \
        "${SYNCBLOB_TEST_DATA:-../shared/data}/nets"
}

# Python as one of the versions: the first that is here.
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

# An environment in $cache/peers with what a list names, whose first line may say which Pythons can have
# it. Where there can be none, the file NAME.why says why.
make_onnx_peer() { # NAME REQUIREMENTS
    local folder=$cache/peers/$1 versions program
    rm -f "$folder.why"
    if cmp -s "$2" "$folder/installed"; then return; fi
    versions=$(sed -n '1s/^# Python: //p' "$2")
    # shellcheck disable=SC2086 # several
    if ! program=$(find_python ${versions:-3}); then
        echo "there is no Python $versions" >"$folder.why"
    elif ! { "$program" -m venv --clear "$folder" &&
        "$folder/bin/python" -m pip install --quiet -r "$2"; } 2>"$folder.log"; then
        grep -m 1 ERROR "$folder.log" >"$folder.why" || echo 'pip fails' >"$folder.why"
    else
        cp "$2" "$folder/installed"
    fi
}

# The other converters of Caffe's nets, and the two OpenCVs.
build_onnx_peers() {
    local list
    mkdir -p "$cache/peers"
    for list in tests/users/onnx/peers/*.txt; do make_onnx_peer "$(basename "$list" .txt)" "$list"; done
    make_onnx_peer opencv4 tests/users/opencv/opencv-4.txt
    make_onnx_peer opencv5 tests/users/opencv/opencv-5.txt
    tail -n +1 "$cache"/peers/*.why 2>/dev/null || true
}

run_onnx_peers() { # ARGUMENT...
    build_released_program
    run_onnx peers "$cache/peers" "$CARGO_TARGET_DIR/release/syncblob" "$@"
}

# Half an hour on two idle cores: before a release.
onnx_peer_steps() {
    on 'onnx onnx_peers' step 'ONNX: no net is right by other converters and wrong here' run_onnx_peers
    on 'onnx onnx_peers' step 'ONNX: what OpenCV 5 runs' \
        run_onnx_peers --cases 20 --peer 'CV 5 new' --peer 'CV 5 classic'
}

onnx_steps() {
    on 'program onnx' step "ONNX: every layer's outputs are Caffe's" run_onnx_layers
    on 'program onnx peers' aside "ONNX: small nets' outputs are Caffe's" run_onnx_nets debug --small
    on 'program onnx' aside 'ONNX: nets that were changed at random' run_mutated_onnx_nets
    on 'program onnx' aside 'ONNX: options of the command' run_onnx options "$CARGO_TARGET_DIR/debug/syncblob"
    on onnx aside 'ONNX: the comparison finds planted errors' run_onnx selftest
}

onnx_full_steps() {
    on 'onnx peers' step "ONNX: all nets' outputs are Caffe's" run_large_onnx_nets
    onnx_peer_steps
}
