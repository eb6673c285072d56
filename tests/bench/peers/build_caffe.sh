#!/usr/bin/env bash
# build_caffe.sh ARCHIVE FOLDER: compiles Caffe for the CPU and caffe.cpp into FOLDER/libcaffe_peer.so, with the
# flags of Caffe's own Makefile.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
archive=$(readlink -f "$1")
mkdir -p "$2"
cd "$2"

sources=$(basename "$archive" .tar.gz)
[ -d "$sources" ] || tar -xzf "$archive"
# An old protobuf generated the headers of the distribution.
flags=(-std=c++14 -O2 -DNDEBUG -DCPU_ONLY -w -fPIC
    -Igenerated "-I$sources/include" "-I$here"
    "-I$(dirname "$(ls /usr/include/*/openblas-serial/cblas.h)")")

mkdir -p generated/caffe/proto
[ -e generated/caffe/proto/caffe.pb.cc ] ||
    protoc -I"$sources/src/caffe/proto" --cpp_out=generated/caffe/proto caffe.proto
if [ ! libcaffe_peer.so -nt "$here/caffe.cpp" ] || [ ! libcaffe_peer.so -nt "$here/caffe.h" ]; then
    g++ "${flags[@]}" -shared -o libcaffe_peer.so "$sources"/src/caffe/{blob,syncedmem,common,util/math_functions}.cpp \
        generated/caffe/proto/caffe.pb.cc "$here/caffe.cpp" \
        -L"$(dirname "$(ls /usr/lib/*/openblas-serial/libopenblas.so)")" -lopenblas \
        -lprotobuf -lglog -lgflags -lboost_thread -lboost_system -lpthread
fi
