"""Waits, pushes and pops of the CUDA backend left out. Judged by the tests on the stand-ins."""

import re

from patterns import places

DONE = "((sb__cu_result)SB__CUDA_SUCCESS)"
NO_VISIT = "(struct sb__cuda_visit){.pushed = false}"


def result_of(call):
    """What the end of a visit hands through."""
    rest = call.split(",", 2)[2].strip()
    return f"({rest[:rest.rindex(',')]})" if "_after" in call[:call.index("(")] else f"({rest}"


def unused(call):
    """The call's argument as it is, and success."""
    return f"((void){call[call.index('(') + 1:-1]}, {DONE})"


# (kind, pattern, what it becomes given the call's text)
PATTERNS = [
    ("wait",
     r"(?:end->)?device->cu->cu"
     r"(?:StreamSynchronize|EventSynchronize|StreamWaitEvent|EventRecord)\s*\(",
     lambda call: DONE),
    ("push", r"sb__cuda_enter(?:_stream|_queue|_to_free|_to_wait)?\s*\(",
     lambda call: f"(*({call[call.rindex(',') + 1:-1].strip()}) = {NO_VISIT}, {DONE})"),
    ("pop", r"sb__cuda_leave(?:_after)?\s*\(", result_of),
    ("push", r"device->cu->cuCtxPushCurrent_v2\s*\(", lambda call: DONE),
    ("pop", r"device->cu->cuCtxPopCurrent_v2\s*\(", unused),
    ("capture mode", r"device->cu->cuThreadExchangeStreamCaptureMode\s*\(", unused),
    ("capture check", r"device->cu->cuStreamIsCapturing\s*\(", lambda call: DONE),
]


def find(root):
    """{path: edits}"""
    found = {}
    for file in sorted((root / "cuda").glob("*.c")):
        path, text = str(file.relative_to(root)), file.read_text()
        edits = found[path] = []
        for place in places(path, text):
            for kind, pattern, weaker in PATTERNS:
                for m, span in place.calls(pattern):
                    name = re.split(r"->", m[0])[-1].rstrip("( ")
                    mutant = place.mutant(kind, span[0], f"{kind}: {name} left out")
                    edits.append(place.instead(mutant, span, weaker(text[span[0]:span[1]])))
    return found
