"""Tests that long calls release the interpreter's lock, and that several threads may use an object."""
import contextlib
import gc
import random
import sys
import threading
import time
import unittest

import files
import numpy as np
import syncblob
from syncblob import Blob


def in_threads(count, work):
    """The interpreter does not wait for daemon threads, so a stuck thread does not prevent the report."""
    begin, failures = threading.Barrier(count), []

    def run(i):
        begin.wait()
        try:
            work(i)
        except BaseException as error:  # noqa: BLE001: raised below
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(files.DEADLINE)
        if thread.is_alive():
            raise AssertionError("a thread does not end")
    if failures:
        raise failures[0]


@contextlib.contextmanager
def in_turns(turn):
    ended, started = threading.Event(), threading.Event()

    def run():
        while not ended.is_set():
            turn()
            started.set()
            time.sleep(0)

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class Lock(files.InFolder):
    def lets_others_run(self, work):
        """With the long switch interval, another thread can run only if the work releases the lock."""
        ticks, before = [], sys.getswitchinterval()
        with in_turns(lambda: ticks.append(None)):
            try:
                sys.setswitchinterval(1000)
                time.sleep(0.05)  # the other thread no longer uses the old interval
                counted = len(ticks)
                for _ in range(500):  # on a busy machine the other thread may not get a processor
                    work()
                    if len(ticks) > counted:
                        return True
                return False
            finally:
                sys.setswitchinterval(before)

    def test_other_threads_run_during_long_calls(self):
        large = Blob(1 << 22)
        large.data[...] = 1
        model = syncblob.Model("large")
        model.add_layer("fc", "InnerProduct", [large])
        content = model.to_bytes()
        net = syncblob.Net(b'''layer { name: "in" type: "Input" top: "x"
                                      input_param { shape { dim: 1 } } }
            layer { name: "fc" type: "Parameter" top: "w"
                    parameter_param { shape { dim: 4194304 } } }''', model)
        for work in (large.asum_data, lambda: large.scale_data(2), large.copy,
                     lambda: large.fill("gaussian"), lambda: large.save("file"),
                     lambda: model.save("file"), model.to_bytes, model.state_dict,
                     net.to_onnx, lambda: net.to_onnx("file"),
                     lambda: syncblob.load(content)["fc"][0].load()):
            self.assertTrue(self.lets_others_run(work))
        self.assertFalse(self.lets_others_run(lambda: sum(range(1000))))


# `{}` is the place of statements that free the array.
FINALISER = """
import faulthandler, weakref, numpy as np, syncblob
faulthandler.dump_traceback_later(300, exit=True)
class Array(np.ndarray): pass
def end():
    blob.asum_data(), blob.shape, blob.data, blob.reshape(6), other.reshape(6)
    blob.scale_data(2), model.to_bytes(), model.add_layer("b", "X", [np.float32([1])])
    print("ended")
model, other = syncblob.Model(), syncblob.Blob(5)
array = np.ones(5, "float32").view(Array)
blob = syncblob.from_dlpack(array)
weakref.finalize(array, end).atexit = False
{}
print("went on")
"""

FINALISED = ("del array; blob.reshape(1000)", "del array; blob.share_data(other)",
             "other.share_data(blob); del array; blob.reshape(1000); other.reshape(1000)",
             "seen = blob.data; del array; blob.reshape(1000); del seen",
             "again = syncblob.from_dlpack(blob); del array; blob.reshape(1000); again.reshape(9)")
if not files.IS_NUMPY_1:  # NumPy 1 does not export read-only arrays
    FINALISED += tuple(
        f"array.flags.writeable = False; blob = syncblob.from_dlpack(array); del array; {call}"
        for call in ("blob.scale_data(2)", "blob.data", "blob.fill('constant')",
                     "np.from_dlpack(blob)"))


