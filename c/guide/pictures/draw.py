#!/usr/bin/env python3
"""Draws the guide's pictures from the sources. With --check, fails if a stored picture differs."""
import pathlib
import sys

sys.dont_write_bytecode = True
import flow  # noqa: E402
import states  # noqa: E402

GUIDE = pathlib.Path(__file__).resolve().parents[1]
ROOT = GUIDE.parents[1]


def main():
    stale = []
    for name, drawn in (("states.svg", states.draw(ROOT)), ("flow.svg", flow.draw(ROOT))):
        path = GUIDE / name
        if "--check" not in sys.argv:
            path.write_text(drawn)
        elif not path.exists() or path.read_text() != drawn:
            stale.append(f"c/guide/{name} does not match the sources: run {sys.argv[0]}")
    print("\n".join(stale) or "the pictures match the sources")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
