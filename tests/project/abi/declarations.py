"""What the public headers declare, after the C compiler's preprocessor."""
import pathlib
import re
import subprocess

STABLE, BACKEND, EXPERIMENTAL = "stable", "backend", "experimental"
MACRO = "SB_EXPERIMENTAL"


def headers(include):
    return sorted(pathlib.Path(include, "syncblob").glob("*.h"))


def all_headers(include, over):
    """Also those of libraries over the core, whose folders are `over`."""
    return [header for folder in (include, *over) for header in headers(folder)]


def preprocessed(cc, include, header, *defines):
    """The header's own lines without comments; of what it includes, nothing."""
    command = [cc, "-std=c11", "-E", f"-I{include}", *defines, header]
    text = subprocess.run(command, check=True, text=True, capture_output=True).stdout
    lines, ours = [], False
    for line in text.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = marker[1] == str(header)
        elif ours:
            lines.append(line)
    return "\n".join(lines)


def without_attributes(text):
    """Without those that a mark may stand beside."""
    return re.sub(r'__attribute__\(\((deprecated(\("[^"]*"\))?|warn_unused_result)\)\)', "", text)


def functions(text):
    """Names of the functions that SB_API marks."""
    text = without_attributes(text)
    mark = r'__attribute__\(\(visibility\("default"\)\)\)'
    return {match[1] for match in re.finditer(mark + r"[^;{(]*?(\w+)\s*\(", text)}


def functions_with_flags(cc, include):
    """Names of the functions that are given flags."""
    found = set()
    for header in headers(include):
        text = preprocessed(cc, include, header, f"-D{MACRO}")
        text = without_attributes(text).replace("__attribute__", "")
        found.update(re.findall(r"(\w+)\s*\([^;{}()]*\buint32_t flags\b[^;{}()]*\)\s*;", text))
    return found & set().union(*tiers(cc, include).values())


def tiers(cc, include):
    """The functions of each tier."""
    found = {STABLE: set(), BACKEND: set(), EXPERIMENTAL: set()}
    for header in headers(include):
        plain = functions(preprocessed(cc, include, header))
        every = functions(preprocessed(cc, include, header, f"-D{MACRO}"))
        found[BACKEND if header.name == "backend.h" else STABLE] |= plain
        found[EXPERIMENTAL] |= every - plain
    return found


def functions_over(cc, include, folder):
    """Those of the headers of a library over the core."""
    return {name for header in headers(folder)
            for name in functions(preprocessed(cc, include, header, f"-I{folder}"))}


def member_names(body):
    """Names of a struct's members, in their order."""
    names = []
    for declaration in filter(None, map(str.strip, body.split(";"))):
        function = re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", declaration)
        if function:
            names.append(function[1])
        else:
            names += [re.search(r"(\w+)\s*(\[[^]]*\])?$", part.strip())[1]
                      for part in declaration.split(",")]
    return names


def structs(cc, include, *over):
    """Members of every struct whose layout the headers show."""
    found = {}
    for header in all_headers(include, over):
        text = preprocessed(cc, include, header, f"-D{MACRO}", *(f"-I{x}" for x in over))
        text = re.sub(r"__attribute__\(\(may_alias\)\)", "", text)
        for match in re.finditer(r"struct\s+(sb_\w+)\s*\{([^{}]*)\}", text):
            found[match[1]] = member_names(match[2])
        for name in re.findall(r"struct\s+(sb_\w+)\s*\{", text):
            if name not in found:
                raise ValueError(f"{header}: the struct {name} has a part that is not understood")
    return found


def constants(cc, include, *over):
    """Names of all constants, enumerators and macros that are a number."""
    found = set()
    for header in all_headers(include, over):
        text = preprocessed(cc, include, header, f"-D{MACRO}", *(f"-I{x}" for x in over))
        for body in re.findall(r"\benum\s*\{([^{}]*)\}", text):
            found.update(re.findall(r"\b(SB_\w+)\s*(?==|,|$)", body.strip() + "\n", re.MULTILINE))
        found.update(re.findall(r"^#define (SB_\w+) \(?-?\d+\)?$", header.read_text(),
                                re.MULTILINE))
    return found


def version(include):
    """"MAJOR.MINOR" of base.h."""
    text = pathlib.Path(include, "syncblob/base.h").read_text()
    return ".".join(re.search(rf"#define SB_VERSION_{part} (\d+)", text)[1]
                    for part in ("MAJOR", "MINOR"))


def soname(include, suffix=""):
    """Of the shared library libsyncblob and its suffix: while the major version is 0, each minor one has an ABI of its own."""
    major, minor = version(include).split(".")
    return f"libsyncblob{suffix}.so.{major}" + (f".{minor}" if major == "0" else "")