class Copies(unittest.TestCase):
    @unittest.skipUnless(hasattr(time, "pthread_getcpuclockid"), "no clock of another thread")
    def test_no_copy_is_made_with_the_lock_held(self):
        """Measures how long the calling thread runs between two turns of another thread. Takes the best of many calls:
        on a busy machine the other thread may not get a processor.
        """
        large = syncblob.Model("large")
        large.add_layer("fc", "InnerProduct", [np.ones(1 << 23, "float32")])
        clock = time.pthread_getcpuclockid(threading.get_ident())
        turns = []

        def longest():
            turns.clear()
            begin = time.clock_gettime(clock)
            large.to_bytes()
            end = time.clock_gettime(clock)
            seen = [begin, *(at for at in list(turns) if begin < at < end), end]
            return max(b - a for a, b in zip(seen, seen[1:])) / (end - begin)

        with in_turns(lambda: turns.append(time.clock_gettime(clock))):
            self.assertLess(min(longest() for _ in range(50)), 0.2)


class Together(unittest.TestCase):
    def test_reading_and_changing_one_model(self):
        model = files.made()
        kept = {name: array.tobytes() for name, array in model.state_dict().items()}
        del kept["conv_1.bias"]
        first = model.state_dict()["conv_1.bias"].tolist()

        def work(i):
            for n in range(60):
                if i == 0:
                    model["conv_1"][1] = np.full(4, n, "float32")
                elif i == 1:
                    model.add_layer(f"more{n}", "X", [np.ones(3, "float32")])
                else:
                    source = model if i == 2 else syncblob.load(bytearray(model.to_bytes()))
                    found = source.state_dict()
                    assert {name: found[name].tobytes() for name in kept} == kept
                    assert np.asarray(model["conv_1"][0]).shape == (4, 3, 2, 2)
                    bias = found["conv_1.bias"].tolist()
                    assert len({*bias}) == 1 or bias == first

        in_threads(4, work)
        self.assertEqual(len(model), 68)

    def test_everything_with_blobs_that_share(self):
        """After half of the calls, the blobs begin to share memory."""
        for device in files.devices():
            blobs = [Blob(64, device=device) for _ in range(3)]
            for blob in blobs:
                blob.data[...] = blob.diff[...] = 1

            def work(i, blobs=blobs):
                choose, kept = random.Random(i), []
                for n in range(400):
                    own, other = choose.choice(blobs), choose.choice(blobs)
                    calls = (lambda: kept.append(own.data), lambda: kept.append(np.asarray(own)),
                             lambda: kept.append(own.__dlpack__()), kept.clear, own.asum_data,
                             lambda: own.scale_data(0.5), lambda: own.fill("uniform"), own.copy,
                             lambda: own.diff, own.to_bytes, lambda: repr(own), own.update,
                             lambda: own.reshape(choose.choice((64, 8, choose.randrange(1, 200)))),
                             own.to_device if device != "cpu" else own.asum_diff)
                    shared = (own.share_data, own.share_diff) if n > 200 else ()
                    choice = choose.choice((*calls, *shared))
                    with contextlib.suppress(ValueError):  # blobs of other sizes do not share
                        choice(other) if choice in shared else choice()
                for array in kept:
                    if isinstance(array, np.ndarray):
                        array[...] = 1

            in_threads(4, work)

    def test_arrays_of_python_end_on_any_thread(self):
        """NumPy's deleter acquires the interpreter's lock, which the thread that releases an array does not hold."""
        def work(_):
            for _ in range(200):
                blob = syncblob.from_dlpack(np.ones(10, "float32"))
                again = syncblob.from_dlpack(blob.data)
                blob.reshape(1000)  # releases its share
                del blob
                again.reshape(1000)

        in_threads(4, work)
        gc.collect()

    def test_a_finaliser_may_use_the_blob_that_releases_its_array(self):
        """Each case runs in a separate process, since a deadlocked thread never ends."""
        for last_use in FINALISED:
            done = files.run_code(FINALISER.format(last_use))
            self.assertEqual(done.stdout, "ended\nwent on\n", f"{last_use}: {done.stderr}")
