"""The common parts of the checks: arguments, the files to check, and the count of passed checks."""
import argparse
import os
import pathlib

from caffe_messages import Messages, read_descriptor, unpacked, with_raw_fields
from made_files import made_files
from reading import MESSAGE_OF

SUFFIX_OF = {"caffemodel": ".caffemodel", "solverstate": ".solverstate", "blob": ".binaryproto"}
FORMAT_OF = {suffix: name for name, suffix in SUFFIX_OF.items()}
ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = pathlib.Path(os.environ.get("SYNCBLOB_TEST_DATA") or ROOT.parent / "shared/data")


def parse_arguments(description, program, what):
    """Parses the arguments; `program` is the name of the option for the program or library to check."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(program, required=True, type=pathlib.Path, help=what)
    parser.add_argument("--proto", required=True, help="Caffe's caffe.proto")
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="more real files")
    return parser.parse_args()


def real_files(arguments):
    """Returns the real files of the folder, if any, and the files in the arguments."""
    found = sorted(path for path in DATA.glob("*") if path.suffix in FORMAT_OF)
    print(f"real files: {len(found) or 'none'} in {DATA}"
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


class Checker(Tally):
    """Checks the program on real files and on files that Google's protobuf makes in a folder."""

    def __init__(self, arguments, folder):
        super().__init__()
        self.arguments, self.cli, self.folder = arguments, arguments.cli.resolve(), pathlib.Path(folder)
        descriptor = with_raw_fields(read_descriptor(arguments.proto))
        self.messages, self.unpacked = Messages(descriptor), Messages(unpacked(descriptor))

    def message(self, path, file_format):
        return getattr(self.messages, MESSAGE_OF[file_format]).FromString(path.read_bytes())

    def real_files(self):
        """Yields the name, the path and the format of each real file."""
        for path in real_files(self.arguments):
            yield path.name, path, FORMAT_OF[path.suffix]

    def made_files(self):
        """Yields the name, the path (without a suffix) and the format of each made file."""
        for number, (name, file_format, data) in enumerate(made_files(self.messages, self.unpacked)):
            path = self.folder / f"made{number}"
            path.write_bytes(data)
            yield name, path, file_format
