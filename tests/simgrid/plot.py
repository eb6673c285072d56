"""Draws the results of simulate.py as an SVG: a panel for each network, a group of bars for each number
of hosts, a bar for each size of buckets."""
WIDTH, HEIGHT, LEFT, TOP, GAP = 330, 190, 60, 70, 70
COLOURS = {1: "#b35806", 25: "#2166ac", 128: "#5aae61"}


def text(x, y, words, anchor="middle", size=11):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{words}</text>'


def rectangle(x, y, width, height, colour, opacity):
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{colour}" fill-opacity="{opacity}"/>')


def line(x1, y1, x2, y2, colour="#888", width=1):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width}"/>')


def top_of(rows):
    """Returns the upper end of the axis, in milliseconds."""
    most = max(row["apart"] for row in rows) * 1e3
    return next(top for top in (50, 100, 150, 200, 250, 300, 400, 500, 750, 1000, 2000, 5000, 10 ** 6)
                if top >= most)


def panel(rows, left, top, title):
    hosts = sorted({row["hosts"] for row in rows})
    most, group = top_of(rows), WIDTH / len(hosts)
    out = [text(left + WIDTH / 2, top - 8, title, size=13)]

    def height(seconds):
        return HEIGHT * seconds * 1e3 / most

    for i in range(5):
        y = top + HEIGHT * (1 - i / 4)
        out += [line(left, y, left + WIDTH, y, "#ddd"),
                text(left - 6, y + 4, f"{most * i / 4:g}", "end")]
    for i, number in enumerate(hosts):
        ours = [row for row in rows if row["hosts"] == number]
        x, bar = left + i * group + 14, (group - 28) / max(len(ours), 1)
        for row in ours:
            for what, opacity in (("apart", 0.35), ("beside", 1)):
                out.append(rectangle(x, top + HEIGHT - height(row[what]), bar - 4,
                                     height(row[what]), COLOURS[row["bucket_mib"]], opacity))
            x += bar
        best = top + HEIGHT - height(max(ours[0]["compute"], ours[0]["bound"]))
        out += [line(left + i * group + 8, best, left + (i + 1) * group - 8, best, "#000", 2),
                text(left + (i + 0.5) * group, top + HEIGHT + 16, f"{number} hosts")]
    return out


def legend():
    out, x = [], LEFT
    for mib, colour in COLOURS.items():
        words = "all in one bucket" if mib > 100 else f"buckets of {mib} MiB"
        out += [rectangle(x, 14, 12, 12, colour, 1), text(x + 18, 24, words, "start")]
        x += 150
    out += [text(LEFT, 44, "ms for each step: dark, with overlap; light, without overlap; "
                     "black line, the larger of the bound and the computation", "start")]
    return out


def draw(rows):
    rows = [row for row in rows if row["algorithm"] == "halving"]
    networks = sorted({(row["gbits"], row["shape"]) for row in rows})
    body = legend()
    for i, (gbits, shape) in enumerate(networks):
        title = f"{gbits} Gbit/s, " + ("one switch" if shape == "flat" else "fat tree, 2 to 1")
        body += panel([row for row in rows if (row["gbits"], row["shape"]) == (gbits, shape)],
                      LEFT + i % 2 * (WIDTH + GAP), TOP + i // 2 * (HEIGHT + GAP), title)
    width = LEFT + 2 * WIDTH + GAP + 20
    height = TOP + (len(networks) + 1) // 2 * (HEIGHT + GAP)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'font-family="sans-serif"><rect width="100%" height="100%" fill="#fff"/>\n'
            + "\n".join(body) + "\n</svg>\n")
