"""Tests that each failure is an exception of the right kind with the library's full message."""
import copy
import functools
import inspect
import io
import itertools
import os
import pickle

import files
import numpy as np
import syncblob
from syncblob import Blob, Model, Net


class Kinds(files.InFolder):
    def check(self, kinds, code, call, words="..........", **attributes):
        with self.subTest(words), self.assertRaisesRegex(syncblob.Error, words) as caught:
            call()
        for kind in kinds if isinstance(kinds, tuple) else (kinds,):
            self.assertIsInstance(caught.exception, kind)
        self.assertEqual(caught.exception.code, f"SB_ERR_{code}")
        for name, value in attributes.items():
            self.assertEqual(getattr(caught.exception, name), value)

    def test_wrong_bytes_and_limits(self):
        content, mean = files.made().to_bytes(), Blob((1, 3, 100, 100)).to_bytes()
        load = functools.partial(functools.partial, syncblob.load)
        malformed = (syncblob.DataError, ValueError), "MALFORMED"
        self.check(*malformed, load(b"<html>"), offset=0, filename=None)
        self.check(*malformed, load(content[:-3]), "3 bytes are missing")
        for call in (lambda: syncblob.load_blob(content), load(content, format="solverstate")):
            self.check(*malformed, call, "; this is a caffemodel, not a")
        limited = (syncblob.LimitError, syncblob.DataError), "DATA_LIMIT"
        for name, limit in (("max_memory", 100), ("max_layers", 3), ("max_blobs", 2), ("max_name_bytes", 3)):
            self.check(*limited, load(content, **{name: limit}), f"; {name} of syncblob.load allows more")
        self.check(*limited, lambda: syncblob.load_blob(mean, max_memory=1000))

    def test_files(self):
        folder, missing = os.getcwd(), "missing"
        self.check((FileNotFoundError, syncblob.FileError), "IO", lambda: syncblob.load(missing), missing,
                   errno=2, device_code=2, filename=missing)
        files.made().save(os.fsencode(missing))
        Blob(1).save(os.fsencode(missing))
        self.check(syncblob.DataError, "MALFORMED", lambda: syncblob.load(missing, format="solverstate"),
                   filename=missing)
        os.remove(missing)
        for call in (lambda: syncblob.load(folder), lambda: files.made().save(folder)):
            self.check(OSError, "IO", call)
        self.check(FileNotFoundError, "IO", lambda: Blob(1).save(os.path.join(missing, "mean")))
        if os.getuid():
            os.chmod(folder, 0)
            self.check(PermissionError, "IO", lambda: syncblob.load(missing))
            os.chmod(folder, 0o700)

    def test_pickled_and_copied(self):
        for call in (lambda: syncblob.load("/none"), lambda: syncblob.load(b"<html>"),
                     lambda: Blob(2, device="cuda:4095"), lambda: Blob(-1)):
            with self.assertRaises(syncblob.Error) as caught:
                call()
            error = caught.exception
            error.note = "kept"
            for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
                self.assertIs(type(again), type(error))
                for name in ("args", "code", "offset", "device_code", "filename", "note", "errno",
                             "strerror"):
                    self.assertEqual(getattr(again, name, None), getattr(error, name, None), name)

    def test_arguments(self):
        model = files.made()
        fill = functools.partial(functools.partial, Blob(2).fill)
        rows = [
            (ValueError, "INVALID_ARGUMENT", lambda: Blob(-1)),
            (ValueError, "OVER_LIMIT", lambda: Blob([1] * 33)),
            (ValueError, "SIZE_OVERFLOW", lambda: Blob([1 << 40, 1 << 40])),
            (syncblob.UnsupportedError, "UNSUPPORTED", Blob(2, "int8").update),
            (syncblob.UnsupportedError, "UNSUPPORTED", Blob(2, "bfloat16").update, "arithmetic on bfloat16$"),
            (ValueError, "INVALID_ARGUMENT", fill("uniform", min=2, max=1)),
            (MemoryError, "OUT_OF_MEMORY", lambda: Blob(1 << 52).data),
            ((syncblob.DeviceError, RuntimeError), "NO_DEVICE", Blob(2).to_device, "device="),
            (RuntimeError, "NO_DEVICE", lambda: Blob(2, device="cuda:4095")),
            (ValueError, "INVALID_ARGUMENT", lambda: Blob(2, device="quantum")),
            (IndexError, "INDEX_OUT_OF_RANGE", lambda: model["lstm"][3]),
            (syncblob.Error, "DTYPE_MISMATCH", lambda: Blob(2).share_data(Blob(2, "float64")), "float32 .* float64"),
            (syncblob.Error, "WRONG_DEVICE", lambda: Blob(2).share_data(Blob(2, device="sim:0")), "devices"),
            (syncblob.Error, "UNSUPPORTED", lambda: Blob(2, "int8").fill("xavier"), "float32 and float64"),
        ]
        refused = (syncblob.DtypeError, TypeError), "DTYPE_MISMATCH"
        rows += [(*refused, lambda kind=kind: Blob(2, kind))
                 for kind in ("complex64", bool, "nothing", ">f4", object)]
        rows += [(*refused, call) for call in (
            lambda: Blob(2, "bfloat16").data, lambda: model["lstm"][0].load("float16"),
            lambda: model.add_blob(Blob(2, "bfloat16")), lambda: model.add_blob(np.complex64([1])))]
        rows += [(*refused, lambda kind=kind: syncblob.from_dlpack(np.ones(2, kind)), kind)
                 for kind in ("complex64", "complex128")]
        rows += [((syncblob.ArgumentError, ValueError), "INVALID_ARGUMENT", call) for call in (
            lambda: Blob(1 << 63), lambda: Model(format="x"), lambda: syncblob.load(b"", format="x"),
            fill("nothing"), fill("msra", variance_norm="x"), fill("msra", seed=-1),
            fill("constant", value=1e300), fill("uniform", min=-1e39),
            lambda: model.state_dict(framework="x"), lambda: model.state_dict(names="x"),
            lambda: syncblob.load(b"", max_memory=0))]
        for row in rows:
            self.check(*row)

    def test_mistakes_are_refused(self):
        """Without the refusal, each mistake would cause a wrong result."""
        model = files.made()
        layer, content, blob = model["conv_1"], model.to_bytes(), Blob(4)
        put = functools.partial(functools.partial, layer.__setitem__)
        rows = (
            (lambda: model.save("x.safetensors"), "not .safetensors: `syncblob convert`"),
            (lambda: model.save("x.ONNX"), "not .onnx: Net.to_onnx"),
            (lambda: model.save("x.pt"), r"not .pt: torch.save"),
            (lambda: blob.save("x.npy"), "not .npy: `syncblob convert`"),
            (put(0, np.zeros((3, 3))), r"shape \(4, 3, 2, 2\), the value \(3, 3\).*replace=True"),
            (put(0, np.zeros((2, 2, 3, 4), "float32")), "shape"),
            (put(1, 3.0), r"shape \(4,\), the value \(\)"),
            (put(1, np.zeros(4)), "float32, the value of float64.*astype"),
            (put(1, Blob(4, "float64")), "float32, the value of float64"),
            (put(1, np.arange(4)), "float32, the value of int64"),
            (put(1, [1e300] * 4), "float64 is stored as float32, which does not hold"),
            (put(1, [2**24 + 1] * 4), "int64 is stored as float32, which does not hold"),
            (put(1, np.ma.masked_less(np.arange(4, dtype="float32"), 2)), "masked"),
            (lambda: model["conv1"], "'conv1': a layer is called 'conv_1'"),
            (lambda: syncblob.load(io.StringIO("text")), 'mode "rb"'),
            (lambda: Blob(b"ab"), "a shape is a number or several, not bytes"),
            (lambda: Blob({2: 1}), "not dict"),
            (lambda: Blob(True), "not bool"),
            (lambda: syncblob.from_dlpack([1, 2]), "list does not support DLPack"),
        )
        for call, words in rows:
            with self.subTest(words=words), self.assertRaisesRegex(
                    (ValueError, TypeError, KeyError), words):
                call()
        self.assertEqual((os.listdir(), model.to_bytes()), ([], content))

    def test_values_are_converted_to_the_blobs_type(self):
        floats = np.arange(8, dtype="float32")
        for value, expected in (([1.0, 0.1, 2, True], [1, np.float32(0.1), 2, 1]),
                                (floats[3::-1].astype(">f4"), [3, 2, 1, 0]),
                                ([np.inf, -np.inf, 0, 0], [np.inf, -np.inf, 0, 0])):
            model = files.made()
            model["conv_1"][-1] = value
            self.assertEqual((model["conv_1"][1].dtype, model["conv_1"][1][...].tolist()),
                             ("float32", [float(number) for number in expected]))

    def output_of(self, code):
        done = files.run_code(code)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_a_package_that_is_imported_anew_has_the_same_classes(self):
        lines = self.output_of("""if True:
            import sys, syncblob
            first = syncblob
            for name in [name for name in sys.modules if name.startswith("syncblob")]:
                del sys.modules[name]
            import syncblob, syncblob.errors
            print(first is syncblob, syncblob.errors is first.errors)
            for package in (first, syncblob, first):
                try: syncblob.load("/none")
                except package.MissingFileError: print("caught")
        """)
        self.assertEqual(lines, "False True\n" + "caught\n" * 3)

    def test_another_interpreter_is_refused_and_the_first_goes_on(self):
        """Only the first interpreter that imports the module can ever use the module."""
        lines = self.output_of("""if True:
            try:
                import _interpreters as interpreters
                create = lambda: interpreters.create("legacy")
            except ImportError:
                import _xxsubinterpreters as interpreters, sys
                create = (interpreters.create if sys.version_info < (3, 10) else
                          lambda: interpreters.create(isolated=False))
            CODE = '''if True:
                try:
                    import syncblob
                    try: syncblob.load("/none")
                    except syncblob.MissingFileError: print("caught", flush=True)
                except ImportError as error: print(error, flush=True)
            '''
            import os
            if os.fork() == 0:  # main first
                exec(CODE)
                for i in range(2):
                    interpreters.run_string(create(), CODE)
                exec(CODE)
                os._exit(0)
            os.wait()
            other = create()
            interpreters.run_string(other, CODE)
            interpreters.destroy(other)
            exec(CODE)
        """).splitlines()
        self.assertEqual([line == "caught" for line in lines],
                         [True, False, False, True, True, False], lines)
        self.assertEqual([line.startswith("syncblob works in one interpreter of a process")
                          for line in lines], [False, True, True, False, False, True], lines)


