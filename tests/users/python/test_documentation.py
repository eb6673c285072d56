"""Tests the module's documentation: every example, every signature, every page."""
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
    """Yields (name, object) of the module's functions, its classes, and their members."""
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


def parameters(definition):
    """Returns (name, kind, whether optional) of each parameter of a function in a stub."""
    arguments = definition.args
    plain = [*arguments.posonlyargs, *arguments.args]
    found = [(a.arg, "plain", i >= len(plain) - len(arguments.defaults))
             for i, a in enumerate(plain)]
    if arguments.vararg:
        found.append((arguments.vararg.arg, "*", True))
    found += [(a.arg, "named", default is not None)
              for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        found.append((arguments.kwarg.arg, "**", True))
    return found


KINDS = {inspect.Parameter.POSITIONAL_OR_KEYWORD: "plain", inspect.Parameter.VAR_POSITIONAL: "*",
         inspect.Parameter.POSITIONAL_ONLY: "plain", inspect.Parameter.KEYWORD_ONLY: "named",
         inspect.Parameter.VAR_KEYWORD: "**"}


def real_parameters(thing):
    return [(p.name, KINDS[p.kind], p.default is not p.empty or p.kind in (p.VAR_POSITIONAL,
             p.VAR_KEYWORD)) for p in inspect.signature(thing).parameters.values()]


class Stubs(unittest.TestCase):
    def setUp(self):
        self.stub = {}
        for node in ast.parse((PACKAGE / "_syncblob.pyi").read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
                self.exported = ast.literal_eval(node.value)
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self.stub.setdefault(node.name, []).append(node)
            for member in node.body if isinstance(node, ast.ClassDef) else ():
                self.stub.setdefault(f"{node.name}.{member.name}", []).append(member)

    def test_the_stubs_list_the_module(self):
        left_to_object = ("__new__", "__repr__", "__doc__", "__module__", "__delitem__", "__ne__",
                          "__lt__", "__le__", "__gt__", "__ge__")
        real = {name for name, _ in members()
                if name.rpartition(".")[2] not in left_to_object}
        stubs = {name for name in self.stub if name.rpartition(".")[2] not in left_to_object}
        self.assertEqual(real - {"View"}, stubs)
        self.assertEqual(self.exported, sorted(_syncblob.__all__))

    def test_the_stubs_have_the_modules_signatures(self):
        compared = 0
        for name, thing in members():
            if name not in self.stub or name.rpartition(".")[2] in (
                    "__len__", "__getitem__", "__setitem__", "__iter__", "__contains__", "__eq__"):
                continue  # the stub lacks the member, or the module hides its parameters' names
            if name.endswith(".__new__"):
                thing = vars(_syncblob)[name.partition(".")[0]]
            elif not callable(thing) or inspect.isclass(thing):
                continue
            real = [p for p in real_parameters(thing) if p[0] != "self"]
            for node in self.stub[name]:
                stub = [p for p in parameters(node) if p[0] not in ("self", "cls")]
                if len(self.stub[name]) == 1:
                    self.assertEqual(stub, real, name)
                else:  # an overload may require parameters that other overloads omit
                    self.assertLessEqual({p[:2] for p in stub}, {p[:2] for p in real}, name)
                compared += 1
        self.assertGreater(compared, 30)

    def test_type_checkers_recognise_mappings(self):
        bases = {name: [ast.unparse(base).partition("[")[0] for base in nodes[0].bases]
                 for name, nodes in self.stub.items() if isinstance(nodes[0], ast.ClassDef)}
        for name, found in bases.items():
            for kind in ("Mapping", "Sequence"):
                registered = issubclass(vars(_syncblob)[name], getattr(collections.abc, kind))
                self.assertEqual(kind in found, registered, (name, kind))

    def test_the_package_is_marked_as_typed(self):
        self.assertTrue((PACKAGE / "py.typed").exists())


# The requirements that a page's blocks may name: real nets and modules.
NETS = {"resnet": files.resnet, "cifar10": files.cifar10}
NEEDS = {"nothing": (), "the_resnet": ("resnet",), "nets_for_cifar10": ("cifar10",), "torch": ("torch",),
         "torch_and_the_resnet": ("torch", "resnet"), "safetensors": ("safetensors",)}


def is_there(word):
    return bool(NETS[word]() if word in NETS else importlib.util.find_spec(word))


class Pages(unittest.TestCase):
    """Runs every block of Python on every page of the repository, except the blocks that
    tests/users/golden runs. The blocks of a page run in order, as in one session. If a page shows
    the output after a block that uses a real net, the output is compared."""

    @classmethod
    def setUpClass(cls):
        cls.pages = [(page, cls.sessions_of(page)) for page in pages.pages()]
        cls.pages = [(page, blocks) for page, blocks in cls.pages if blocks]

    @staticmethod
    def sessions_of(page):
        """Returns (block, its shown output or None) of a page's blocks of Python."""
        found = list(pages.blocks(page))
        following = [*found[1:], None]
        return [(block, after.text if after and after.language == "text" and
                 set(block.info) & set(NETS) else None)
                for block, after in zip(found, following)
                if block.language == "python" and "golden" not in block.info]

    def run_page(self, blocks, words):
        names = {"__name__": "__main__"}
        for block, prints in blocks:
            if not set(block.info[1:]) <= words:
                continue
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block.text, block.place, "exec"), names)
            if prints is not None:
                self.assertEqual(out.getvalue(), prints, block.place)
            self.ran += 1

    def run_blocks(self, *words):
        """Runs the blocks that require none or some of these words, on each page with a block that requires all."""
        for word in words:
            if not is_there(word):
                self.skipTest(f"blocks of Python that need {word}: it is not available")
        self.ran = 0
        with files.empty_folder():
            self.make_files()
            for _, blocks in self.pages:
                if any(set(words) <= set(block.info) for block, _ in blocks):
                    self.run_page(blocks, set(words))
        self.assertGreater(self.ran, 0)

    def test_no_block_needs_anything_else(self):
        for _, blocks in self.pages:
            for block, _ in blocks:
                self.assertIn(set(block.info[1:]), [*map(set, NEEDS.values())], block.place)

    def make_files(self):
        if files.resnet():
            shutil.copy(files.resnet(), "resnet.caffemodel")
        else:
            files.made().save("resnet.caffemodel")
        for name, path in files.cifar10().items():
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
