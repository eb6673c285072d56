#!/usr/bin/env bash
# Compiles programs against an installed syncblob and runs the programs:
#   run.sh c|cxx|reload PREFIX    by pkg-config
#   run.sh mpi PREFIX             the example of libsyncblob-mpi, by CMake and pkg-config
#   run.sh net PREFIX COMMAND     programs with libsyncblob-net, by CMake and pkg-config: they must write the same
#                                 graph of a net as the command
# CC, CXX and FLAGS are the compilers and their flags; LINK=static hides the shared library.
set -euo pipefail

what=$1 prefix=$(readlink -f "$2")
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "${LINK:-}" = static ]; then
    cp -a "$prefix" "$work/prefix"
    prefix=$work/prefix
    find "$prefix" -name 'libsyncblob.so*' -delete
fi

pc=$(find "$prefix" -name syncblob.pc)

# syncblob must not need other packages.
ask() { # OPTION...
    PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR=$(dirname "$pc") pkg-config "$@" syncblob
}
libdir=$(ask --variable=libdir)

# The linker must find Debian's serial OpenBLAS before an OpenBLAS in libsyncblob's folder.
if [ "${LINK:-}" = static ] && grep -q openblas-serial "$pc"; then
    echo 'INPUT(the_wrong_openblas)' >"$libdir/libopenblas.so"
fi

static=()
[ -e "$libdir/libsyncblob.so" ] || static=(--static)
read -ra cflags <<<"$(ask --cflags) ${FLAGS:-}"
read -ra libs <<<"$(ask "${static[@]}" --libs)"
export LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

warnings=(-Wall -Wextra -Wpedantic -Werror)

compile_c() { # SOURCE OPTION...
    "$CC" -std=c11 "${warnings[@]}" "${cflags[@]}" "$1" -o "$work/program" "${libs[@]}" "${@:2}"
}

find_by_cmake() { # FOLDER COMPONENTS LIBRARY PROGRAMS OPTION...
    cmake -G Ninja -S "$here/found" -B "$1" -DCMAKE_PREFIX_PATH="$prefix" "-DWANTED=0.1;REQUIRED;COMPONENTS;$2" \
        "-DLIBRARY=$3" "-DPROGRAMS=$4" "${@:5}" >"$work/output" || { cat "$work/output" && exit 1; }
    cmake --build "$1" >"$work/output" || { cat "$work/output" && exit 1; }
}

case $what in
c)
    compile_c "$here/main.c"
    cd "$work"
    ./program "$(ask --modversion)"
    ;;
cxx)
    for standard in c++11 c++20; do
        "$CXX" -std=$standard "${warnings[@]}" "${cflags[@]}" "$here/main.cpp" -o "$work/program" "${libs[@]}"
        (cd "$work" && ./program)
    done
    ;;
reload)
    compile_c "$here/../../project/abi/copies.c" -DUSER=plugin -DVERSION=1 -fPIC -shared
    python3 "$here/reload.py" "$libdir/libsyncblob.so.0.1" "$work/program"
    ;;
mpi)
    cd "$here/../../.."
    . tests/mpi/environment.sh
    train=c/mpi/example/train.c
    find_by_cmake "$work/cmake" mpi 'syncblob::mpi;m' "train=../../../$train"
    compiler=$(sed -n 's/^MPI_C_COMPILER:[A-Z]*=//p' "$work/cmake/CMakeCache.txt")
    read -ra flags <<<"$(PKG_CONFIG_LIBDIR=$libdir/pkgconfig pkg-config --cflags --libs syncblob-mpi)"
    "$compiler" -std=c17 -D_GNU_SOURCE "$train" -o "$work/by_pkg_config" "${flags[@]}" -lm
    for program in "$work/cmake/train" "$work/by_pkg_config"; do
        readelf -d "$program" | grep -q 'NEEDED.*libsyncblob-mpi.so.0.1'
        timeout 60 "$program" 3 >"$work/losses"
        [ "$(wc -l <"$work/losses")" = 3 ]
    done
    ;;
net)
    command=$(readlink -f "$3")
    data=$(readlink -f "${SYNCBLOB_TEST_DATA:-$here/../../../../shared/data}")
    net=("$data/nets/mtcnn_kpzhang93_det1.prototxt" "$data/mtcnn_kpzhang93_det1.caffemodel")
    for file in "${net[@]}"; do
        [ -r "$file" ] || { echo "skipped: no readable file $file"; exit 77; }
    done
    for kind in net 'net;static'; do
        find_by_cmake "$work/${kind/;/-}" "$kind" syncblob::net 'in_c=net/convert.c;in_cxx=net/opencv.cpp' "-DINCLUDE=$here/net/fake"
    done
    read -ra flags <<<"$(PKG_CONFIG_LIBDIR=$libdir/pkgconfig PKG_CONFIG_PATH='' pkg-config --cflags --libs syncblob-net)"
    "${CC:-cc}" -std=c11 "$here/net/convert.c" -o "$work/by_pkg_config" "${flags[@]}"
    "$command" convert "${net[@]}" -o "$work/command.onnx"
    for program in net/in_c net/in_cxx net-static/in_c net-static/in_cxx by_pkg_config; do
        rm -f "$work/out.onnx"
        "$work/$program" "${net[@]}" "$work/out.onnx" >"$work/output"
        # A program's file ends with opset 17 and the graph. The command's file has digests after the graph.
        python3 -c 'import sys; ours, other = (open(name, "rb").read() for name in sys.argv[1:])
sys.exit(ours.split(b"\x10\x11", 1)[1] not in other)' "$work/out.onnx" "$work/command.onnx" ||
            { echo "$program: the graph is not the command's"; exit 1; }
    done
    [ "$(tr '\n' ' ' <"$work/output")" = 'input data output conv4-2 output prob1 ' ]
    readelf -d "$work/net/in_c" | grep -q 'NEEDED.*libsyncblob-net.so.0.1'
    if readelf -d "$work/net-static/in_c" | grep 'NEEDED.*libsyncblob'; then exit 1; fi
    ;;
*)
    echo "run.sh: no such program: $what" >&2
    exit 2
    ;;
esac
