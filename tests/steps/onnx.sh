# shellcheck shell=bash
# Nets in onnxruntime beside Caffe's answers.

build_onnx() { make_environment "$cache/python-onnx" tests/users/onnx/requirements.txt; }

run_onnx() { # SCRIPT [ARGUMENT...]
    told "$cache/python-onnx/bin/python" -B "tests/users/onnx/$1.py" "${@:2}"
}

# As the scripts take it: words of the shell, with names of files to fill in.
onnx_command() { # PROFILE FILE...
    printf '%q convert %s -o {onnx}' "$CARGO_TARGET_DIR/$1/syncblob" "${*:2}"
}

run_onnx_layers() { run_onnx check_layers --convert "$(onnx_command debug '{prototxt}' '{caffemodel}')"; }

run_onnx_nets() { # PROFILE [OPTION...]
    local proto
    proto=$(fetch_member "${caffe_package[@]}" "$caffe_member")
    run_onnx check_nets --proto "$proto" --convert "$(onnx_command "$1" '{prototxt}' '{caffemodel}')" \
        --convert-model "$(onnx_command "$1" '{caffemodel}')" "${@:2}"
}

# All of them, gigabytes of weights: by the optimised program.
run_large_onnx_nets() {
    build_released_program
    run_onnx check_options "$CARGO_TARGET_DIR/release" huge
    run_onnx_nets release
}

run_mutated_onnx_nets() {
    run_onnx check_mutated "$CARGO_TARGET_DIR/debug/examples/mutated_nets" \
        "${SYNCBLOB_TEST_DATA:-../shared/data}/nets"
}

onnx_steps() {
    on 'program onnx' step "ONNX: every layer's outputs are Caffe's" run_onnx_layers
    on 'program onnx peers' aside "ONNX: small nets' outputs are Caffe's" run_onnx_nets debug --small
    on 'program onnx' aside 'ONNX: nets that were changed at random' run_mutated_onnx_nets
    on 'program onnx' aside 'ONNX: options of the command' run_onnx check_options "$CARGO_TARGET_DIR/debug"
    on onnx aside 'ONNX: the comparison finds planted errors' run_onnx selftest
}

onnx_full_steps() {
    on 'onnx peers' step "ONNX: all nets' outputs are Caffe's" run_large_onnx_nets
}
