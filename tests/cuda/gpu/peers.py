#!/usr/bin/env python3
"""The benchmark's operations as PyTorch and CuPy do them, where they are installed:
in place, on one buffer, against a copy within the device in the same run.

usage: peers.py [--quick]
"""

import importlib
import statistics
import sys
import time

MIB = 1 << 20
HEADER = """| operation | type | MiB | median / median | best / best | GB/s, median | us a call, median |
|---|---|---|---|---|---|---|"""


def time_in_turn(operations, synchronize, times, repeats):
    """Seconds of one call each, per operation; a first round is not counted."""
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


def print_rows(operations, series, dtype, size):
    copy = series["copy"]
    for name, (_, traffic) in operations.items():
        usual, fastest = statistics.median(series[name]), min(series[name])
        share = traffic / usual / (2 / statistics.median(copy))
        best_share = traffic / fastest / (2 / min(copy))
        print(
            f"| {name} | {dtype} | {size / MIB:.4g} | {share:.1%} | {best_share:.1%} "
            f"| {traffic * size / usual * 1e-9:.1f} | {usual * 1e6:.1f} |"
        )


def torch_operations(torch, dtype, size):
    count = size // dtype.itemsize
    data = torch.full((count,), 0.01, dtype=dtype, device="cuda:0")
    diff = torch.full((count,), 1e-9, dtype=dtype, device="cuda:0")
    target = torch.empty_like(data)
    return {
        "copy": (lambda: target.copy_(data), 2),
        "Update": (lambda: data.sub_(diff), 3),
        "asum": (lambda: torch.linalg.vector_norm(data, 1).item(), 1),
        "sumsq": (lambda: torch.dot(data, data).item(), 1),
        "scale": (lambda: data.mul_(1.0000001), 2),
    }


def cupy_operations(cupy, dtype, size):
    cublas = importlib.import_module("cupy.cublas")
    count = size // dtype.itemsize
    data = cupy.full((count,), 0.01, dtype=dtype)
    diff = cupy.full((count,), 1e-9, dtype=dtype)
    target = cupy.empty_like(data)
    return {
        "copy": (lambda: cupy.copyto(target, data), 2),
        "Update": (lambda: cublas.axpy(-1.0, diff, data), 3),
        "asum": (lambda: float(cublas.asum(data)), 1),
        "sumsq": (lambda: float(cublas.dot(data, data)), 1),
        "scale": (lambda: cublas.scal(1.0000001, data), 2),
    }


def time_all(make, dtypes, sizes, synchronize, repeats):
    print(HEADER)
    for name, dtype in dtypes:
        for size in sizes:
            operations = make(dtype, size)
            times = max(2, min(64, 256 * MIB // size))
            series = time_in_turn(operations, synchronize, times, repeats)
            print_rows(operations, series, name, size)


def bench_torch(sizes, repeats):
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        print("PyTorch is installed, but shows no device.")
        return
    print(f"### PyTorch {torch.__version__} on {torch.cuda.get_device_name(0)}\n")
    dtypes = [("f32", torch.float32), ("f64", torch.float64)]
    time_all(lambda dtype, size: torch_operations(torch, dtype, size), dtypes, sizes,
             torch.cuda.synchronize, repeats)


def bench_cupy(sizes, repeats):
    cupy = importlib.import_module("cupy")
    print(f"### CuPy {cupy.__version__}\n")
    dtypes = [("f32", cupy.dtype("float32")), ("f64", cupy.dtype("float64"))]
    time_all(lambda dtype, size: cupy_operations(cupy, dtype, size), dtypes, sizes,
             cupy.cuda.Device(0).synchronize, repeats)


def main():
    quick = sys.argv[1:] == ["--quick"]
    if sys.argv[1:] and not quick:
        sys.exit(__doc__)
    sizes = [MIB // 16, MIB] if quick else [MIB << shift for shift in (0, 2, 4, 6, 8, 10)]
    for name, module, bench in (("PyTorch", "torch", bench_torch), ("CuPy", "cupy", bench_cupy)):
        print()
        try:
            bench(sizes, 3 if quick else 31)
        except ImportError as error:
            print(f"{name} is not installed ({error}).")
        except Exception as error:  # a peer's trouble is told, and is none of ours
            print(f"\n{name} failed: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
