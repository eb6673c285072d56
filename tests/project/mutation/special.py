"""Mutants of locks, memory orders, waits and calls of the CUDA driver, found by patterns."""

import re

from edits import Choice, Mutant, Wrap


def blank(text):
    """Replaces comments and strings with spaces, so that offsets in the code do not change."""
    pattern = r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\""
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


class Place:
    """A function of a source file. Operators search the function for patterns."""

    def __init__(self, path, code, name, start, end):
        self.path, self.code, self.name, self.start, self.end = path, code, name, start, end

    def matches(self, pattern):
        return re.compile(pattern).finditer(self.code, self.start, self.end)

    def calls(self, pattern):
        for m in self.matches(pattern):
            depth, at, given = 0, m.end(), []
            for end in range(m.end() - 1, self.end):
                sign = self.code[end]
                depth += (sign == "(") - (sign == ")")
                if depth == 0 or depth == 1 and sign == ",":
                    given.append(self.code[at:end].strip())
                    at = end + 1
                if depth == 0:
                    break
            yield m, (m.start(), end + 1), given

    def mutant(self, at, what):
        return Mutant(self.path, self.code.count("\n", 0, at) + 1, self.name, what)

    @staticmethod
    def instead(mutant, span, by):
        return Wrap(span, [span], mutant, lambda m, x: f"({m} ? {by} : ({x}))")


def places(path, text):
    code, depth, start, after = blank(text), 0, None, 0
    for brace in re.finditer(r"[{}]", code):
        depth += 1 if brace[0] == "{" else -1
        head = code[after:brace.start()]
        if brace[0] == "{" and depth == 1 and head.rstrip().endswith(")"):
            name, start = re.search(r"(\w+)\s*\(", head)[1], brace.end()
        elif depth == 0:
            if start is not None:
                yield Place(path, code, name, start, brace.start())
            start, after = None, brace.end()


# --- operators ----------------------------------------------------------------------


def call(pattern, by, change="left out"):
    """Replaces calls with `by`, in which {0} is the call's first argument, and {all} all arguments."""
    def look(place):
        for m, span, given in place.calls(pattern + r"\s*\("):
            name = re.split(r"->|\.", m[0])[-1].rstrip("( ")
            text = by.format(*given, all=", ".join(given), last=given[-1])
            yield place.instead(place.mutant(span[0], f"{name} {change}"), span, text)
    return look


def lock(pattern):
    def look(place):
        held = {}
        for m, span, given in place.calls(pattern + r"\s*\("):
            mutant = place.mutant(span[0], f"lock {given[0]} removed")
            taken = "true" if "try" in m[0] else "0"
            yield place.instead(held.setdefault(given[0], mutant), span, taken)
    return look


def weaker_orders(place):
    for m in place.matches(r"\bmemory_order_(acquire|release|acq_rel|seq_cst)\b"):
        weaker = ["relaxed"]
        if m[1] == "acq_rel" and "atomic_fetch" in place.code[place.code.rindex(";", 0, m.start()):
                                                              m.start()]:
            weaker += ["acquire", "release"]
        yield Choice(m.span(), [], lambda text=m[0]: text,
                     [(place.mutant(m.start(), f"{m[1]} weakened to {order}"),
                       lambda order=order: "memory_order_" + order) for order in weaker])


def implicit_orders(place):
    """Atomic calls without an explicit order are seq_cst."""
    for m, span, given in place.calls(r"\b(atomic_(?:load|store|exchange|fetch_[a-z]+))\s*\("):
        mutant = place.mutant(span[0], f"{m[1]} weakened to relaxed")
        text = f"{m[1]}_explicit({', '.join(given)}, memory_order_relaxed)"
        yield place.instead(mutant, span, text)


SLOTS = r"(?:\w+(?:->|\.))+(?:stream_synchronize|stream_wait|event_wait)"
THREADS = [
    lock(r"\bsb__mutex_(?:try_|un)?lock"), lock(r"\bsb__(?:un)?lock"),
    call(r"\bsb__run_once", "({{ static int ran; if (!ran) {{ {1}(); ran = 1; }} }})",
         "made plain"),
    weaker_orders, implicit_orders,
    call(r"\b(?:sb__(?:settle|event_wait|stream_wait|streams_order|streams_wait|"
         rf"after_users|device_synchronize)|{SLOTS})", "SB_OK"),
    call(r"\bsb__lease_release", "sb__lease_release({0}, 0)", "without users"),
    call(r"\bquarantine(?=\(&old)", "release({all})", "becomes release"),
]

DONE = "((sb__cu_result)SB__CUDA_SUCCESS)"
NO_VISIT = "(struct sb__cuda_visit){{.pushed = false}}"
CUDA = [
    call(r"(?:end->)?device->cu->cu(?:StreamSynchronize|EventSynchronize|"
         r"StreamWaitEvent|EventRecord)", DONE),
    call(r"sb__cuda_enter(?:_stream|_queue|_to_free|_to_wait)?",
         f"(*({{last}}) = {NO_VISIT}, {DONE})"),
    call(r"(?:end->)?device->cu->cuCtxPushCurrent_v2", DONE),
    call(r"sb__cuda_leave(?:_after)?", "({2})"),
    call(r"(?:end->)?device->cu->cu(?:CtxPopCurrent_v2|ThreadExchangeStreamCaptureMode)",
         f"((void)({{all}}), {DONE})"),
    call(r"(?:end->)?device->cu->cuStreamIsCapturing", DONE),
]


def find(root, paths, operators):
    found = {}
    for path in paths:
        places_here = list(places(path, (root / path).read_text()))
        found[path] = [edit for place in places_here for look in operators for edit in look(place)]
    return found
