#!/usr/bin/env bash
# Tests an installed libsyncblob-mpi through CMake's component mpi and through pkg-config: mpi.sh
# PREFIX. Each way builds the example, which trains a few steps as one rank.
set -euo pipefail
prefix=$(readlink -f "$1")
cd "$(dirname "$(readlink -f "$0")")/../../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/mpi/environment.sh
train=$PWD/c/mpi/example/train.c
cmake -G Ninja -S tests/users/consumer/mpi -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" \
    -DTRAIN="$train" >"$work/output" || { cat "$work/output" && exit 1; }
cmake --build "$work/cmake" >"$work/output" || { cat "$work/output" && exit 1; }

libdir=$(dirname "$(find "$prefix" -name syncblob-mpi.pc)")/..
compiler=$(sed -n 's/^MPI_C_COMPILER:[A-Z]*=//p' "$work/cmake/CMakeCache.txt")
read -ra flags <<<"$(PKG_CONFIG_LIBDIR=$libdir/pkgconfig pkg-config --cflags --libs syncblob-mpi)"
"$compiler" -std=c17 -D_GNU_SOURCE "$train" -o "$work/by_pkg_config" "${flags[@]}" -lm

for program in "$work/cmake/train" "$work/by_pkg_config"; do
    readelf -d "$program" | grep -q 'NEEDED.*libsyncblob-mpi.so.0.1'
    LD_LIBRARY_PATH=$libdir timeout 60 "$program" 3 >"$work/losses"
    [ "$(wc -l <"$work/losses")" = 3 ]
done
echo '2 passed, 0 failed'
