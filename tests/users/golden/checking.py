"""The common parts of the checks: arguments, the real files, and the count of passed checks."""
import argparse
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]


def parse_arguments(description, program, what):
    """Parses the arguments; `program` is the name of the option for the program or library to check."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(program, required=True, type=pathlib.Path, help=what)
    parser.add_argument("--proto", required=True, help="Caffe's caffe.proto")
    parser.add_argument("--protoc", default="protoc", help="protobuf's compiler")
    parser.add_argument("--data", type=pathlib.Path, help="folder of real files",
                        default=os.environ.get("SYNCBLOB_TEST_DATA") or ROOT.parent / "shared/data")
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="more real files")
    return parser.parse_args()


def real_files(arguments, suffixes):
    """Returns the real files of the folder, if any, and the files in the arguments."""
    found = sorted(path for path in arguments.data.glob("*") if path.suffix in suffixes)
    print(f"real files: {len(found) or 'none'} in {arguments.data}"
          + ("" if found else "; only generated files are checked"))
    return [*found, *arguments.files]


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def report(self, name, problems):
        problems = list(problems)
        self.passed += not problems
        self.failed += bool(problems)
        for problem in problems[:10]:
            print(f"FAILED {name}: {problem}")

    def exit_status(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0
