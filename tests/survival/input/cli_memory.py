#!/usr/bin/env python3
"""Tests how much memory the commands of the program syncblob need.
"""
import argparse
import json
import math
import os
import pathlib
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

MIB = 1 << 20
BOMB_SIZES = (20_000_000, 4_000_000, 1_000_000, 200_000)
READS = [["info", "FILE"], ["info", "--json", "FILE"], ["diff", "FILE", "FILE"], ["show", "FILE"],
         ["report", "--force", "FILE", "-o", "REPORT"], ["verify", "FILE"]]
NET_MIB = 1024
CONVERSIONS = [("net.safetensors", "net.caffemodel", []),
               ("net.caffemodel", "back.safetensors", []),
               ("net.caffemodel", "net.npz", []),
               ("net.npz", "back.caffemodel", []),
               ("net.caffemodel", "half.safetensors", ["--dtype", "f16"]),
               ("half.safetensors", "half.caffemodel", []),
               ("net.caffemodel", "fc6.npy", ["--only", "fc6.0"])]



def npy_bytes(shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def write_zip(path, members):
    """Writes each MiB separately: a child process inherits this program's peak of memory."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, zeros in members:
            with archive.open(name, "w") as member:
                member.write(data)
                for _ in range(zeros):
                    member.write(bytes(MIB))


def write_sparse(path, data, size):
    with open(path, "wb") as file:
        file.write(data)
        file.truncate(size)


def bombs_to_read(program, folder):
    path = folder / "bomb"
    names = subprocess.run([program, "bombs"], check=True, text=True, capture_output=True).stdout
    for name in names.split():
        for size in BOMB_SIZES:
            subprocess.run([program, "write", name, str(size), path], check=True)
            yield f"{name} of {size}", path


def bombs_to_refuse(folder):
    """Yields files with false sizes or counts."""
    def safetensors(header):
        path = folder / "bomb.safetensors"
        path.write_bytes(struct.pack("<Q", len(header)) + header)
        return path

    entry = b'"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    entries = b",".join(entry % number for number in range(100000))
    yield "a hundred thousand tensors, one cut off", safetensors(
        b"{" + entries + b',"x":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}')
    path = safetensors(b"[" + b"0," * 5000000)
    yield "a header that is a list of numbers", path
    write_sparse(path, struct.pack("<Q", 100000000) + b"{", 100000008)
    yield "a header of 100 MB", path
    path = folder / "bomb.npz"
    write_zip(path, [("a.0.npy", npy_bytes("(2,)"), 200)])
    yield "200 MiB of zeros where the header claims 8 bytes", path
    write_zip(path, [("a.0.npy", npy_bytes("(10000000000000,)"), 1)])
    yield "a shape of 40 TB", path
    write_zip(path, [(f"a{number}.0.npy", b"", 0) for number in range(20000)])
    yield "twenty thousand members without arrays", path
    path = folder / "bomb.npy"
    write_sparse(path, b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", 5 << 30)
    yield "an npy header of 4 GiB", path


def is_frugal(what, path, command, statuses):
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE)
    message = child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    file, peak = path.stat(), usage.ru_maxrss * 1024
    allowed = 64 * MIB + 16 * min(file.st_size, file.st_blocks * 512)
    good = child.returncode in statuses and peak <= allowed and (statuses != [1] or message.count("\n") == 1)
    if not good:
        print(f"{what}, {' '.join(map(str, command))}: status {child.returncode}, {peak / MIB:.1f} MiB of "
              f"{allowed / MIB:.1f} allowed: {message}")
    return good


def bomb_results(options, folder):
    for name, path in bombs_to_read(options.cost, folder):
        words = {"FILE": path, "REPORT": folder / "report.html"}
        for read in READS:
            command = [options.cli, *(words.get(word, word) for word in read)]
            yield is_frugal(name, path, command, [0, 1, 2])
    target = folder / "bomb.caffemodel"
    for name, path in bombs_to_refuse(folder):
        yield is_frugal(name, path, [options.cli, "convert", path, target], [1]) and not target.exists()
        path.unlink()



def write_net(path):
    """Returns the size of the largest blob."""
    rows = NET_MIB // 4 * MIB // 4 // 4096
    header, at = {}, 0
    for name, shape in [("fc6", [rows, 4096]), ("fc7", [rows, 4096]), ("fc8", [rows, 4096])] + [
            (f"conv{number}", [rows // 32, 64, 64]) for number in range(32)]:
        for blob, dims in enumerate((shape, shape[:1])):
            size = 4 * math.prod(dims)
            header[f"{name}.{blob}"] = {"dtype": "F32", "shape": dims, "data_offsets": [at, at + size]}
            at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    # floats in [1, 2) with random bits
    some = random.Random(1).randbytes(4 * MIB)
    block = bytearray(some)
    block[3::4] = b"\x3f" * MIB
    block[2::4] = bytes(byte | 0x80 for byte in some[2::4])
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        while at > 0:
            at -= file.write(block[:min(at, len(block))])
    return 4 * rows * 4096


def is_same(cli, one, other):
    if other.name.startswith("half") or other.name == "fc6.npy":
        return True  # users/golden/test_convert.py compares rounded values and single blobs
    return subprocess.run([cli, "diff", one, other], stdout=subprocess.DEVNULL, check=False).returncode == 0


def conversion_results(options, folder):
    free = shutil.disk_usage(folder).free
    if free < 6 * NET_MIB * MIB:
        print(f"conversions: skipped, {free / MIB:.0f} MiB are free for files of {NET_MIB} MiB")
        return
    begin = folder / CONVERSIONS[0][0]
    allowed = write_net(begin) * 6 // 5 + 32 * MIB
    for source, target, more in CONVERSIONS:
        done = subprocess.run([options.cli, "convert", "--force", *more, folder / source, folder / target], check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed)))
        good = done.returncode == 0 and is_same(options.cli, begin, folder / target)
        print(f"{source} to {target}: {'ok' if good else 'FAILED'}")
        if target not in [source for source, _, _ in CONVERSIONS]:
            (folder / target).unlink(missing_ok=True)
        yield good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":\n\n", maxsplit=1)[0])
    parser.add_argument("--cli", required=True, help="the program syncblob")
    parser.add_argument("--cost", required=True, help="the program cost")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        results = [*bomb_results(options, folder), *conversion_results(options, folder)]
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