class Odd:
    """The attributes and methods that the module uses have wrong types."""
    shape = dtype = "x"

    def __fspath__(self):
        return 3

    def __iter__(self):
        return itertools.repeat(1, 40)

    def __dlpack__(self, **_):
        return 3

    def __dlpack_device__(self):
        return 1, 0


class Raising(Odd):
    def __iter__(self):
        raise ZeroDivisionError

    __dlpack__ = __dlpack_device__ = __fspath__ = __iter__


ODD = (None, True, -1, 0, 1, 2**31, 2**63, 2**64, -2**63, 10**40, 0.5, float("nan"), 1e400, "",
       "\0", "a\0b", "\ud800", "x" * 100_000, b"", b"\xff" * 9, [], [None], [[1]], [-1], [2**63],
       (1, "a"), {}, {1: 2}, object(), Odd(), Raising(), Odd, int, np.float32, len, range(50),
       np.zeros(0), np.zeros((2, 2))[::2], np.array(["b"]), np.array(None), Blob(), Blob(2, "int8"))


class Anything(files.InFolder):
    def call(self, name, function, /, *arguments, **named):
        try:
            function(*arguments, **named)
        except (ValueError, TypeError, AttributeError, LookupError, MemoryError, OSError,
                NotImplementedError, BufferError, ZeroDivisionError, syncblob.Error):
            pass  # PanicException and SystemError are not expected
        except OverflowError:
            self.assertIn("StoredBlob", name)  # NumPy's exception for an index
            self.assertIn("__getitem__", name)
        except BaseException as error:
            self.fail(f"{name}{arguments}{named}: {type(error).__mro__}: {error}")

    def callables(self):
        model = files.made()
        objects = (syncblob, Blob((2, 2)), Blob(), Blob(3, "int32"), Blob(2, device="sim:0"), model,
                   model["bn_1"], model["bn_1"][0], Net(files.PROTOTXT, files.carrying()), Blob,
                   Model, Net)
        for thing in objects:
            for name in dir(thing):
                found = getattr(type(thing), name, None)
                ours = inspect.isroutine(found) and getattr(found, "__objclass__", None) is not None
                special = name in ("__getitem__", "__setitem__", "__contains__", "__array__",
                                   "__dlpack__", "__call__")
                if thing is syncblob and name in syncblob.__all__ or \
                        ours and (special or not name.startswith("_")):
                    yield f"{thing!r}.{name}", getattr(thing, name)

    def test_one_argument_and_two(self):
        count = 0
        for name, function in self.callables():
            self.call(name, function)
            for first in ODD:
                self.call(name, function, first)
                for second in (None, -1, 10**40, "float32", "\0", Raising(), np.ones(2)):
                    self.call(name, function, first, second)
                    count += 1
        self.assertGreater(count, 5000)

    def test_named_arguments(self):
        usual = {"prototxt": files.PROTOTXT, "source": Blob(2).to_bytes(), "shape": (2,), "name": "a"}
        more, count = {"fill": ("mean", "std", "sparse", "value", "variance_norm")}, 0
        for name, function in self.callables():
            if not callable(function) or inspect.isclass(function) and function not in (Blob, Model, Net):
                continue
            parameters = inspect.signature(function).parameters.values()
            needed = {each.name: usual.get(each.name, "msra") for each in parameters
                      if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD}
            names = [each.name for each in parameters if each.default is not each.empty]
            names += more.get(name.rpartition(".")[2], ())
            for key, value in itertools.product(names, ODD):
                if not isinstance(value, Odd):
                    self.call(name, function, **needed, **{key: value})
                    count += 1
        self.assertGreater(count, 1000)
