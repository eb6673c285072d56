"""Locks removed, memory orders weakened, waits and steps of quarantine left out.

Judged by the tests of threads under ThreadSanitizer.
"""

import re

from edits import Choice, Wrap
from patterns import places

FOLDERS = ["c/src/context", "c/src/memory", "c/src/blob"]

# The programs that may notice, those that notice most first.
FIRST = {
    "once": ["threads.once"],
    "order": ["threads.orders", "threads.dlpack"],
    "lock": ["threads.locks", "threads.dlpack"],
    "wait": ["threads.waits", "behaviour.mem_async", "behaviour.mem_rules", "faults.mem_faults"],
    "quarantine": ["faults.quarantine", "threads.lost", "threads.faults"],
}
EVERYWHERE = ["threads.mem", "behaviour.context", "behaviour.blob_copy",
              "behaviour.blob_arithmetic", "behaviour.mem_states", "threads.crossed",
              "threads.stress"]
PROGRAMS = sorted({name for names in FIRST.values() for name in names} | set(EVERYWHERE))


def find_locks(place):
    """Every mutex of every function: all its calls there are one mutant."""
    held = {}
    for _, span in place.calls(r"\bpthread_(?:mutex|rwlock|spin)_(?:try|rd|wr|tryrd|trywr|timed)?"
                               r"(?:un)?lock\s*\("):
        held.setdefault(place.arguments(span).strip(), []).append(span)
    for mutex, spans in held.items():
        mutant = place.mutant("lock", spans[0][0], f"lock {mutex} removed")
        yield from (place.instead(mutant, span, "0") for span in spans)
    spans = [span for _, span in place.calls(r"\bsb__(?:un)?lock\s*\(")]
    if spans:
        mutant = place.mutant("lock", spans[0][0], "lock of a memory removed")
        yield from (place.instead(mutant, span, "SB_OK") for span in spans)


def find_once(place):
    for _, span in place.calls(r"\bpthread_once\s*\("):
        function = place.arguments(span).split(",")[1].strip()
        plain = f"({{ static int ran; if (!ran) {{ {function}(); ran = 1; }} 0; }})"
        yield place.instead(place.mutant("once", span[0], f"pthread_once of {function} made plain"),
                            span, plain)


def find_orders(place):
    """Each order that is written; of a change that acquires and releases, each half as well."""
    for m in re.finditer(r"\bmemory_order_(acquire|release|acq_rel|seq_cst|consume)\b",
                         place.code[place.start:place.end]):
        at, weaker = place.start + m.start(), ["relaxed"]
        if m[1] == "acq_rel" and "atomic_fetch" in place.code[place.code.rindex(";", 0, at):at]:
            weaker += ["acquire", "release"]
        yield Choice((at, at + len(m[0])), [], lambda text=m[0]: text,
                     [(place.mutant("order", at, f"{m[1]} weakened to {order}"),
                       lambda order=order: "memory_order_" + order) for order in weaker])


def find_implicit_orders(place):
    """Calls without an order, which are seq_cst."""
    for m, span in place.calls(r"\batomic_(?:load|store|exchange|fetch_[a-z]+|flag_test_and_set|"
                               r"flag_clear|compare_exchange_(?:weak|strong))\s*\("):
        name = m[0].rstrip("( ")
        orders = ", memory_order_relaxed" * (2 if "compare" in name else 1)
        mutant = place.mutant("order", span[0], f"{name} weakened to relaxed")
        yield place.instead(mutant, span, f"{name}_explicit({place.arguments(span)}{orders})")


def refuse_operators(path, code):
    """Plain operators on an atomic object are seq_cst, and have no weaker form to try."""
    names = re.findall(r"(?:_Atomic\b[^;(]*?(?:\([^)]*\))?[^;(]*?|sb__counter\s[^;(]*?)"
                       r"(\w+)(?:\[\w*\])?;", code)
    for name in sorted(set(names)):
        change = rf"(?:->|\w\.){name}\b(?:\[[^]]*\])?\s*(?:\+\+|--|[-+|&^]?=(?!=))"
        for m in re.finditer(change, code):
            line = code.count("\n", 0, m.start()) + 1
            raise SystemExit(f"mutate: {path}:{line}: an operator on {name}, which is atomic: "
                             "write the call with its order")


WAITS = (r"\b(?:sb__(?:settle|event_wait|stream_wait|streams_order|streams_wait|after_users|"
         r"device_synchronize)|(?:\w+(?:->|\.))+(?:stream_synchronize|stream_wait|event_wait))"
         r"\s*\(")


def find_waits(place):
    for m, span in place.calls(WAITS):
        name = re.split(r"->|\.", m[0])[-1].rstrip("( ")
        yield place.instead(place.mutant("wait", span[0], f"{name} left out"), span, "SB_OK")


# What keeps storage until its last use is over, and what stands there, by its arguments, when it is
# left out.
STEPS = [
    (r"\b(?:sb__streams_over|is_slot_over|is_over)\s*\(", "true", "taken for over"),
    (r"\b(?:leave_in_use|enlist|sb__quarantine_ask(?:_all)?)\s*\(", "(void)0", "left out"),
    (r"\bsb__lease_release\s*\(", "sb__lease_release({first}, 0)", "without users"),
    (r"\batomic_fetch_or_explicit\s*\((?=&lease->users)", "0", "of users to the lease left out"),
    (r"\bquarantine\s*\((?=&old)", "release({all})", "becomes release"),
]
# Words, and those in their place.
WORDS = [
    (r"(?:->|\.)users\s*\|=\s*([^;]*);", "0", "users are not added"),
    (r"\bCHECKED\((check_process),", "sb__device_check", "a lost device is not asked"),
]


def find_quarantine(place):
    for pattern, by, story in STEPS:
        for m, span in place.calls(pattern):
            mutant = place.mutant("quarantine", span[0], f"{m[0].rstrip('( ')} {story}")
            given = place.arguments(span)
            without = by.format(all=given, first=given.rsplit(",", 1)[0])
            yield place.instead(mutant, span, without)
    for pattern, by, story in WORDS:
        for m in re.finditer(pattern, place.code[place.start:place.end]):
            span = place.start + m.start(1), place.start + m.end(1)
            yield Wrap(span, [span], place.mutant("quarantine", span[0], story),
                       lambda m, x, by=by: f"({m} ? {by} : ({x}))")


def find(root):
    """{path: edits}"""
    found = {}
    for folder in FOLDERS:
        for file in sorted((root / folder).glob("*.[ch]")):
            path, text = str(file.relative_to(root)), file.read_text()
            edits = found[path] = []
            for place in places(path, text):
                refuse_operators(path, place.code)
                for look in (find_locks, find_once, find_orders, find_implicit_orders, find_waits,
                             find_quarantine):
                    edits.extend(look(place))
    return found
