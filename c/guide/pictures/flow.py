"""flow.svg: through which folders bytes go, and who calls whom. A folder that is added, or calls
against the arrows, is an error."""
import re

from svg import Picture

# The folder's column, place and what it says.
FOLDERS = {
    "format": (1, 150, 150, ["reads: index, check,", "copy once;", "writes: atomically"]),
    "dlpack": (1, 150, 30, ["tensors of", "other programs"]),
    "filler": (1, 150, 270, ["a blob's", "first values"]),
    "comm": (1, 150, 390, ["blobs of all ranks:", "sums, broadcasts"]),
    "blob": (2, 340, 150, ["shape, element type,", "data and diff"]),
    "memory": (3, 530, 150,
               ["one buffer, two sides:", "which is current, and", "what is copied when"]),
    "context": (4, 720, 150, ["allocator, limits,", "streams,", "at most one device"]),
    "host": (5, 910, 30, ["OpenBLAS, or", "plain loops"]),
    "sim": (5, 910, 150, ["a device made", "of host memory"]),
    "cuda": (5, 910, 270, ["driver API,", "cuBLAS"]),
}
COMMON = {"base", "port"}
WIDTH, HEIGHT = 160, 100
ARROWS = [("format", "blob"), ("dlpack", "blob"), ("filler", "blob"), ("comm", "blob"),
          ("blob", "memory"), ("memory", "context"), ("context", "sim"), ("context", "cuda"), ("blob", "host"),
          ("memory", "host")]


def includes(root):
    """(folder, folder) of what is included across folders; COMMON is for all."""
    for folder in FOLDERS:
        place = root / folder if folder == "cuda" else root / "c" / "src" / folder
        for source in sorted([*place.glob("*.c"), *place.glob("*.h")]):
            for other in re.findall(r'#include "(\w+)/', source.read_text()):
                if other != folder and other not in COMMON:
                    yield folder, other


def check(root):
    there = {path.name for path in (root / "c" / "src").iterdir()} - COMMON | {"cuda"}
    if there != set(FOLDERS):
        raise SystemExit(f"the folders are {sorted(there)}")
    for folder, other in includes(root):
        # of the backends, those that come with the library take the context's own structs
        if FOLDERS[other][0] < FOLDERS[folder][0] < 5:
            raise SystemExit(f"{folder} includes {other}, against the arrows")


def draw(root):
    check(root)
    picture = Picture(1090, 510, "Where bytes go",
                      "; ".join(f"{one} calls {other}" for one, other in ARROWS))
    picture.lines(20, 190, ["files,", "bytes"], "title")
    picture.edge([(75, 192), (150, 192)])
    picture.edge([(150, 215), (75, 215)])
    for one, other in ARROWS:
        _, x, y, _ = FOLDERS[one]
        _, to_x, to_y, _ = FOLDERS[other]
        bend = x + WIDTH + 15
        if other == "host":  # over the heads of the others
            picture.edge([(x + WIDTH // 2, y), (x + WIDTH // 2, to_y + HEIGHT // 2),
                          (to_x, to_y + HEIGHT // 2)])
            continue
        end = to_y + HEIGHT // 2
        if other == "blob":  # four arrows end there
            end += round((y - to_y) / 120) * 15
        middle = y + HEIGHT // 2
        picture.edge([(x + WIDTH, middle), (bend, middle), (bend, end), (to_x, end)])
    for name, (_, x, y, lines) in FOLDERS.items():
        picture.box(x, y, WIDTH, HEIGHT, name, lines)
    picture.lines(720, 275, ["calls a backend by", "its table, sb_backend"], "soft")
    picture.lines(640, 70, ["arithmetic where the host is current"], "soft")
    return str(picture)
