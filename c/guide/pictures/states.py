"""Draws states.svg, the heads of a memory and what each call does, from the table of state.c."""
import re

from svg import Picture

WORK = {"NOTHING": "no work", "ZERO": "zero fill", "ALLOC": "allocate", "TRANSFER": "copy",
        "ADOPT": "adopt", "FREE": "free", "REFUSE": "error"}
SHORT = {"CPU": "SB_HEAD_AT_CPU", "GPU": "SB_HEAD_AT_GPU", "BOTH": "SB_HEAD_SYNCED",
         "NEW": "SB_HEAD_UNINITIALIZED", "LOST": "SB_HEAD_LOST"}


def read_table(memory):
    """Returns {(head, call): (work, next head)}, in the order of the table."""
    enum = (memory / "state.h").read_text().split("enum sb__call {")[1].split("}")[0]
    calls = re.findall(r"^    SB__\w+, +/\* (\w+)", enum, re.MULTILINE)
    source = (memory / "state.c").read_text()
    for name, value in SHORT.items():
        if not re.search(rf"#define {name} +{value}\b", source):
            raise SystemExit(f"state.c does not define {name} as {value}")
    rows = re.findall(r"\[(SB_HEAD_\w+)\] = \{(.*?)\}\}", source, re.DOTALL)
    table = {}
    for head, cells in rows:
        found = re.findall(r"\{SB__(\w+), (\w+)", cells)
        if len(found) != len(calls):
            raise SystemExit(f"{head} has {len(found)} cells for {len(calls)} calls")
        for call, (work, after) in zip(calls, found):
            table[head, call] = (WORK[work], SHORT[after])
    if len(rows) != len(SHORT):
        raise SystemExit(f"{len(rows)} heads in state.c, {len(SHORT)} in the picture")
    return table


def works(table, before, after):
    """Returns the lines "work: call, call" of the arrow from `before` to `after`."""
    listed = {}
    for (head, call), (work, next_head) in table.items():
        if (head, next_head) == (before, after):
            listed.setdefault(work, []).append(call)
    return [f"{work}: {', '.join(calls)}" for work, calls in listed.items()]


def wrapped(lines, width):
    """Breaks lines longer than `width` after a comma, and indents the continuation."""
    for line in lines:
        while len(line) > width:
            cut = line.rindex(", ", 0, width) + 1
            yield line[:cut]
            line = 4 * "\N{NO-BREAK SPACE}" + line[cut + 1:]
        yield line


BOXES = {  # x, y, width, height
    "SB_HEAD_UNINITIALIZED": (375, 20, 330, 84),
    "SB_HEAD_AT_CPU": (20, 250, 330, 130),
    "SB_HEAD_AT_GPU": (730, 250, 330, 130),
    "SB_HEAD_SYNCED": (375, 560, 330, 90),
    "SB_HEAD_LOST": (375, 740, 330, 110),
}
# For each arrow: the SB_HEAD_* at its start and its end, its corners, its text's position and anchor.
ARROWS = [
    ("SB_HEAD_UNINITIALIZED", "SB_HEAD_AT_CPU",
     [(375, 80), (180, 80), (180, 250)], (360, 36), "end"),
    ("SB_HEAD_UNINITIALIZED", "SB_HEAD_AT_GPU",
     [(705, 80), (900, 80), (900, 250)], (720, 36), "start"),
    ("SB_HEAD_AT_CPU", "SB_HEAD_AT_GPU", [(350, 290), (730, 290)], (540, 242), "middle"),
    ("SB_HEAD_AT_GPU", "SB_HEAD_AT_CPU", [(730, 330), (350, 330)], (540, 350), "middle"),
    ("SB_HEAD_AT_CPU", "SB_HEAD_SYNCED", [(130, 380), (130, 625), (375, 625)], (140, 615), "start"),
    ("SB_HEAD_AT_GPU", "SB_HEAD_SYNCED", [(950, 380), (950, 625), (705, 625)], (940, 615), "end"),
    ("SB_HEAD_SYNCED", "SB_HEAD_AT_CPU", [(375, 585), (240, 585), (240, 380)], (250, 450), "start"),
    ("SB_HEAD_SYNCED", "SB_HEAD_AT_GPU", [(705, 585), (840, 585), (840, 380)], (830, 450), "end"),
    ("SB_HEAD_LOST", "SB_HEAD_AT_CPU", [(375, 785), (60, 785), (60, 380)], (75, 758), "start"),
    ("SB_HEAD_LOST", "SB_HEAD_AT_GPU", [(705, 785), (1000, 785), (1000, 380)], (990, 758), "end"),
]


def draw(root):
    table = read_table(root / "c" / "src" / "memory")
    steps = [f"{head} {call}: {work}, {after}" for (head, call), (work, after) in table.items()]
    picture = Picture(1080, 870, "The heads of a memory", "; ".join(steps))
    for before, after, points, (x, y), anchor in ARROWS:
        picture.edge(points)
        picture.lines(x, y, works(table, before, after), anchor=anchor)
    for head, (x, y, width, height) in BOXES.items():
        name = head.removeprefix("SB_" if "_AT_" in head else "SB_HEAD_")  # Caffe's name
        picture.box(x, y, width, height, name,
                    wrapped(works(table, head, head), 46))
    picture.edge([(1040, 380), (1040, 828), (705, 828)], is_fault=True)
    picture.lines(1030, 846, ["the device fails while it writes"], "fault", "end")
    drawn = {(before, after) for before, after, *_ in ARROWS} | {(head, head) for head in BOXES}
    missing = {(head, after) for (head, _), (_, after) in table.items()} - drawn
    if missing:
        raise SystemExit(f"the picture has no arrow for {sorted(missing)}")
    return str(picture)
