#!/usr/bin/env python3
"""Checks the doc comments of the public headers: check_reference.py [INCLUDE_FOLDER...].

A function needs a comment. If the function returns sb_status, the comment must end with the list of codes:

    Errors: none.
    Errors: OUT_OF_MEMORY, SHAPE_MISMATCH (counts differ), as sb_blob_cpu, the lender's.

Each code must be in status.h. "as FUNCTION" adds the list of another function. "the X's" stands for the
codes that the caller's callback X returns. Parentheses contain reasons. A list may omit INVALID_ARGUMENT,
which base.h documents for every function. The list must have each status that a C test expects, as in
assert_status(SB_ERR_SHARED, sb_blob_...(...)).

Every pointer needs a line @param with [owned], [borrowed] or only [nullable], except the error, the
object that the function is called on, a callback's user pointer, and numbers to read or write. A returned
pointer needs @return with [owned] or [borrowed]. No function may return a struct. Every value of an
enum needs a comment.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADERS = [*sorted(ROOT.glob("c/**/include")), ROOT / "bindings/syncblob-net-c/include"]
DECLARATION = re.compile(r"(/\*\*(?:(?!\*/).)*\*/)?\s*\bSB_API\s+(?:SB_MUST_CHECK\s+)?"
                         r"([^;]*?)\b(sb_\w+)\s*\(([^;]*)\);", re.DOTALL)
TESTS = [ROOT / "tests", *(ROOT / "c").glob("*/tests"), ROOT / "bindings/syncblob-net-c/tests"]
EXPECTED = re.compile(r"\bSB_ERR_(\w+),\s*(sb_\w+)\(")
COMPARED = re.compile(r"\b(sb_\w+)\([^;]*?\)\s*==\s*SB_ERR_(\w+)")
NUMBER = re.compile(r"(const )?(u?int\d+_t|size_t|float|double|sb_(stats|solver_info|layer_info|"
                    r"blob_info|filler|context_options|net_summary|net_layer)) \*$")
OBJECT = re.compile(r"(const )?sb_(context|mem|blob|model|comm|reducer|net|error) \*$")
WORDS = {"owned", "borrowed", "nullable"}
BRACKETED = re.compile(r"(owned|borrowed)(, (nullable|on success))?( when \w+ is 0)?|nullable")


def comment_text(comment):
    lines = (re.sub(r"^\s*\* ?", "", line) for line in comment[3:-2].splitlines())
    return "\n".join(lines)


def parameters(text):
    for part in re.split(r",(?![^(]*\))", " ".join(text.split())):
        part = part.strip()
        if "(*" in part:
            yield part, re.search(r"\(\*(\w+)\)", part).group(1)
        elif part != "void":
            kind, name = re.match(r"(.*?)(\w+)$", part).groups()
            yield kind.strip(), name


class Function:
    def __init__(self, header, comment, returns, name, arguments):
        self.header, self.name, self.returns = header, name, returns.strip()
        self.text = comment_text(comment) if comment else ""
        self.parameters = list(parameters(arguments))

    def parameter_words(self, name):
        found = re.search(rf"@param\s+(?:\w+, )*{name}\b(?:, \w+)*\s+\[([^\]]*)\]", self.text)
        return {re.split(r"[ ]", word.strip())[0] for word in found.group(1).split(",")} \
            if found else set()


def error_items(text):
    found = re.search(r"\bErrors:\s+(.*)", text, re.DOTALL)
    if not found:
        return None
    plain = found.group(1)
    while re.search(r"\([^()]*\)", plain):
        plain = re.sub(r"\s*\([^()]*\)", "", plain)
    return [" ".join(item.split()) for item in plain.split(".")[0].split(",")]


def check_errors(name, text, statuses, fallible):
    items = error_items(text)
    if items is None:
        yield 'returns sb_status and has no list "Errors: ..."'
        return
    if text.count("Errors:") > 1:
        yield "has two lists of errors"
    for item in items:
        if item in statuses or (item == "none" and len(items) == 1):
            continue
        if re.fullmatch(r"the \w+'s", item):
            continue
        other = re.fullmatch(r"as (sb_\w+)", item)
        if not other:
            yield f'its list of errors has "{item}", which is not a code of status.h'
        elif other.group(1) == name or other.group(1) not in fallible:
            yield f'its list of errors names "{other.group(1)}", which has none'


def check_pointers(function):
    for position, (kind, name) in enumerate(function.parameters):
        if name in ("err", "user") or ("*" not in kind and kind != "sb_deleter"):
            continue
        if NUMBER.match(kind) or (position == 0 and OBJECT.match(kind)):
            continue
        words = function.parameter_words(name)
        if not words & WORDS:
            yield f'parameter {name}: no @param with [owned], [borrowed] or [nullable]'
    if "*" in function.returns and not re.search(
            r"@return\s+\[([^\]]*,)?\s*(owned|borrowed)\s*[,\]]", function.text):
        yield "returns a pointer and has no @return with [owned] or [borrowed]"


def check_words(function):
    for words in re.findall(r"@(?:param\s+(?:\w+, )*\w+|return)\s+\[([^\]]*)\]", function.text):
        if not BRACKETED.fullmatch(" ".join(words.split())):
            yield f"[{words}]: not words that describe ownership"


def undocumented_values(text):
    for body in re.findall(r"^(?:typedef )?enum[^{;]*\{(.*?)^\}", text, re.DOTALL | re.MULTILINE):
        if "#define" not in body:
            yield from re.findall(r"\b(SB_\w+)\s*(?:=\s*[-\w]+(?: << \d+)?)?\s*,?\s*(?=\bSB_|\Z)",
                                  body)


def malformed(text):
    for comment in re.finditer(r"^/\*\* (?:(?!\*/).)*\n(?:(?!\*/).)*\*/", text, re.DOTALL | re.MULTILINE):
        first = text.count("\n", 0, comment.start()) + 1
        for number, line in enumerate(comment[0].splitlines(), first):
            if number > first and not re.match(r" \*(  |$|/)", line) or len(line) > 100:
                yield number, "its comment is not in the form of a contract"
            if re.search(r"\w.* (Errors: |@(param|return)\b)", line):
                yield number, "a tag does not begin a line"


def dtypes(text):
    return re.findall(r"\bX\((\w+), \d+, (\w+), (\w+), \w+, with\)", text)


def read_headers(folders):
    paths = [path for folder in folders for path in sorted((folder / "syncblob").glob("*.h"))]
    return {path.name: path.read_text() for path in paths}


def read_functions(texts):
    return [Function(header, *match) for header, text in texts.items()
            for match in DECLARATION.findall(text)]


def problems(folders):
    texts = read_headers(folders)
    statuses = {name for name in re.findall(r"X\(ERR_(\w+),", texts["status.h"])}
    functions = read_functions(texts)
    structs = {name for text in texts.values()
               for name in re.findall(r"^(?:typedef )?\w+ (sb_\w+) \{", text, re.MULTILINE)}
    fallible = {f.name for f in functions if error_items(f.text)}
    exported = sum(len(re.findall(r"^SB_API ", text, re.MULTILINE)) for text in texts.values())
    if len(functions) != exported:
        yield f"{exported} functions are marked SB_API, {len(functions)} are understood"
    for function in functions:
        found = [*check_pointers(function), *check_words(function)]
        if function.returns == "sb_status":
            found += check_errors(function.name, function.text, statuses, fallible)
        if function.returns in structs:  # some languages cannot call functions that return structs
            found.append(f"returns the struct {function.returns}, not through `out`")
        yield from (f"{function.header}: {function.name}: {what}" for what in found)
    yield from (f"{header}: {name}: is not described" for header, text in texts.items()
                for name in undocumented_values(text))
    yield from (f"{header}:{line}: {what}" for header, text in texts.items()
                for line, what in malformed(text))


def codes(name, functions):
    listed = {"INVALID_ARGUMENT"}
    for item in error_items(functions[name].text) or []:
        listed |= codes(item[3:], functions) if item.startswith("as ") else {item}
    return listed


def wrong_expectations(folders):
    headers, judged = read_headers(folders), 0
    functions = {f.name: f for f in read_functions(headers) if f.returns == "sb_status"}
    typed = "|".join(name for _, name, _ in dtypes(headers["base.h"]))
    for source in sorted(source for folder in TESTS for source in folder.rglob("*.c")):
        text = source.read_text()
        for name, code in [(name, code) for code, name in EXPECTED.findall(text)] + COMPARED.findall(text):
            plain = re.sub(rf"_({typed}|t)$", "", name)
            if plain not in functions:
                continue
            listed = codes(plain, functions) | ({"DTYPE_MISMATCH"} if plain != name else set())
            judged += 1
            # a function that returns the status of a caller's callback may return any status
            if code not in listed and not any(item.startswith("the ") for item in listed):
                yield f"{source.relative_to(ROOT)}: expects {code} of {name}, whose list does not have it"
    if not judged:
        yield "no test expects a status"


def main():
    folders = [pathlib.Path(folder) for folder in sys.argv[1:]] or HEADERS
    found = list(problems(folders))
    found += [] if found else wrong_expectations(folders)
    print("\n".join(found) or "every exported function has a complete contract")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
