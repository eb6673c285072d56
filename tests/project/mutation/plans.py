"""What is planted, how it is built, and who judges."""

import cuda
import threads

OWN = r"(?:behaviour|faults|threads|input|testing|comm|fuzz)\..*"


class Plan:
    """`environment` is that of a quick run, `full` that of a thorough one, if there is any.
    `is_strict`: each mutant has to compile, and none may survive."""
    compiler, flags, folders = "gcc", "", ("c/src", "c/testing/src", "c/comm/src", "cuda")
    environment, full = {}, {"SYNCBLOB_TEST_WHOLE": "1"}
    limits_memory, needs_headers, is_strict, first = True, True, True, {}
    programs = rf"{OWN}|standin\..*"
    last = None  # the plan by which the survivors are looked at once more

    def paths(self, root):
        """The sources that may have mutants in them."""
        return sorted(str(file.relative_to(root)) for folder in self.folders
                      for file in (root / folder).rglob("*.[ch]"))


class General(Plan):
    """Every operator, on all of the library; some make no C."""
    is_strict, last = False, "sanitized"

    def find(self, tree, paths):
        import find  # needs libclang, the others do not
        return find.find(tree.root, tree.clang_arguments(), paths)


class Sanitized(General):
    """The same, with what reads and writes beyond an object as a failure."""
    flags = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
    full, last, limits_memory = None, None, False


class Threads(Plan):
    compiler, flags = "clang", "-fsanitize=thread -fno-omit-frame-pointer"
    folders = tuple(threads.FOLDERS)
    environment = {"SYNCBLOB_STRESS_SECONDS": "2",
                   "TSAN_OPTIONS": "halt_on_error=1:exitcode=66:report_bugs=1"}
    full = None
    limits_memory, needs_headers, first = False, False, threads.FIRST
    programs = "|".join(name.replace(".", r"\.") for name in threads.PROGRAMS)

    def find(self, tree, _):
        return threads.find(tree.root)


class Cuda(Plan):
    folders, full = ("cuda",), None
    programs = r"standin\..*"

    def find(self, tree, _):
        return cuda.find(tree.root)


PLANS = {"general": General(), "sanitized": Sanitized(), "threads": Threads(), "cuda": Cuda()}
