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
for program in shared/in_c shared/in_cxx static/in_c static/in_cxx by_pkg_config; do
    "$work/$program" "${net[@]}" "$work/out.onnx" >"$work/output"
    # The graph is the end of a program's file, after opset 17. The command's file has digests, too.
    python3 -c 'import sys; ours, other = (open(name, "rb").read() for name in sys.argv[1:])
sys.exit(ours.split(b"\x10\x11", 1)[1] not in other)' "$work/out.onnx" "$work/command.onnx" ||
        { echo "$program: the graph is not the command's"; exit 1; }
    rm "$work/out.onnx"
done
"$work/shared/in_c" "${net[@]}" "$work/out.onnx" | tr '\n' ' ' | tee "$work/output"
grep -Fqx 'input data output conv4-2 output prob1 ' "$work/output"
readelf -d "$work/shared/in_c" | grep -q 'NEEDED.*libsyncblob-net.so.0.1'
if readelf -d "$work/static/in_c" | grep 'NEEDED.*libsyncblob'; then exit 1; fi
echo
echo '5 passed, 0 failed'
