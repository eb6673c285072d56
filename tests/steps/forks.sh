# shellcheck shell=bash
# Layers of forks: the answers of OpenCV's last importer of Caffe's nets.

run_forks_answers() { # OPTION...
    make_environment "$cache/python-opencv4" tests/users/onnx/requirements-opencv4.txt
    "$cache/python-opencv4/bin/python" -B tests/users/onnx/record_forks.py "$@"
}

forks_full_steps() {
    aside "ONNX: OpenCV 4's answers to layers of forks are those that are kept" run_forks_answers
}
