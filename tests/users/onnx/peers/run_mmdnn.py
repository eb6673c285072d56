"""Converts a net with mmdnn, in its three steps: run_mmdnn.py FOLDER. Reads net.prototxt and
net.caffemodel in the folder; writes net.onnx."""

import pathlib
import subprocess
import sys


def main():
    folder = pathlib.Path(sys.argv[1])
    programs = pathlib.Path(sys.executable).parent
    for words in ("mmtoir -f caffe -n net.prototxt -w net.caffemodel -o net",
                  "mmtocode -f onnx -n net.pb -w net.npy -o made.py -dw made.npy",
                  "mmtomodel -f onnx -in made.py -iw made.npy -o net.onnx"):
        name, *options = words.split()
        status = subprocess.run([sys.executable, programs / name, *options], cwd=folder, check=False).returncode
        if status != 0:
            sys.exit(status)


if __name__ == "__main__":
    main()
