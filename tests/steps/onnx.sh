# shellcheck shell=bash
# Nets in onnxruntime beside Caffe's answers.

build_onnx() { make_environment "$cache/python-onnx" tests/users/onnx/requirements.txt; }

run_onnx() { # SCRIPT [ARGUMENT...]
    told "$cache/python-onnx/bin/python" -B "tests/users/onnx/$1.py" "${@:2}"
}

onnx_converter() { printf '%q convert {prototxt} {caffemodel} -o {onnx}' "$CARGO_TARGET_DIR/debug/syncblob"; }

run_onnx_layers() { run_onnx check_layers --convert "$(onnx_converter)"; }

onnx_steps() {
    on 'program onnx' step "ONNX: every layer's outputs are Caffe's" run_onnx_layers
    on onnx aside 'ONNX: the comparison finds planted errors' run_onnx selftest
}
