#!/usr/bin/env python3
"""watch_errors.py FOLDER: makes FOLDER/watch.c and FOLDER/watch.flags, for tests of the lists of errors.

A test that links watch.c reports each status that the list of errors of a public function lacks. The test writes
the report to the file $SYNCBLOB_ERRORS_LOG. With $SYNCBLOB_ERRORS_ALL the test reports every failure.
"""
import pathlib
import sys

sys.dont_write_bytecode = True
from check_reference import HEADERS, codes, read_functions, read_headers  # noqa: E402

# Makes system calls directly, because tests make functions of the C library fail.
HEAD = """\
#define _GNU_SOURCE
#define SB_EXPERIMENTAL
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <syncblob/backend.h>
#include <syncblob/comm_engine.h>
#include <syncblob/conformance.h>
#include <syncblob/dlpack.h>
#include <syncblob/nccl.h>
#include <syncblob/reducer.h>
#include <syncblob/sim.h>
#include <syncblob/sim_comm.h>
#include <syncblob/syncblob.h>

static void record(const char *function, sb_status status) {
    const char *path = getenv("SYNCBLOB_ERRORS_LOG");
    char line[200];
    int length = snprintf(line, sizeof line, "%s: %s returned %s, which its list does not have\\n",
                          program_invocation_short_name, function, sb_status_name(status));
    long file = path ? syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT, 0644) : -1;
    if (file < 0 || syscall(SYS_write, file, line, (size_t)length) < 0)
        abort();
    syscall(SYS_close, file);
}
"""
WRAPPER = """
sb_status __real_{name}({parameters});
sb_status __wrap_{name}({parameters});
sb_status __wrap_{name}({parameters}) {{
    sb_status status = __real_{name}({arguments});
    switch (status) {{
    case SB_OK:
        return status;
{cases}        if (!getenv("SYNCBLOB_ERRORS_ALL"))
            return status;
    }}
    record("{name}", status);
    return status;
}}
"""


def wrapper(function, listed):
    parameters = [kind if "(*" in kind else f"{kind} {name}" for kind, name in function.parameters]
    return WRAPPER.format(name=function.name, parameters=", ".join(parameters),
                          arguments=", ".join(name for _, name in function.parameters),
                          cases="".join(f"    case SB_ERR_{code}:\n" for code in sorted(listed)))


def main():
    folder = pathlib.Path(sys.argv[1])
    linked = [folder for folder in HEADERS if not {"mpi", "opencl", "syncblob-net-c"} & {*folder.parts}]
    functions = {f.name: f for f in read_functions(read_headers(linked))}
    source, flags = [HEAD], []
    for name, function in functions.items():
        listed = codes(name, functions) - {"none"}
        # a function that returns the status of a caller's callback may return any status
        if function.returns == "sb_status" and not any(code.startswith("the ") for code in listed):
            source.append(wrapper(function, listed))
            flags.append(f"-Wl,--wrap={name}\n")
    (folder / "watch.c").write_text("".join(source))
    (folder / "watch.flags").write_text("".join(flags))
    print(f"{len(flags)} functions are watched")


if __name__ == "__main__":
    main()
