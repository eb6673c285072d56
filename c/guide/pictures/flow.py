"""Draws flow.svg: the folders that bytes pass through, and the calls between them. The script fails
if FOLDERS lacks a folder, or if a folder includes a header of a folder to which no arrow leads."""
import re

from svg import Picture

# Each folder's column, position (x, y) and lines of text.
FOLDERS = {
    "model": (1, 150, 150, ["layers of a file:", "opened, edited,", "saved atomically"]),
    "dlpack": (2, 340, 30, ["tensors of", "other programs"]),
    "proto": (2, 340, 150, ["a blob as a message:", "index, check, copy", "once; encode"]),
    "filler": (2, 340, 270, ["a blob's", "initial values"]),
    "blob": (3, 530, 150, ["shape, element type,", "data and diff"]),
    "format": (3, 530, 270, ["Caffe's fields; which", "format bytes have"]),
    "memory": (4, 720, 150,
               ["one buffer, two sides:", "which is current, and", "what is copied when"]),
    "wire": (4, 720, 270, ["sources, sinks, the", "bounded reader"]),
    "context": (5, 910, 150, ["allocator, limits,", "streams,", "at most one device"]),
    "host": (6, 1100, 30, ["OpenBLAS, or", "plain loops"]),
    "sim": (6, 1100, 150, ["a device made", "of host memory"]),
    "cuda": (6, 1100, 270, ["driver API,", "cuBLAS"]),
}
COMMON = {"base", "port"}
WIDTH, HEIGHT = 160, 100
ARROWS = [("model", "proto"), ("proto", "blob"), ("proto", "format"), ("dlpack", "blob"),
          ("filler", "blob"), ("filler", "format"), ("format", "wire"),
          ("wire", "context"), ("blob", "memory"), ("memory", "context"), ("context", "sim"),
          ("context", "cuda"), ("blob", "host"), ("memory", "host")]


def includes(root):
    """Yields (folder, included folder) for includes between folders other than COMMON."""
    for folder in FOLDERS:
        place = root / folder if folder == "cuda" else root / "c" / "src" / folder
        for source in sorted([*place.glob("*.c"), *place.glob("*.h")]):
            for other in re.findall(r'#include "(\w+)/', source.read_text()):
                if other != folder and other not in COMMON:
                    yield folder, other


def below(folder):
    """Yields the folders to which arrows lead from `folder`; checks that arrows lead rightwards."""
    for one, other in ARROWS:
        if one == folder:
            assert FOLDERS[one][0] < FOLDERS[other][0]
            yield other
            yield from below(other)


def check(root):
    there = {path.name for path in (root / "c" / "src").iterdir()} - COMMON | {"cuda"}
    if there != set(FOLDERS):
        raise SystemExit(f"FOLDERS of flow.py must have {sorted(there)}")
    for folder, other in includes(root):
        # the built-in backends, in the last column, may include the context's headers
        if other not in below(folder) and FOLDERS[folder][0] < 6:
            raise SystemExit(f"{folder} includes {other}, but no arrow leads there")


def draw(root):
    check(root)
    picture = Picture(1280, 390, "Where bytes go",
                      "; ".join(f"{one} calls {other}" for one, other in ARROWS))
    picture.lines(20, 190, ["files,", "bytes"], "title")
    picture.edge([(75, 192), (150, 192)])
    picture.edge([(150, 215), (75, 215)])
    for one, other in ARROWS:
        _, x, y, _ = FOLDERS[one]
        _, to_x, to_y, _ = FOLDERS[other]
        bend = to_x - (10 if y < to_y else 20)
        if other == "host":  # the arrow passes above the other folders
            picture.edge([(x + WIDTH // 2, y), (x + WIDTH // 2, to_y + HEIGHT // 2),
                          (to_x, to_y + HEIGHT // 2)])
            continue
        end = to_y + HEIGHT // 2
        end += (y - to_y) // 120 * 15  # arrows to one folder end at different heights
        middle = y + HEIGHT // 2
        picture.edge([(x + WIDTH, middle), (bend, middle), (bend, end), (to_x, end)])
    for name, (_, x, y, lines) in FOLDERS.items():
        picture.box(x, y, WIDTH, HEIGHT, name, lines)
    picture.lines(910, 275, ["calls a backend by", "its table, sb_backend"], "soft")
    picture.lines(830, 70, ["arithmetic where the host is current"], "soft")
    return str(picture)
