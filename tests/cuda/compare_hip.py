#!/usr/bin/env python3
"""compare_hip.py FOLDER...: renames the functions of cuda/declarations.h to HIP's, so that gcc can compare
their prototypes with HIP's. FOLDER contains a version's hip/hip_runtime_api.h (Debian: libamdhip64-dev).
Prints each function that HIP lacks or that has other parameters."""
import pathlib
import re
import subprocess
import sys

DECLARATIONS = pathlib.Path(__file__).resolve().parents[2] / "cuda" / "declarations.h"
TYPES = {"result": "hipError_t", "device": "hipDevice_t", "ptr": "hipDeviceptr_t", "context": "hipCtx_t",
         "stream": "hipStream_t", "event": "hipEvent_t", "pool": "hipMemPool_t",
         "module": "hipModule_t", "function": "hipFunction_t"}
STRUCTS = {"struct CUmemPoolProps_st": "hipMemPoolProps", "struct CUmemAccessDesc_st": "hipMemAccessDesc",
           "struct CUmemLocation_st": "hipMemLocation"}
NAMES = {"cuGetErrorName": "hipDrvGetErrorName", "cuGetErrorString": "hipDrvGetErrorString",
         "cuDeviceGetCount": "hipGetDeviceCount", "cuMemAlloc": "hipMalloc", "cuMemFree": "hipFree",
         "cuMemAllocFromPoolAsync": "hipMallocFromPoolAsync", "cuMemFreeAsync": "hipFreeAsync",
         "cuMemHostAlloc": "hipHostAlloc", "cuMemFreeHost": "hipHostFree",
         "cuPointerGetAttributes": "hipDrvPointerGetAttributes",
         "cuStreamCreate": "hipStreamCreateWithFlags", "cuEventCreate": "hipEventCreateWithFlags",
         "cuLaunchKernel": "hipModuleLaunchKernel"}


def functions():
    """Yields (name in HIP, parameters) for each function of the driver that cuda/declarations.h lists."""
    text = DECLARATIONS.read_text(encoding="utf-8").replace("\\\n", "")
    text = text[text.index("SB__CUDA_FUNCTIONS(F)"):text.index("SB__CUBLAS_FUNCTIONS(F)")]
    for name, parameters in re.findall(r"F\(sb__cu_result, *(\w+), *(\(.*?\))\)", text):
        for old, new in {f"sb__cu_{key}": value for key, value in TYPES.items()}.items():
            parameters = re.sub(rf"\b{old}\b", new, parameters)
        for old, new in STRUCTS.items():
            parameters = parameters.replace(old, new)
        name = name.removesuffix("_v2")
        yield NAMES.get(name, "hip" + name.removeprefix("cu")), parameters


def main():
    for folder in sys.argv[1:]:
        found = list(functions())
        different = 0
        for name, parameters in found:
            source = (f"#include <hip/hip_runtime_api.h>\n"
                      f"hipError_t (*const check) {' '.join(parameters.split())} = {name};\n")
            gcc = subprocess.run(["gcc", "-std=c17", "-Werror=incompatible-pointer-types",
                                  "-D__HIP_PLATFORM_AMD__", "-isystem", folder, "-fsyntax-only", "-xc", "-"],
                                 input=source, text=True, capture_output=True, check=False)
            if gcc.returncode != 0:
                different += 1
                print(name, "is missing" if "undeclared" in gcc.stderr else "has other parameters")
        print(f"{folder}: {len(found) - different} of {len(found)} functions are the same")


main()
