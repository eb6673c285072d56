#!/usr/bin/env python3
"""Makes report.html of what the program bench wrote as JSON: the goals as a table, every case as a plot
over the size. One file, which needs no other."""
import argparse
import html
import io
import json
import pathlib
import platform

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402

matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 82em; padding: 0 1em; color: #222 }
table { border-collapse: collapse } td, th { padding: .2em .8em; text-align: left; white-space: nowrap }
tr:nth-child(even) { background: #f5f5f5 } .number { text-align: right; font-variant-numeric: tabular-nums }
.met { color: #176b2c } .MISSED { color: #b3261e; font-weight: 600 } .not { color: #777 }
.plots { display: flex; flex-wrap: wrap } figure { margin: 0 1em 1em 0 } svg { max-width: 100% }
"""


def size_text(size, _=None):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}"
        size /= 1024


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} × {names[0]}" if names else platform.machine()


def goal_row(goal):
    name = goal["what"] + (f", {size_text(goal['bytes'])}" if goal["bytes"] else "")
    number = (lambda x: f"{x:.3g}") if goal["verdict"] != "not measured" else (lambda _: "–")
    cells = [("", goal["goal"]), ("", name), ("", goal["against"]), ("number", goal["threads"]),
             ("number", number(goal["measured"])), ("number", number(goal["median"])),
             ("number", f"{goal['limit']:.3g}"), ("", goal["unit"]),
             (goal["verdict"], goal["verdict"])]
    return "".join(f'<td class="{kind}">{html.escape(str(text))}</td>' for kind, text in cells)


def goal_table(goals):
    heads = ("goal", "case", "against", "threads", "best", "median", "limit", "unit", "")
    return ("<table><tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>\n"
            + "\n".join(f"<tr>{goal_row(goal)}</tr>" for goal in goals) + "</table>")


def grouped(contests):
    """The contests of each case by their sizes, in the order that they ran."""
    groups = {}
    for contest in contests:
        groups.setdefault((contest["goal"], contest["what"], contest["threads"]), []).append(contest)
    return groups


def plot(what, threads, contests):
    """Bytes of payload per nanosecond, that is GB/s, over the size; best samples."""
    figure, axes = plt.subplots(figsize=(6.2, 4))
    names = list(dict.fromkeys(c["name"] for contest in contests for c in contest["contestants"]))
    for name in names:
        points = [(contest["bytes"], contest["bytes"] / c["best_ns"])
                  for contest in contests for c in contest["contestants"] if c["name"] == name]
        axes.plot(*zip(*points), marker="o", markersize=4, label=name,
                  linewidth=2.2 if name == "syncblob" else 1.2)
    axes.set(xscale="log", yscale="log", xlabel="payload", ylabel="GB/s",
             title=f"{what}, {threads} thread{'s' if threads > 1 else ''}")
    axes.set_xticks([contest["bytes"] for contest in contests], minor=False)
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(size_text))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes.tick_params(axis="x", rotation=30)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    picture = io.StringIO()
    figure.savefig(picture, format="svg")
    plt.close(figure)
    return picture.getvalue()[picture.getvalue().index("<svg"):]


def times_table(contests):
    rows = [f"<tr><td>{html.escape(contest['what'])}</td><td>{html.escape(c['name'])}</td>"
            f'<td class="number">{c["best_ns"]:.3g}</td><td class="number">{c["median_ns"]:.3g}</td></tr>'
            for contest in contests for c in contest["contestants"]]
    return ("<table><tr><th>case</th><th></th><th>best, ns</th><th>median, ns</th></tr>"
            + "\n".join(rows) + "</table>")


def page(report):
    groups = grouped(report["contests"])
    plots = [f"<figure>{plot(what, threads, contests)}</figure>"
             for (_, what, threads), contests in groups.items() if len(contests) > 1]
    single = [contests[0] for contests in groups.values() if len(contests) == 1]
    verdicts = [goal["verdict"] for goal in report["goals"]]
    summary = ", ".join(f"{verdicts.count(verdict)} {verdict.lower()}"
                        for verdict in ("met", "MISSED", "not measured"))
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>syncblob: how fast</title><style>{STYLE}</style>
<h1>syncblob: how fast</h1>
<p>{html.escape(processor())}; the library compiled by {html.escape(report['compiler'])}. All contestants of a
case ran in turns in one process. A goal compares the best samples; the median is that of the
rounds' ratios.</p>
<h2>Goals: {summary}</h2>{goal_table(report['goals'])}
<h2>Times that do not depend on a size</h2>{times_table(single)}
<h2>Over the size</h2><div class="plots">{"".join(plots)}</div></html>
"""


def merged(paths):
    """The reports of several processes of one run, as one."""
    reports = [json.loads(path.read_text()) for path in paths]
    lists = {name: [item for report in reports for item in report[name]]
             for name in ("goals", "contests")}
    return {**reports[0], **lists}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("html", type=pathlib.Path)
    arguments.add_argument("json", type=pathlib.Path, nargs="+")
    options = arguments.parse_args()
    options.html.write_text(page(merged(options.json)))


if __name__ == "__main__":
    main()
