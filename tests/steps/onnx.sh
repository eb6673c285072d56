# shellcheck shell=bash
# Nets in onnxruntime beside Caffe's answers.

make_onnx_environment() {
    make_environment "$cache/python-onnx" tests/users/onnx/requirements.txt
}

run_onnx_selftest() {
    make_onnx_environment
    "$cache/python-onnx/bin/python" -B tests/users/onnx/selftest.py
}

onnx_steps() {
    aside 'ONNX: the comparison finds planted errors' run_onnx_selftest
}
