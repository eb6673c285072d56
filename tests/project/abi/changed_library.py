"""The library compiled from sources that a test has changed."""
import concurrent.futures
import pathlib
import re
import shutil
import subprocess

import declarations

ROOT = pathlib.Path(__file__).resolve().parents[3]


def run(*command, **how):
    return subprocess.run([str(part) for part in command], check=True, text=True, **how)


def change(path, pattern, to):
    """Changes a file wherever the pattern fits, at least once."""
    text, times = re.subn(pattern, to, path.read_text(), flags=re.MULTILINE)
    assert times, f"{path} has no {pattern}"
    path.write_text(text)


def listed(name):
    """The sources that a list names."""
    return [line for line in (ROOT / name).read_text().splitlines()
            if line and not line.startswith("#")]


class ChangedLibrary:
    """A copy of the headers, the sources and the version script in a folder, for a test to change.
    CUDA and the libraries that may be left out are. `over` names libraries over it."""

    def __init__(self, cc, folder, *over):
        self.cc, self.folder = cc, folder
        self.include, self.source = folder / "c/include", folder / "c/src"
        self.map = folder / "c/abi/libsyncblob.map"
        for part in ("include", "src", "abi"):
            shutil.copytree(ROOT / "c" / part, folder / "c" / part)
        for name in over:
            shutil.copytree(ROOT / "c" / name, folder / "c" / name)
        (folder / "cuda").mkdir()
        shutil.copy(ROOT / "cuda/declarations.h", folder / "cuda")

    def compile(self, source, kind, *flags):
        out = self.folder / f"{source.replace('/', '_')}.{kind}.o"
        run(self.cc, "-std=c17", "-D_GNU_SOURCE", "-DSB_EXPERIMENTAL", "-w", "-O0", "-fPIC",
            "-fvisibility=hidden", f"-I{self.include}", f"-I{self.source}", *flags, "-c",
            self.folder / source, "-o", out)
        return out

    def compile_all(self, sources, jobs, kind, *flags):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(lambda source: self.compile(source, kind, *flags), sources))

    def objects(self, jobs, kind, *flags):
        sources = listed("c/sources.txt") + ["c/src/proto/pack_plain.c"]
        return self.compile_all(sources, jobs, kind, *flags)

    def link(self, objects, suffix, script):
        out = self.folder / declarations.soname(self.include, suffix)
        run(self.cc, "-shared", *objects, "-o", out, f"-Wl,-soname,{out.name}",
            f"-Wl,--version-script={script}", "-lm", "-ldl", "-lpthread")
        return out

    def shared(self, jobs):
        return self.link(self.objects(jobs, "shared"), "", self.map)

    def shared_over(self, name, library, jobs):
        """A library over `library`."""
        folder = self.folder / "c" / name
        objects = self.compile_all(listed(f"c/{name}/sources.txt"), jobs, "shared",
                                   f"-I{folder / 'include'}")
        return self.link([*objects, library], f"-{name}", folder / f"libsyncblob-{name}.map")

    def static(self, jobs):
        out = self.folder / "libsyncblob.a"
        run("ar", "rcs", out, *self.objects(jobs, "static", "-DSB__STATIC"))
        return out
