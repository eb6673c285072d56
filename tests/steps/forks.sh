# shellcheck shell=bash
# Layers of forks: the answers of OpenCV's last importer of Caffe's nets.

run_forks_answers() { # OPTION...
    make_environment "$cache/python-opencv-4" tests/users/opencv/opencv-4.txt
    "$cache/python-opencv-4/bin/python" -B tests/users/onnx/record.py forks - "$@"
}

forks_full_steps() {
    aside "ONNX: OpenCV 4's answers to layers of forks are those that are kept" run_forks_answers
}
