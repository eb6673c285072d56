#!/usr/bin/env python3
"""Tests that `syncblob convert` needs at most 1.2 x the largest blob + 32 MiB of anonymous memory
in every direction, and at most 64 MiB + 16 x the file's size to refuse a file built to cost memory.

    convert.py --cli PROGRAM [--mib 128]

The net is generated; the command `diff` compares the values of each conversion with the original.
Needs only Python.
"""

import argparse
import json
import math
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

MIB = 1 << 20
ALLOWED_BLOBS, ALLOWED_MORE = 1.2, 32 * MIB


def layers_of(mib):
    """Returns shapes of `mib` MiB of floats in all. The largest shape has a quarter of the floats, like
    a fully connected layer in a net."""
    rows = mib // 4 * MIB // 4 // 4096
    return [("fc6", [rows, 4096]), ("fc7", [rows, 4096]), ("fc8", [rows, 4096])] + [
        (f"conv{number}", [rows // 32, 64, 64]) for number in range(32)]


def write_net(path, mib):
    """Writes a net as safetensors. Returns the size of the largest blob."""
    header, at = {}, 0
    for name, shape in layers_of(mib):
        for blob, dims in enumerate((shape, shape[:1])):
            size = 4 * math.prod(dims)
            header[f"{name}.{blob}"] = {"dtype": "F32", "shape": dims, "data_offsets": [at, at + size]}
            at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    # Floats in [1, 2) with random bits.
    some = random.Random(1).randbytes(4 * MIB)
    block = bytearray(some)
    block[3::4] = b"\x3f" * MIB
    block[2::4] = bytes(byte | 0x80 for byte in some[2::4])
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        while at > 0:
            at -= file.write(block[:min(at, len(block))])
    return max(4 * math.prod(shape) for _, shape in layers_of(mib))


# --- memory -----------------------------------------------------------------------


def peak_anonymous(command):
    """Returns the exit status and the peak of anonymous memory, sampled each millisecond."""
    child = subprocess.Popen(command)
    peak, looks = 0, 0
    while child.poll() is None:
        try:
            with open(f"/proc/{child.pid}/status", encoding="ascii") as status:
                fields = dict(line.split(":", 1) for line in status)
            peak = max(peak, int(fields.get("RssAnon", "0 kB").split()[0]) * 1024)
            looks += 1
        except (ProcessLookupError, FileNotFoundError):
            break
        time.sleep(0.001)
    return child.wait(), peak, looks


def check_memory(cli, folder, mib):
    begin = folder / "net.safetensors"
    largest = write_net(begin, mib)
    steps = [("net.safetensors", "net.caffemodel", []),
             ("net.caffemodel", "back.safetensors", []),
             ("net.caffemodel", "net.npz", []),
             ("net.npz", "back.caffemodel", []),
             ("net.caffemodel", "half.safetensors", ["--dtype", "f16"]),
             ("half.safetensors", "half.caffemodel", []),
             ("net.caffemodel", "fc6.npy", ["--only", "fc6.0"])]
    failed = 0
    for source, target, options in steps:
        command = [cli, "convert", "--force", *options, folder / source, folder / target]
        status, peak, looks = peak_anonymous(command)
        allowed = ALLOWED_BLOBS * largest + ALLOWED_MORE
        good = status == 0 and looks > 10 and peak <= allowed and same(cli, folder, begin, target)
        print(f"{source} to {target}: status {status}, {peak / MIB:.1f} MiB of anonymous memory at "
              f"most ({peak / largest:.2f} x the largest blob), {allowed / MIB:.1f} allowed: "
              f"{'ok' if good else 'FAILED'}")
        failed += not good
        if target not in [step[0] for step in steps]:
            (folder / target).unlink(missing_ok=True)
    return failed


def same(cli, folder, begin, target):
    if target.startswith("half") or target == "fc6.npy":
        return True  # rounded values, or one blob: users/golden/test_convert.py compares these
    run = subprocess.run([cli, "diff", begin, folder / target], stdout=subprocess.PIPE, check=False)
    return run.returncode == 0


# --- files that are made to cost memory ------------------------------------------------


def safetensors_bytes(header):
    return struct.pack("<Q", len(header)) + header


def npy_bytes(shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def zip_of(path, members):
    """Writes a zip file. A member has a name, first bytes, and some MiB of zeros, which are written one by
    one: this program must stay small, because a child process inherits its peak of memory."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, zeros in members:
            with archive.open(name, "w") as member:
                member.write(data)
                for _ in range(zeros):
                    member.write(bytes(MIB))


def bombs(folder):
    """Yields names and paths, one file on the disk at a time. Each file has false sizes or counts."""
    path = folder / "bomb.safetensors"
    entry = b'"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    entries = b",".join(entry % number for number in range(100000))
    path.write_bytes(safetensors_bytes(b"{" + entries + b',"x":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}'))
    yield "a hundred thousand tensors, one cut off", path
    path.write_bytes(safetensors_bytes(b'{"a":' * 1000000))
    yield "a header of a million brackets", path
    path.write_bytes(safetensors_bytes(b"[" + b"0," * 5000000))
    yield "a header that is a list of numbers", path
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", 100000000) + b"{")
        file.truncate(100000008)
    yield "a header of 100 MB", path
    path = folder / "bomb.npz"
    zip_of(path, [("a.0.npy", npy_bytes("(2,)"), 200)])
    yield "200 MiB of zeros where the header claims 8 bytes", path
    zip_of(path, [("a.0.npy", npy_bytes("(10000000000000,)"), 1)])
    yield "a shape of 40 TB", path
    zip_of(path, [(f"a{number}.0.npy", b"", 0) for number in range(20000)])
    yield "twenty thousand members without arrays", path
    path = folder / "bomb.npy"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{")
        file.truncate(5 << 30)
    yield "an npy header of 4 GiB", path
    path.write_bytes(npy_bytes("(" * 5000))
    yield "five thousand brackets", path


def check_bombs(cli, folder):
    failed = 0
    for name, path in bombs(folder):
        target = folder / "bomb.caffemodel"
        child = subprocess.Popen([cli, "convert", path, target], stderr=subprocess.PIPE)
        message = child.stderr.read().decode()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        peak = usage.ru_maxrss * 1024
        real = path.stat().st_blocks * 512
        allowed = 64 * MIB + 16 * real
        good = child.returncode == 1 and peak <= allowed and message.count("\n") == 1 and not target.exists()
        print(f"{name}: status {child.returncode}, {peak / MIB:.1f} MiB of {allowed / MIB:.1f} allowed: "
              f"{'ok' if good else 'FAILED ' + message}")
        failed += not good
        path.unlink()
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--cli", required=True, help="the program syncblob")
    parser.add_argument("--mib", type=int, default=128, help="the generated net's size")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        free = shutil.disk_usage(folder).free
        if free < 6 * options.mib * MIB:
            print(f"memory: not measured, {free / MIB:.0f} MiB are free for files of {options.mib} MiB")
            failed = 0
        else:
            failed = check_memory(options.cli, folder, options.mib)
        failed += check_bombs(options.cli, folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
