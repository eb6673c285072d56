"""Finds places for mutants of operators, constants, conditions and calls in clang's syntax tree."""

import ctypes
import re

from clang import cindex
from clang.cindex import CursorKind as Kind
from clang.cindex import TypeKind

from edits import Choice, Mutant, Wrap

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "&": "|", "|": "&", "^": "|",
              "<<": ">>", ">>": "<<"}
LITERALS = (Kind.INTEGER_LITERAL, Kind.FLOATING_LITERAL, Kind.CHARACTER_LITERAL)
# These nodes get no mutants: C requires constants there, or no test can notice a change.
CLOSED = (Kind.CXX_UNARY_EXPR, Kind.STATIC_ASSERT, Kind.ENUM_DECL, Kind.STRUCT_DECL,
          Kind.UNION_DECL, Kind.TYPEDEF_DECL)
# Callers only compare the result of these functions with 0, so swapped arguments have no effect.
SYMMETRIC = ("memcmp", "strcmp", "calloc", "sb__add_size", "sb__mul_size", "sb__add_i64",
             "sb__mul_i64", "sb__shape_same", "sb__overlap")
POINTERS = (TypeKind.POINTER, TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY)
BODIES = {Kind.COMPOUND_STMT: slice(None), Kind.DO_STMT: slice(1), Kind.IF_STMT: slice(1, None),
          **dict.fromkeys((Kind.WHILE_STMT, Kind.FOR_STMT, Kind.CASE_STMT, Kind.DEFAULT_STMT,
                           Kind.LABEL_STMT), slice(-1, None))}


def file_offset(location):
    """Calls clang_getFileLocation, which libclang's Python module lacks.

    For code from a macro's definition, the function returns the place of the macro's use. For code in a macro's
    argument, the function returns the place of the argument.
    """
    function = cindex.conf.lib.clang_getFileLocation
    function.argtypes = [cindex.SourceLocation] + 4 * [ctypes.c_void_p]
    file, offset = ctypes.c_void_p(), ctypes.c_uint()
    function(location, ctypes.byref(file), None, None, ctypes.byref(offset))
    return file.value, offset.value


class Source:
    """`text` must be ASCII, because libclang's offsets count bytes."""

    def __init__(self, path, text):
        self.path, self.text = path, text

    @staticmethod
    def span(node):
        """Returns None if the start and the end are in two files or in the wrong order."""
        (first, start), (last, end) = (file_offset(node.extent.start), file_offset(node.extent.end))
        return (start, end) if first == last and start < end else None

    def words(self, span):
        text = re.sub(r"/\*.*?\*/", " ", self.text[span[0]:span[1]], flags=re.S)
        return re.sub(r"\s+", " ", text).strip()

    def line(self, offset):
        start, end = self.text.rfind("\n", 0, offset) + 1, self.text.find("\n", offset)
        return self.words((start, end))

    def is_whole(self, span):
        depth, code = 0, re.sub(r"'(?:\\.|[^'\\])'|\"(?:\\.|[^\"\\])*\"", "", self.words(span))
        for sign in code:
            depth += (sign in "([{") - (sign in ")]}")
            if depth < 0:
                return False
        return depth == 0


