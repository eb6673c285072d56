#!/usr/bin/env python3
"""Prints the calls that tests/survival/input/test_refusals.c includes: make_refusals.py INCLUDE...

Each call is the argument of a macro. A macro that the test does not define expands to nothing.
"""
import pathlib
import re
import sys

FUNCTION = re.compile(r"/\*\*((?:[^*]|\*(?!/))*)\*/\s*SB_API\s+SB_MUST_CHECK\s+sb_status\s+(sb_\w+)\s*"
                      r"\(((?:[^;()]|\(\*\w+\)\([^)]*\))*)\);")
FLAGS = re.compile(r"@param flags ([^.;\n]*)")
NULLABLE = re.compile(r"@param (\w+) \[[^\]]*nullable(?! when)[^\]]*\]")
GIVEN = {"sb_context *": "w->rig.context", "sb_mem *": "w->mem", "sb_model *": "w->model",
         "sb_comm *": "w->comm", "sb_reducer *": "w->reducer", "sb_blob *": "w->blob",
         "sb_blob *const *": "&w->blob", "sb_context *const *": "&w->rig.context",
         "sb_stream": "w->stream", "sb_format": "SB_FORMAT_SOLVERSTATE", "sb_dtype": "SB_DTYPE_F32",
         "sb_part": "SB_DATA", "sb_side": "SB_SIDE_CPU", "sb_comm_op": "SB_COMM_SUM",
         "sb_source *": "&w->source", "sb_sink *": "&w->sink", "sb_deleter": "keep",
         "sb_dl_managed_versioned *": "&w->tensor.versioned",
         "sb_dl_managed *": "&w->tensor.legacy", "sb_blob_lender": "lend", "void *": "w->bytes", "uint32_t": "0", "size_t": "64"}
# NULL is valid for these parameters.
NEVER = {"context", "user", "err"}
MACROS = ["REFUSES", "FLAGS", "PART", "FLAG", "NUMBER"]
# These functions accept large numbers, or cannot check the length of an array.
ANY_NUMBER = {"sb_blob_reshape", "sb_blob_create_shaped", "sb_comm_all_reduce",
              "sb_comm_all_reduce_blobs", "sb_comm_broadcast_blobs", "sb_reducer_create",
              "sb_sim_comm_fail", "sb_sim_fail", "sb_sim_fail_also"}


def parameters(text):
    for part in re.split(r",\s*(?![^(]*\))", " ".join(text.split())):
        found = re.fullmatch(r"(.*?)(\w+)(\[\w*\])?", part)
        if found and "(*" not in part:
            kind, name, array = found.groups()
            yield kind.strip() + (" *" if array else ""), name
        else:
            yield "function", re.search(r"\(\*(\w+)\)", part).group(1)


def given(kind, name, nullable, inits):
    plain = kind.removeprefix("const ")
    if name == "err":
        return "&err"
    if name == "user" or (name in nullable and name != "context"):
        return "NULL"
    if name in {"layer", "index", "root", "rank"}:
        return "SB_NO_LAYER" if name == "layer" else "0"
    if plain in GIVEN:
        return GIVEN[plain]
    if plain.removesuffix(" *") in inits:
        return f"&({plain.removesuffix(' *')}){inits[plain.removesuffix(' *')]}"
    return "(void *)w->bytes" if "*" in kind else "1"


def known_flags(comment):
    return re.findall(r"\bSB_\w+", FLAGS.search(comment)[1])


def main():
    headers = [h.read_text() for folder in sys.argv[1:]
               for h in sorted(pathlib.Path(folder).glob("syncblob/*.h"))]
    names = set(re.findall(r"#define (SB_\w+_INIT)\b", "\n".join(headers)))
    inits = {name.removesuffix("_INIT").lower(): name for name in names}
    flags = set()
    print("".join(f"#ifndef {macro}\n#define {macro}(...)\n#endif\n" for macro in MACROS))
    for text in headers:
        for comment, function, arguments in FUNCTION.findall(text):
            nullable = set(NULLABLE.findall(comment))
            listed = list(parameters(arguments))
            for kind, name in sorted({("uint32_t", "flags"), ("sb_part", "part")} & set(listed)):
                values = [n if n == name else given(k, n, nullable, inits) for k, n in listed]
                known = known_flags(comment) if name == "flags" else []
                flags.update(known)
                print(f'{name.upper()}({" | ".join(known or "0")}, {function}({", ".join(values)}))')
            for kind, name in listed:
                if name in nullable | NEVER or not ("*" in kind or kind in {"function", "sb_deleter",
                                                                            "sb_blob_lender"}):
                    continue
                values = ["NULL" if n == name else given(k, n, nullable, inits) for k, n in listed]
                print(f'REFUSES("{name}", {function}({", ".join(values)}))')
            for kind, name in listed:
                number = {"int64_t": "number", "const int64_t *": "numbers"}.get(kind)
                if number and function not in ANY_NUMBER:
                    values = [number if n == name else given(k, n, (), inits) for k, n in listed]
                    print(f'NUMBER({function}({", ".join(values)}))')
    print("".join(f"FLAG({flag})\n" for flag in sorted(flags)))
    print("".join(f"#undef {macro}\n" for macro in MACROS))


if __name__ == "__main__":
    main()