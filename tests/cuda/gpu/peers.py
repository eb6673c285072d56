#!/usr/bin/env python3
"""Times the benchmark's operations in PyTorch and CuPy, if installed. The operations change one
buffer in place, and are compared with a copy within the device in the same run.

usage: peers.py [--quick]
"""

import importlib
import statistics
import sys
import time

MIB = 1 << 20


def time_in_turn(operations, synchronize, times, repeats):
    """Returns the seconds of a call in each round, by operation; a first round does not count."""
    series = {name: [] for name in operations}
    for round_ in range(-1, repeats):
        for name, (call, _) in operations.items():
            synchronize()
            start = time.perf_counter()
            for _ in range(times):
                call()
            synchronize()
            if round_ >= 0:
                series[name].append((time.perf_counter() - start) / times)
    return series


class Torch:
    """PyTorch's operations, each with the bytes that it moves for each byte of the buffer."""

    def __init__(self):
        self.torch = importlib.import_module("torch")
        self.synchronize = self.torch.cuda.synchronize
        self.name = f"PyTorch {self.torch.__version__} on {self.torch.cuda.get_device_name(0)}"

    def operations(self, dtype, count):
        torch = self.torch
        data, diff = (torch.full((count,), value, dtype=getattr(torch, dtype), device="cuda:0")
                      for value in (0.01, 1e-9))
        target = torch.empty_like(data)
        return {"copy": (lambda: target.copy_(data), 2),
                "Update": (lambda: data.sub_(diff), 3),
                "asum": (lambda: torch.linalg.vector_norm(data, 1).item(), 1),
                "sumsq": (lambda: torch.dot(data, data).item(), 1),
                "scale": (lambda: data.mul_(1.0000001), 2)}


class CuPy:
    def __init__(self):
        self.cupy = importlib.import_module("cupy")
        self.synchronize = self.cupy.cuda.Device(0).synchronize
        self.name = f"CuPy {self.cupy.__version__}"

    def operations(self, dtype, count):
        cupy, cublas = self.cupy, importlib.import_module("cupy.cublas")
        data, diff = (cupy.full((count,), value, dtype=dtype) for value in (0.01, 1e-9))
        target = cupy.empty_like(data)
        return {"copy": (lambda: cupy.copyto(target, data), 2),
                "Update": (lambda: cublas.axpy(-1.0, diff, data), 3),
                "asum": (lambda: float(cublas.asum(data)), 1),
                "sumsq": (lambda: float(cublas.dot(data, data)), 1),
                "scale": (lambda: cublas.scal(1.0000001, data), 2)}


def bench(peer, sizes, repeats):
    print(f"### {peer.name}\n\n| operation | type | MiB | share of the copy | GB/s, median | "
          "us a call, median |\n|---|---|---|---|---|---|")
    for dtype, width in (("float32", 4), ("float64", 8)):
        for size in sizes:
            operations = peer.operations(dtype, size // width)
            times = max(2, min(64, 256 * MIB // size))
            series = time_in_turn(operations, peer.synchronize, times, repeats)
            copy = 2 / statistics.median(series["copy"])
            for name, (_, traffic) in operations.items():
                median = statistics.median(series[name])
                print(f"| {name} | {dtype} | {size / MIB:.4g} | {traffic / median / copy:.1%} "
                      f"| {traffic * size / median * 1e-9:.1f} | {median * 1e6:.1f} |")


def main():
    quick = sys.argv[1:] == ["--quick"]
    if sys.argv[1:] and not quick:
        sys.exit(__doc__)
    sizes = [MIB // 16, MIB] if quick else [MIB << shift for shift in (0, 2, 4, 6, 8, 10)]
    for peer in (Torch, CuPy):
        try:
            bench(peer(), sizes, 3 if quick else 31)
        except Exception as error:  # a peer that is missing or fails is not a failure of the library
            print(f"\n{peer.__name__}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
