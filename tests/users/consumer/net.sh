#!/usr/bin/env bash
# Tests an installed libsyncblob-net through CMake's component net, shared and static, and through
# pkg-config:
#   net.sh PREFIX COMMAND
# Each program converts one of MTCNN's nets; the graph in its file must equal the graph that the
# command syncblob writes.
set -euo pipefail
prefix=$(readlink -f "$1") command=$(readlink -f "$2")
cd "$(dirname "$(readlink -f "$0")")"
data=$(readlink -f "${SYNCBLOB_TEST_DATA:-../../../../shared/data}")
net=("$data/nets/mtcnn_kpzhang93_det1.prototxt" "$data/mtcnn_kpzhang93_det1.caffemodel")
for file in "${net[@]}"; do
    [ -r "$file" ] || { echo "skipped: no readable file $file"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
libdir=$(dirname "$(find "$prefix" -name syncblob-net.pc)")/..
export LD_LIBRARY_PATH=$libdir

# Prints a digest of the graph in a file, without producer and metadata, which differ between
# programs.
graph() { # FILE
    python3 - "$1" <<'PYTHON'
import hashlib
import sys

data, at, graph = open(sys.argv[1], "rb").read(), 0, b""


def varint():
    global at
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value


while at < len(data):
    key, size = varint(), varint()
    if key & 7 == 2:
        if key >> 3 == 7:
            graph = data[at:at + size]
        at += size
print(len(graph), hashlib.sha256(graph).hexdigest())
PYTHON
}

build() { # FOLDER COMPONENTS
    cmake -G Ninja -S net -B "$work/$1" -DCMAKE_PREFIX_PATH="$prefix" "-DWANTED=$2" \
        "-DOPENCV=$PWD/net/fake" >"$work/output" || { cat "$work/output" && exit 1; }
    cmake --build "$work/$1" >"$work/output" || { cat "$work/output" && exit 1; }
}

build shared net
build static 'net;static'
read -ra flags <<<"$(PKG_CONFIG_LIBDIR=$libdir/pkgconfig PKG_CONFIG_PATH='' \
    pkg-config --cflags --libs syncblob-net)"
"${CC:-cc}" -std=c11 net/convert.c -o "$work/by_pkg_config" "${flags[@]}"

"$command" convert "${net[@]}" -o "$work/command.onnx"
expected=$(graph "$work/command.onnx")
for program in shared/in_c shared/in_cxx static/in_c static/in_cxx by_pkg_config; do
    "$work/$program" "${net[@]}" "$work/out.onnx" >"$work/output"
    [ "$(graph "$work/out.onnx")" = "$expected" ] ||
        { echo "$program: the graph is $(graph "$work/out.onnx"), the command's $expected"; exit 1; }
    rm "$work/out.onnx"
done
"$work/shared/in_c" "${net[@]}" "$work/out.onnx" | tr '\n' ' ' | tee "$work/output"
grep -Fqx 'input data output conv4-2 output prob1 ' "$work/output"
readelf -d "$work/shared/in_c" | grep -q 'NEEDED.*libsyncblob-net.so.0.1'
if readelf -d "$work/static/in_c" | grep 'NEEDED.*libsyncblob'; then exit 1; fi
echo
echo '5 passed, 0 failed'
