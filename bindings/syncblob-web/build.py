"""Builds the page from its parts: build.py WASM SHIM MADE OUT

SHIM is the folder of the package @bjorn3/browser_wasi_shim. MADE names the compilers. Writes
the page twice: as the single file OUT/syncblob.html, and as the folder OUT/site for a server.
"""
import base64
import hashlib
import html
import lzma
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).parent
MODULES = ("debug", "wasi_defs", "fd", "fs_mem", "wasi")
REPLACED = b"\0\r<"  # as in unpack.js
EXPORT = re.compile(r"\bexport (?=(?:class|const|let|function) ?(\w+))")


def function_of(path):
    """Returns a module's code as an assignment to modules.NAME, since Blob workers cannot import."""
    text = path.read_text()
    names = EXPORT.findall(text) + re.findall(r"export ?\{(\w+) as default\}", text)
    text = EXPORT.sub("", text)
    text = re.sub(r'import ?\* ?as (\w+) ?from ?"\./(\w+)\.js"', r"const \1=modules.\2", text)
    text = re.sub(r'import ?(\{[^}]*\}) ?from ?"\./(\w+)\.js"', r"const\1=modules.\2", text)
    text = re.sub(r"export ?\{[^}]*\};?", "", text)
    assert not re.search(r"\b(import|export)\b", text), f"{path}: unknown form of import or export"
    return f"modules.{path.stem}=(()=>{{{text};return{{{','.join(names)}}}}})();\n"


def worker(shim):
    licence = (shim / "LICENSE-MIT").read_text().strip()
    modules = "".join(function_of(shim / "dist" / f"{name}.js") for name in MODULES)
    return (f"/* @bjorn3/browser_wasi_shim, MIT or Apache-2.0:\n\n{licence}\n*/\n"
            f"const shim=(()=>{{const modules={{}};\n{modules}"
            "return{...modules.fd,...modules.fs_mem,...modules.wasi,wasi:modules.wasi_defs}})();\n"
            + (HERE / "worker.js").read_text())


def packed(data):
    """Compresses bytes to a text that unpack.js decompresses."""
    settings = {"id": lzma.FILTER_LZMA1, "dict_size": 1 << 23, "lc": 4, "lp": 0, "pb": 0, "nice_len": 273}
    data = lzma.compress(data, lzma.FORMAT_RAW, filters=[settings])
    bits = "".join(f"{byte:08b}" for byte in data)
    values = iter([int(bits[at:at + 7].ljust(7, "0"), 2) for at in range(0, len(bits), 7)])
    return "".join(chr(128 + (REPLACED.index(each) << 7 | next(values, 0)) if each in REPLACED else each)
                   for each in values)


def sources(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def policy(scripts, styles, more=""):
    """Returns the Content-Security-Policy, which also allows the report's script and style."""
    report = HERE.parent / "syncblob-cli/src/report"
    scripts += " " + sources((report / "page.js").read_text())
    styles += " " + sources((report / "page.css").read_text())
    return (f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; worker-src blob:; "
            f"script-src {scripts} 'wasm-unsafe-eval'; style-src {styles}{more}")


def page(**parts):
    text = (HERE / "index.html").read_text().replace("MADE", html.escape(sys.argv[3]))
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


def main():
    wasm, shim, out = (pathlib.Path(sys.argv[i]) for i in (1, 2, 4))
    script, style, work = (HERE / "page.js").read_text(), (HERE / "page.css").read_text(), worker(shim)
    parts = [work.encode(), wasm.read_bytes()]
    scripts = [(HERE / "unpack.js").read_text(), script]
    assert not any("</script" in text for text in scripts)
    site = out / "site"
    shutil.rmtree(out, ignore_errors=True)
    site.mkdir(parents=True)
    (out / "syncblob.html").write_text(page(
        POLICY=policy(" ".join(map(sources, scripts)), sources(style)),
        STYLE=f"<style>{style}</style>",
        PARTS=f'<script type="text/plain" id="parts" data-sizes="{" ".join(str(len(part)) for part in parts)}">'
              + packed(b"".join(parts)) + "</script>\n"
              + "\n".join(f"<script>{text}</script>" for text in scripts)))
    (site / "index.html").write_text(page(
        POLICY=policy("'self'", "'self'", "; connect-src 'self'"),
        STYLE='<link rel="stylesheet" href="page.css">',
        PARTS='<script src="page.js"></script>'))
    for name, text in ("page.js", script), ("page.css", style), ("worker.js", work):
        (site / name).write_text(text)
    shutil.copy(wasm, site / "syncblob.wasm")


main()