class Finder:
    def __init__(self, sources, seen):
        self.sources, self.seen = sources, seen
        self.edits, self.macros, self.system_macros = {}, {}, set()

    def unit(self, unit):
        for node in unit.cursor.get_children():
            file = node.location.file.name if node.location.file else None
            if node.kind == Kind.MACRO_INSTANTIATION:
                self.macros[file, node.location.offset] = node.spelling
            elif node.kind == Kind.MACRO_DEFINITION and file not in self.sources:
                self.system_macros.add(node.spelling)
            elif node.kind == Kind.FUNCTION_DECL and node.is_definition() and file in self.sources:
                self.function(node, file)
        return self.edits

    def function(self, node, file):
        place = file, node.location.offset, node.spelling
        if place in self.seen:
            return
        self.seen.add(place)
        self.source, self.name, self.file = self.sources[file], node.spelling, file
        self.returns_status = node.result_type.spelling == "sb_status"
        self.found = self.edits.setdefault(file, {})
        for child in node.get_children():
            if child.kind == Kind.COMPOUND_STMT:
                self.walk(child)

    def is_ours(self, offset):
        """Returns whether the place uses a macro of the library, which may be more than an expression."""
        name = self.macros.get((self.file, offset))
        return name is not None and name not in self.system_macros

    def mutant(self, span, what):
        what = what if len(what) <= 120 else what[:117] + "..."
        line = self.source.text.count("\n", 0, span[0]) + 1
        return Mutant(self.source.path, line, self.name, what)

    def keep(self, edit, kind):
        """Keeps the first edit of each kind at a place, because a macro may use its argument twice."""
        if all(map(self.source.is_whole, [(edit.start, edit.end), *edit.holes])):
            self.found.setdefault((edit.start, edit.end, kind), edit)

    def wrap(self, kind, span, what, render, rank=2):
        self.keep(Wrap(span, [span], self.mutant(span, what), render, rank), kind)

    # --- walking ---------------------------------------------------------------------

    def walk(self, node):
        if node.kind in CLOSED:
            return
        children = list(node.get_children())
        if node.kind == Kind.VAR_DECL:
            children = self.initialiser(node, children)
        elif node.kind == Kind.CASE_STMT:
            children = children[1:]
        for body in children[BODIES.get(node.kind, slice(0))]:
            self.statement(body)
        self.conditions(node, children)
        self.expression(node, children)
        for child in children:
            # The compiler may require constants as arguments of its builtins.
            if not (node.spelling.startswith("__builtin") and self.is_literal(child)):
                self.walk(child)

    def is_literal(self, node):
        inner = list(node.get_children())
        return node.kind in LITERALS or len(inner) == 1 and self.is_literal(inner[0])

    def initialiser(self, node, children):
        start = self.source.span(node)
        if node.storage_class == cindex.StorageClass.STATIC or not start:
            return []
        spans = [(child, self.source.span(child)) for child in children]
        return [child for child, span in spans
                if span and "=" in self.source.text[start[0]:span[0]]]

    def expression(self, node, children):
        span = self.source.span(node)
        if not span:
            return
        if node.kind in LITERALS:
            self.literal(span)
        elif node.kind == Kind.BINARY_OPERATOR and len(children) == 2:
            self.binary(span, children)
        elif node.kind == Kind.COMPOUND_ASSIGNMENT_OPERATOR:
            self.compound(span, children)
        elif node.kind == Kind.CALL_EXPR:
            self.call(node, span)
        elif node.kind == Kind.RETURN_STMT and children and self.returns_status:
            self.status(children[0])

    # --- operators -------------------------------------------------------------------

    def literal(self, span):
        text = self.source.text[span[0]:span[1]]
        if text in ("true", "false"):
            more = other = "false" if text == "true" else "true"
        elif re.fullmatch(r"[0-9.][\w.+-]*|'(?:\\.|[^'\\])'", text):
            more, other = str(int(text) + 1) if text.isdigit() else text + " + 1", f"({text} + 1)"
        else:
            return
        self.wrap("constant", span, f"{text} becomes {more} at {self.source.line(span[0])}",
                  lambda m, x: f"({m} ? {other} : {x})", rank=4)

    def operator(self, children):
        left, right = (self.source.span(child) for child in children)
        if not left or not right or left[1] > right[0]:
            return None, None, None
        return left, right, self.source.words((left[1], right[0]))

    def binary(self, span, children):
        left, right, sign = self.operator(children)
        words = self.source.words(span)
        if sign in COMPARISONS:
            self.choice("comparison", span, [left, right], sign, COMPARISONS[sign])
        elif sign in ARITHMETIC and not all(
                child.type.get_canonical().kind in POINTERS for child in children):
            self.choice("arithmetic", span, [left, right], sign, ARITHMETIC[sign])
        elif sign in ("&&", "||"):
            other = "||" if sign == "&&" else "&&"
            mutant = self.mutant(span, f"{sign} becomes {other} in {words}")
            self.keep(Wrap(span, [left, right], mutant,
                           lambda m, a, b: f"({m} ^ (({m} ^ !!({a})) {sign} ({m} ^ !!({b}))))"),
                      "logical")

    def choice(self, kind, span, holes, sign, other):
        mutant = self.mutant(span, f"{sign} becomes {other} in {self.source.words(span)}")
        self.keep(Choice(span, holes, lambda a, b: f"{a} {sign} {b}",
                         [(mutant, lambda a, b: f"{a} {other} {b}")]), kind)

    def compound(self, span, children):
        left, right, sign = self.operator(children)
        if not sign or sign[:-1] not in ARITHMETIC:
            return
        other = ARITHMETIC[sign[:-1]] + "="

        def render(m, a, b):
            flat = [re.sub(r"\s+", " ", text) for text in (a, b)]
            return f"({m} ? ({flat[0]} {other} {flat[1]}) : ({a} {sign} {b}))"

        mutant = self.mutant(span, f"{sign} becomes {other} in {self.source.words(span)}")
        self.keep(Wrap(span, [left, right], mutant, render), "arithmetic")

    def status(self, value):
        span = self.source.span(value)
        if not span or self.is_ours(span[0]):
            return
        words = self.source.words(span)
        if words == "SB_OK":
            self.wrap("status", span, "return SB_OK becomes SB_ERR_INTERNAL",
                      lambda m, x: f"({m} ? SB_ERR_INTERNAL : {x})", rank=1)
        else:
            self.wrap("status", span, f"return {words} becomes SB_OK",
                      lambda m, x: f"({{ sb_status sb__ = ({x}); {m} ? SB_OK : sb__; }})", rank=1)

    def call(self, node, span):
        spans = [self.source.span(a) for a in node.get_arguments()]
        callee = next(node.get_children(), None)
        types = self.parameters(callee)
        if not spans or None in spans or not types or callee.spelling.startswith("__"):
            return
        ends = [(a[1], b[0]) for a, b in zip(spans, [*spans[1:], (span[1], span[1])])]
        gaps = [self.source.words(gap) if gap[0] <= gap[1] else None for gap in ends]
        name = self.source.text[span[0]:spans[0][0]]
        if not name.rstrip().endswith("(") or gaps != [*[","] * (len(gaps) - 1), ")"]:
            return
        given = [self.source.words(argument) for argument in spans]
        words = self.source.words(span)
        alternatives = [
            (self.mutant(span, f"arguments {j + 1} and {i + 1} swapped in {words}"),
             self.swapped(name, i, j))
            for i in range(len(types)) for j in range(i)
            if types[i] == types[j] and given[i] != given[j]
            and not (i == 1 and callee.spelling in SYMMETRIC)]
        if alternatives:
            self.keep(Choice(span, spans, self.swapped(name, 0, 0), alternatives), "swap")

    @staticmethod
    def swapped(name, i, j):
        def render(*values):
            values = list(values)
            values[i], values[j] = values[j], values[i]
            return f"{name}{', '.join(values)})"
        return render

    @staticmethod
    def parameters(callee):
        function = callee.type.get_canonical() if callee else None
        if function and function.kind == TypeKind.POINTER:
            function = function.get_pointee().get_canonical()
        if not function or function.kind != TypeKind.FUNCTIONPROTO:
            return []
        return [re.sub(r"\bconst\b *", "", t.get_canonical().spelling).strip()
                for t in function.argument_types()]

    # --- conditions ------------------------------------------------------------------

    def conditions(self, node, children):
        """A loop's condition does not become always true, because the loop would not end."""
        if node.kind in (Kind.IF_STMT, Kind.CONDITIONAL_OPERATOR):
            self.fixed(children[0], {True, False})
        elif node.kind in (Kind.WHILE_STMT, Kind.DO_STMT):
            self.fixed(children[0 if node.kind == Kind.WHILE_STMT else -1], {False})
        elif node.kind == Kind.FOR_STMT:
            for child in filter(lambda child: self.is_condition_of(node, child), children):
                self.fixed(child, {False})
        elif node.kind == Kind.BINARY_OPERATOR and self.operator(children)[2] in ("&&", "||"):
            for child in children:
                self.fixed(child, {self.operator(children)[2] == "&&"})

    def is_condition_of(self, loop, child):
        span, whole = self.source.span(child), self.source.span(loop)
        return bool(span and whole and self.source.words((whole[0], span[0])).count(";") == 1
                    and self.source.text[span[1]:].lstrip().startswith(";"))

    def fixed(self, node, values):
        inner, span = list(node.get_children()), self.source.span(node)
        if not span:
            return
        text = self.source.text[span[0]]
        if node.kind == Kind.UNEXPOSED_EXPR and len(inner) == 1 or \
                node.kind == Kind.PAREN_EXPR and text == "(":
            self.fixed(inner[0], values)
            return
        if node.kind == Kind.UNARY_OPERATOR and text == "!":
            self.fixed(inner[0], {not value for value in values})
            return
        if node.kind == Kind.BINARY_OPERATOR:  # for && and ||, the operands' mutants cover one value
            values = values - {{"&&": True, "||": False}.get(self.operator(inner)[2])}
        words = self.source.words(span)
        if node.kind in LITERALS or self.is_ours(span[0]) and re.fullmatch(r"\w+(\(.*\))?", words):
            return  # the condition may be inside the macro
        if True in values:
            self.wrap("true", span, f"always true: {words}", lambda m, x: f"({m} | !!({x}))")
        if False in values:
            self.wrap("false", span, f"always false: {words}", lambda m, x: f"(!{m} & !!({x}))")

    def statement(self, node):
        span = self.source.span(node)
        if not span or not self.has_effect(node) or self.is_ours(span[0]):
            return
        end = self.source.text.find(";", span[1])
        if end < 0 or self.source.text[span[1]:end].strip():
            return
        span = (span[0], end + 1)
        self.wrap("statement", span, f"left out: {self.source.words(span)}",
                  lambda m, x: f"{{ if (!{m}) {x} }}", rank=0)

    @staticmethod
    def has_effect(node):
        if node.kind == Kind.CSTYLE_CAST_EXPR:
            return any(child.kind == Kind.CALL_EXPR for child in node.walk_preorder())
        return node.kind in (Kind.CALL_EXPR, Kind.BINARY_OPERATOR, Kind.UNARY_OPERATOR,
                             Kind.COMPOUND_ASSIGNMENT_OPERATOR, Kind.UNEXPOSED_EXPR)


def find(root, commands, paths):
    sources = {str(root / path): Source(path, (root / path).read_text()) for path in paths}
    seen, found = set(), {path: {} for path in paths}
    index = cindex.Index.create()
    for file, arguments in commands:
        unit = index.parse(str(file), args=arguments,
                           options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        errors = [d for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
        if errors:
            raise SystemExit(f"mutate: clang cannot read {file}: {errors[0].spelling}")
        for name, edits in Finder(sources, seen).unit(unit).items():
            for place, edit in edits.items():
                found[sources[name].path].setdefault(place, edit)
    return {path: list(edits.values()) for path, edits in found.items()}
