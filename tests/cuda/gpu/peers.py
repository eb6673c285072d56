#!/usr/bin/env python3
"""Times the benchmark's arithmetic in PyTorch and CuPy, if installed. The operations change one
buffer in place, and are compared with a copy within the device in the same run.

usage: peers.py [--quick]
"""
import importlib
import statistics
import sys
import time

MIB = 1 << 20
TRAFFIC = {"copy": 2, "Update": 3, "asum": 1, "sumsq": 1, "scale": 2}  # bytes for each byte of the buffer


def torch_calls(torch, dtype, count):
    data, diff = (torch.full((count,), value, dtype=getattr(torch, dtype), device="cuda:0")
                  for value in (0.01, 1e-9))
    target = torch.empty_like(data)
    return torch.cuda.synchronize, {
        "copy": lambda: target.copy_(data), "Update": lambda: data.sub_(diff),
        "asum": lambda: torch.linalg.vector_norm(data, 1).item(),
        "sumsq": lambda: torch.dot(data, data).item(), "scale": lambda: data.mul_(1.0000001)}


def cupy_calls(cupy, dtype, count):
    cublas = importlib.import_module("cupy.cublas")
    data, diff = (cupy.full((count,), value, dtype=dtype) for value in (0.01, 1e-9))
    target = cupy.empty_like(data)
    return cupy.cuda.Device(0).synchronize, {
        "copy": lambda: cupy.copyto(target, data), "Update": lambda: cublas.axpy(-1.0, diff, data),
        "asum": lambda: float(cublas.asum(data)), "sumsq": lambda: float(cublas.dot(data, data)),
        "scale": lambda: cublas.scal(1.0000001, data)}


def bench(make, module, sizes, repeats):
    print(f"### {module.__name__} {module.__version__}\n\n| operation | type | MiB | share of the copy | "
          "us a call, median |\n|---|---|---|---|---|")
    for dtype, width in (("float32", 4), ("float64", 8)):
        for size in sizes:
            synchronize, calls = make(module, dtype, size // width)
            series = {name: [] for name in calls}
            for _ in range(repeats + 1):  # the calls take turns
                for name, call in calls.items():
                    synchronize()
                    start = time.perf_counter()
                    for _ in range(16):
                        call()
                    synchronize()
                    series[name].append((time.perf_counter() - start) / 16)
            median = {name: statistics.median(seconds[1:]) for name, seconds in series.items()}
            for name, seconds in median.items():
                share = TRAFFIC[name] / 2 * median["copy"] / seconds
                print(f"| {name} | {dtype} | {size / MIB:.4g} | {share:.1%} | {seconds * 1e6:.1f} |")


quick = sys.argv[1:] == ["--quick"]
for name, make in (("torch", torch_calls), ("cupy", cupy_calls)):
    try:
        bench(make, importlib.import_module(name), [MIB << shift for shift in ((0,) if quick else (0, 4, 8))],
              3 if quick else 31)
    except Exception as error:  # a peer that is missing or fails is not a failure of the library
        print(f"\n{name}: {type(error).__name__}: {error}")
