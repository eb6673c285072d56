#!/usr/bin/env python3
"""reference_filter.py HEADER|PAGE prints a public header, or a page, in the form that doxygen
requires.

The script makes each header a doxygen module and each list of errors a paragraph. The script expands
the macros that define the status codes, the element types and the typed wrappers. In a page the
script replaces each link within the page, or to a page outside the reference, with the link's text.
The script shortens the first line of a code block, such as "c file=plain.c", to the language.
"""
import pathlib
import re
import sys

INCLUDE = pathlib.Path(__file__).resolve().parents[1] / "include" / "syncblob"
LISTED = r"X\((\w+), (\d+), (\w+), (\w+), \w+, with\)"  # an element type of base.h


def as_module(text, header):
    """Makes the header's first comment the description of a module that has all declarations."""
    begin, rest = text.split("/**\n", 1)
    description, rest = rest.split(" */\n", 1)
    rest = re.sub(r"@def (\w+) ", r"@def \1\n * ", rest)
    return (f"{begin}/** @file\n * @defgroup {header.stem} {header.name}\n"
            f"{description} * @{{ */\n{rest}\n/** @}} */\n")


def status_codes(text):
    codes = re.findall(r'X\((\w+), (-?\d+), "(.*?)"\)', text)
    listed = "".join(f"    SB_{name} = {number}, /**< {what} */\n" for name, number, what in codes)
    return re.sub(r"#define SB_STATUS_ENUM.*?never returned \*/\n", listed, text, flags=re.DOTALL)


def element_types(text):
    listed = "".join(f"    SB_DTYPE_{upper} = {number}, /**< {name}: {ctype} */\n"
                     for upper, number, name, ctype in re.findall(LISTED, text))
    return re.sub(r"#define SB_DTYPE_ENUM.*?#undef SB_DTYPE_ENUM\n", listed, text, flags=re.DOTALL)


def wrapper(kind, call, dtype, suffix, ctype):
    pointer = {"READ": f"const {ctype} **out", "WRITE": f"{ctype} **out",
               "AT": f"const int64_t *indices, int32_t num_indices, {ctype} *out"}[kind]
    blob = "sb_blob" if kind == "WRITE" else "const sb_blob"
    return (f"/** {call} of a blob of {dtype}. Errors: as {call}, DTYPE_MISMATCH. */\n"
            f"sb_status {call}_{suffix}({blob} *blob, sb_part part, {pointer}, sb_error *err);\n")


def typed_wrappers(text):
    head, rest = text.split("#define SB_TYPED_READ_", 1)
    calls = re.findall(r"SB_TYPED_LIST_\(SB_TYPED_(READ|WRITE|AT)_, (sb_\w+)\)", rest)
    base = (INCLUDE / "base.h").read_text()
    types = [(upper, name, ctype) for upper, _, name, ctype in re.findall(LISTED, base)
             if "HALF" not in base[:base.index(f"X({upper},")].rsplit("#define", 1)[1]]
    generic = re.findall(r"#define (sb_\w+)_t(\(.*?\))", rest)
    yield head
    yield from (wrapper(kind, call, *each) for kind, call in calls for each in types)
    for call, arguments in generic:
        yield (f"/** {call} with the suffix for the type of `out`; not in C++. */\n"
               f"#define {call}_t{arguments}\n")


def page(text):
    text = re.sub(r"\[([^\]]*)\]\((?:#|\.\./(?!guide/|README))[^)]*\)", r"\1", text)
    return re.sub(r"^```(\w+) .*$", r"```\1", text, flags=re.MULTILINE)


def main():
    header = pathlib.Path(sys.argv[1])
    text = header.read_text()
    if header.suffix == ".md":
        print(page(text), end="")
        return
    if header.name == "status.h":
        text = status_codes(text)
    if header.name == "base.h":
        text = element_types(text)
    if header.name == "typed.h":
        text = "".join(typed_wrappers(text)) + "\nSB_END_DECLS\n\n#endif\n"
    print(as_module(text, header).replace("Errors: ", "@errors "), end="")


if __name__ == "__main__":
    main()
