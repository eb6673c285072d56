"""Runs many nets in OpenCV 5: run_opencv_cases.py classic|new FOLDER..., each as run_opencv.py takes it.
Of a net that OpenCV does not run, error.txt says why."""

import pathlib
import sys

import run_opencv


def main():
    for folder in map(pathlib.Path, sys.argv[2:]):
        try:
            run_opencv.run(folder, sys.argv[1])
        except Exception as error:  # OpenCV's own
            (folder / "error.txt").write_text(str(error))


if __name__ == "__main__":
    main()
