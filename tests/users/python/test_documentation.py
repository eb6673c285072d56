"""Tests the module's documentation: docstrings, examples and pages."""
import ast
import collections.abc
import contextlib
import doctest
import importlib.util
import inspect
import io
import pathlib
import shutil
import sys
import unittest

import files
import syncblob
from syncblob import _syncblob

sys.path.append(str(files.ROOT / "tests/project/documents"))
import pages  # noqa: E402

PACKAGE = pathlib.Path(syncblob.__file__).parent


def members():
    for name, thing in vars(_syncblob).items():
        if name.startswith("__") or inspect.ismodule(thing):
            continue
        yield name, thing
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                yield f"{name}.{member}", value


class Docstrings(unittest.TestCase):
    def test_everything_has_documentation(self):
        for name, thing in members():
            if not name.rpartition(".")[2].startswith("_"):
                self.assertTrue(thing.__doc__, name)

    def test_examples_work(self):
        runner, parser = doctest.DocTestRunner(), doctest.DocTestParser()
        messages = io.StringIO()
        for name, thing in members():
            test = parser.get_doctest(thing.__doc__ or "", dict(vars(syncblob)), name, None, 0)
            runner.run(test, out=messages.write)
        self.assertEqual(runner.failures, 0, messages.getvalue())
        self.assertGreater(runner.tries, 15)


class Stubs(unittest.TestCase):
    """Tests only base classes: another step compares the stubs' names and signatures."""

    def test_type_checkers_recognise_mappings(self):
        stub = ast.parse((PACKAGE / "_syncblob.pyi").read_text(encoding="utf-8"))
        for node in stub.body:
            if isinstance(node, ast.ClassDef):
                bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
                for kind in (collections.abc.Mapping, collections.abc.Sequence):
                    registered = issubclass(vars(_syncblob)[node.name], kind)
                    self.assertEqual(kind.__name__ in bases, registered, (node.name, kind))

    def test_the_package_is_marked_as_typed(self):
        self.assertTrue((PACKAGE / "py.typed").exists())


NETS = {"resnet": files.resnet, "cifar10": files.cifar10}
NEEDS = {"nothing": (), "the_resnet": ("resnet",), "nets_for_cifar10": ("cifar10",), "torch": ("torch",),
         "torch_and_the_resnet": ("torch", "resnet"), "safetensors": ("safetensors",)}


def is_there(word):
    return bool(NETS[word]() if word in NETS else importlib.util.find_spec(word))


class Pages(files.InFolder):
    """Runs the blocks of Python on the pages. The blocks of a page are one session."""

    @classmethod
    def setUpClass(cls):
        cls.pages = [blocks for page in pages.pages() if (blocks := cls.sessions_of(page))]

    @staticmethod
    def sessions_of(page):
        """Returns the page's blocks of Python, each with the output that the page shows, or None."""
        found = list(pages.blocks(page))
        return [(block, after.text if after and after.language == "text" and
                 set(block.info) & set(NETS) else None)
                for block, after in zip(found, [*found[1:], None])
                if block.language == "python" and "golden" not in block.info]

    def run_blocks(self, *words):
        for word in words:
            if not is_there(word):
                self.skipTest(f"blocks of Python that need {word}: it is not available")
        self.make_files()
        chosen = [blocks for blocks in self.pages if any(set(words) <= set(block.info) for block, _ in blocks)]
        self.assertTrue(chosen)
        for blocks in chosen:
            names = {"__name__": "__main__"}
            for block, prints in blocks:
                if set(block.info[1:]) <= set(words):
                    out = io.StringIO()
                    with contextlib.redirect_stdout(out):
                        exec(compile(block.text, block.place, "exec"), names)
                    self.assertIn(prints, (None, out.getvalue()), block.place)

    def test_no_block_needs_anything_else(self):
        for block, _ in (each for blocks in self.pages for each in blocks):
            self.assertIn(set(block.info[1:]), [*map(set, NEEDS.values())], block.place)

    def make_files(self):
        files.made().save("resnet.caffemodel")
        for name, path in {**files.cifar10(), "resnet.caffemodel": files.resnet()}.items():
            if path:
                shutil.copy(path, name)
        pathlib.Path("deploy.prototxt").write_bytes(files.PROTOTXT)
        pathlib.Path("deploy.caffemodel").write_bytes(files.carrying())
        mean = syncblob.Blob((1, 3, 224, 224))
        mean.fill("uniform", min=90, max=120)
        mean.save("mean.binaryproto")
        state = syncblob.Model(format="solverstate")
        state.add_blob([0.5, 0.25])
        state.save("net.solverstate")


for name, needs in NEEDS.items():
    setattr(Pages, f"test_blocks_that_need_{name}", lambda self, needs=needs: self.run_blocks(*needs))
