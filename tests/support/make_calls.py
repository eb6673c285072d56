#!/usr/bin/env python3
"""Prints calls of the functions of the headers, for every_call.c: make_calls.py EVERY_CALL INCLUDE...

The output omits functions that every_call.c names, and functions that need objects outside struct world.
"""
import pathlib
import re
import sys

DECLARATION = re.compile(r"^(?:SB_API|static inline)\s+(?:SB_MUST_CHECK\s+)?([^;()]*?)\b(sb_\w+[a-z])\s*"
                         r"\(([^;{]*?)\)(?:;| \{)", re.MULTILINE | re.DOTALL)
ARGUMENTS = {"sb_mem *": "mem", "sb_model *": "w->model", "sb_context *": "w->context",
             "sb_part": "part", "sb_stream": "w->stream", "sb_side": "SB_SIDE_CPU",
             "sb_dtype": "SB_DTYPE_F32", "double": "0.5", "const void **": "&r.read",
             "void **": "&r.written", "const int64_t **": "&r.shape", "int64_t *": "&r.number",
             "uint32_t *": "&r.bits", "int32_t *": "&r.yes", "size_t *": "&r.size",
             "double *": "&r.sum", "sb_error *": "&r.err", "sb_comm *": "w->comm",
             "sb_reducer *": "w->reducer", "sb_text *": "&r.text", "sb_stats *": "&r.stats",
             "sb_stream *": "&r.stream", "sb_layer_info *": "&r.layer_info",
             "sb_blob_info *": "&r.blob_info", "sb_solver_info *": "&r.solver_info",
             "sb_mem **": "&r.mem", "const sb_mem **": "(const sb_mem **)&r.mem",
             "const int64_t *": "few", "sb_comm_op": "SB_COMM_SUM"}
NAMED = {"const int64_t *indices": "ones", "int32_t axis": "0", "int32_t start": "0", "int32_t end": "1", "int32_t index": "0",
         "int64_t layer": "0", "int64_t index": "0", "int32_t num_axes": "2",
         "int32_t num_indices": "2", "uint32_t flags": "0", "const char *path": "w->path",
         "const void *bytes": "message", "size_t size": "sizeof message",
         "const char *name": '"a"', "size_t name_size": "1", "const char *type": '"t"',
         "size_t type_size": "1", "void *buffer": "r.bytes", "size_t capacity": "sizeof r.bytes",
         "char *buffer": "r.bytes", "const sb_limits *limits": "NULL", "void *out": "r.bytes",
         "void *values": "&r.value", "void *bytes": "r.bytes", "int32_t root": "0", "int64_t first": "0",
         "int64_t count": "1", "int64_t num": "1", "int64_t channels": "9", "int64_t height": "2", "int64_t width": "3",
         "int64_t n": "0", "int64_t c": "0", "int64_t h": "0", "int64_t w": "0"}


def types(text):
    for part in " ".join(text.split()).split(", "):
        found = re.fullmatch(r"(.*?)(\w+)", part)
        yield found.groups() if found else (part, "")


def arguments(text):
    blobs = ["w->blob", "w->other"]
    for kind, name in types(text):
        kind = kind.strip()
        plain = kind if kind in ARGUMENTS else kind.removeprefix("const ")
        if plain == "sb_blob *" and blobs:
            yield blobs.pop(0)
        else:
            yield NAMED.get(f"{kind} {name}".replace("* ", "*"), ARGUMENTS.get(plain))


def call(returns, name, text):
    """Returns None for a function with an unknown argument, or that may destroy or create an object."""
    given = list(arguments(text))
    if None in given or returns == "void" or ("*" in returns and not text.startswith("const ")):
        return None
    macro = "MEM" if "mem" in given else "BOTH" if "part" in given else "CALL"
    made = f"{name}({', '.join(given)})"
    made = f"note(w, {made})" if returns == "sb_status" else f"(void){made}"
    return f"{macro}({name}, {'IS_CONST' if text.startswith('const ') else '0'}, {made})"


def main():
    listed = pathlib.Path(sys.argv[1]).read_text()
    named = set(re.findall(r"^(?:CALL|MEM|BOTH)\((\w+)", listed, re.MULTILINE))
    named.update(re.findall(r'"(sb_\w+)"', listed))
    for folder in sys.argv[2:]:
        for header in sorted(pathlib.Path(folder).glob("syncblob/*.h")):
            for returns, name, text in DECLARATION.findall(header.read_text()):
                made = None if name in named else call(returns.strip(), name, text)
                if made:
                    print(made)


if __name__ == "__main__":
    main()
