"""Writes the SVG of the pictures, with dark colours if the reader's system uses a dark theme."""
from xml.sax.saxutils import escape

STYLE = """
  svg { --paper: #ffffff; --ink: #1b1f24; --soft: #57606a; --box: #f3f6fa; --line: #3b6ea5;
        --fault: #b3452c; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #14181d; --ink: #e6e9ed; --soft: #9aa5b1; --box: #1f262e; --line: #79aee6;
          --fault: #f0876c; }
  }
  .paper { fill: var(--paper); }
  text { font: 13px system-ui, "DejaVu Sans", sans-serif; fill: var(--ink); }
  .title { font-weight: 600; font-size: 15px; }
  .soft { fill: var(--soft); }
  rect.box { fill: var(--box); stroke: var(--line); stroke-width: 1.5; }
  path.edge { fill: none; stroke: var(--line); stroke-width: 1.5; }
  path.fault { stroke: var(--fault); stroke-dasharray: 5 4; }
  .head { fill: var(--line); }
  .faulthead { fill: var(--fault); }
  text.fault { fill: var(--fault); }
""".strip("\n")


class Picture:
    def __init__(self, width, height, title, description):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-labelledby="title desc">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="desc">{escape(description)}</desc>',
            f"<style>\n{STYLE}\n</style>",
            "<defs>"]
        for name, css in (("arrow", "head"), ("faultarrow", "faulthead")):
            self.parts.append(
                f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" '
                f'markerHeight="8" orient="auto">'
                f'<path class="{css}" d="M0 0L10 5L0 10z"/></marker>')
        self.parts.append("</defs>")
        self.parts.append(f'<rect class="paper" width="{width}" height="{height}"/>')

    def text(self, x, y, text, css="", anchor="start"):
        self.parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}" class="{css}">'
                          f"{escape(text)}</text>")

    def lines(self, x, y, lines, css="", anchor="start"):
        for number, line in enumerate(lines):
            self.text(x, y + 17 * number, line, css, anchor)

    def box(self, x, y, width, height, title, lines):
        self.parts.append(f'<rect class="box" x="{x}" y="{y}" width="{width}" height="{height}" '
                          'rx="7"/>')
        self.text(x + 12, y + 22, title, "title")
        self.lines(x + 12, y + 42, lines, "soft")

    def edge(self, points, is_fault=False):
        path = "M" + "L".join(f"{x} {y}" for x, y in points)
        css, head = ("edge fault", "faultarrow") if is_fault else ("edge", "arrow")
        self.parts.append(f'<path class="{css}" d="{path}" marker-end="url(#{head})"/>')

    def __str__(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"
