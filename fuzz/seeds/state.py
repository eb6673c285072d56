"""Seeds and words for synced_memory and reshape."""

import itertools


# --- synced_memory -----------------------------------------------------------------

CALLS = ["cpu_data", "mutable_cpu", "overwrite_cpu", "gpu_data", "gpu_data_on", "mutable_gpu",
         "mutable_gpu_on", "overwrite_gpu", "overwrite_gpu_on", "set_cpu", "set_gpu", "push",
         "pull", "prefetch_cpu", "prefetch_gpu", "evict_cpu", "evict_gpu", "clear", "synchronize"]
ARM, ARM_ALLOCATOR, CALM = range(len(CALLS) + 4, len(CALLS) + 7)
OPERATIONS = ["any", "alloc", "zero", "upload", "download", "copy", "alloc_pinned", "check_pointer",
              "check_stream", "stream_synchronize", "event_record", "stream_wait", "event_wait"]
COHERENT = 12
OWN, FIRST, SECOND = 1, 2, 3
READ_WRITE, READ_ONLY = 0, 2


def call(name, memory=0, stream=OWN, writes=True, by_work=False, variant=READ_WRITE):
    how = memory | stream << 2 | writes << 5 | by_work << 6
    extra = bytes([variant]) if name.startswith("set") else b""
    return bytes([CALLS.index(name), how]) + extra


def arm(operation, mode, nth=1):
    return bytes([ARM, next(how for how in range(64 * (nth - 1), 64 * nth)
                            if how % len(OPERATIONS) == OPERATIONS.index(operation) and
                            how // 16 % 3 == mode)])


PENDING = [call("overwrite_cpu") + call("push", stream=FIRST), call("overwrite_gpu") + call("pull", stream=FIRST)]

EVERYTHING = (call("mutable_cpu") + call("push", stream=FIRST) + call("gpu_data_on", stream=SECOND) +
              call("mutable_gpu_on", stream=FIRST) + call("pull", stream=SECOND) + call("cpu_data") +
              call("mutable_gpu", by_work=True) + call("set_gpu", variant=READ_ONLY) +
              call("mutable_gpu") + call("clear") + call("evict_cpu") + call("prefetch_cpu") +
              call("evict_gpu") + call("cpu_data"))


def faults():
    for operation, flags in itertools.product(OPERATIONS, (0, COHERENT)):
        for mode, word in enumerate(["now", "later", "sticky"]):
            yield (f"fault-{word}-{operation}-{flags}",
                   bytes([flags + 2, 24]) + arm(operation, mode) + EVERYTHING + bytes([CALM, 0]) +
                   arm(operation, mode, 2) + EVERYTHING)


# --- reshape ------------------------------------------------------------------------

STEPS = ["reshape", "reshape", "share", "copy_from", "copy_from", "bytes", "bytes", "clear", "evict", "lend",
         "update", "scale", "sums", "ask", "at", "shrink", "create", "arm", "lend_to_all",
         "set_memory", "drop_diff"]
DIMS = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 8: 10, 64: 11, -1: 12, 2**31: 13, 2**40: 14, 2**63 - 1: 15}
DATA, DIFF = 0, 1
OVERWRITE, OVERWRITE_DEVICE = 2, 5
HOST, DEVICE = 32, 33


def step(name, pair=0, other=0, which=DATA, variant=0, then=b""):
    return bytes([STEPS.index(name), pair | other << 2 | which << 4 | variant << 5]) + then


def use(how, pair=0, which=DATA):
    return step("bytes", pair, which=which, then=bytes([how]))


def reshape(pair, *dims):
    return step("reshape", pair, then=bytes([len(dims)] + [DIMS[d] for d in dims]))


def written(pair=0):
    return reshape(pair, 2, 3) + use(OVERWRITE, pair) + use(OVERWRITE, pair, DIFF)


def blob_sequences():
    for name in dict.fromkeys(STEPS):
        for choice in range(8):
            pair = choice >> 1 & 2
            before = (written(pair) + use(OVERWRITE_DEVICE, pair) * (choice & 1) +
                      reshape(pair, 2) * (choice >> 1 & 1))
            yield f"{name}-{choice}", before + b"".join(
                step(name, pair, choice & 1, variant & 1, variant, bytes([choice, 2, 2])[:choice])
                for variant in range(8))
    for index in (2, 3):
        yield f"element-1-{index}", written() + step("at", then=bytes([2, 1, index]))
    for dim in (2**31, 2**40, 2**63 - 1, -1):
        yield f"dim-{dim}", reshape(0, dim) + use(0) + reshape(0, dim, 2**40)


def seeds():
    for name, data in faults():
        yield "synced_memory", name, data
    for name, data in blob_sequences():
        yield "reshape", name, bytes([HOST]) + data
        yield "reshape", "device-" + name, bytes([DEVICE]) + data


def words():
    for name in CALLS:
        yield from (("synced_memory", call(name, stream=stream)) for stream in (OWN, FIRST))
    yield from (("synced_memory", steps) for steps in PENDING)
    yield from (("synced_memory", arm(operation, mode)) for operation in OPERATIONS for mode in range(3))
    yield from (("synced_memory", word) for word in (bytes([ARM_ALLOCATOR, 1]), bytes([CALM, 0])))
    yield from (("reshape", step(name, pair)) for name in dict.fromkeys(STEPS) for pair in (0, 1))
    yield from (("reshape", use(how, which=which)) for how in range(6) for which in (DATA, DIFF))
    yield from (("reshape", reshape(0, *dims))
                for dims in ((), (0,), (2, 3), (3, 2), (4, 4), (2**40,)))
    yield "reshape", written()
