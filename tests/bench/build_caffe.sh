#!/usr/bin/env bash
# build_caffe.sh ARCHIVE FOLDER: makes FOLDER/libcaffe_peer.so of Caffe's source distribution and
# caffe.cpp, CPU only, -O2, calls within it bound as in one program.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
archive=$(readlink -f "$1")
mkdir -p "$2"
cd "$2"

sources=$(basename "$archive" .tar.gz)
[ -d "$sources" ] || tar -xzf "$archive"
# The generated headers first: the distribution has some of an old protobuf.
flags=(-std=c++14 -O2 -DNDEBUG -DCPU_ONLY -w -fPIC -fvisibility=hidden
    -Igenerated "-I$sources/include" "-I$here"
    "-I$(dirname "$(ls /usr/include/*/openblas-serial/cblas.h)")")

mkdir -p generated/caffe/proto objects
[ -e generated/caffe/proto/caffe.pb.cc ] ||
    protoc -I"$sources/src/caffe/proto" --cpp_out=generated/caffe/proto caffe.proto
objects=()
for source in "$sources"/src/caffe/{blob,syncedmem,common,util/math_functions}.cpp \
    generated/caffe/proto/caffe.pb.cc "$here/caffe.cpp"; do
    object=objects/$(basename "${source%.*}").o
    [ "$object" -nt "$source" ] || g++ "${flags[@]}" -c "$source" -o "$object"
    objects+=("$object")
done
g++ -shared -Wl,-Bsymbolic -o libcaffe_peer.so "${objects[@]}" \
    -L"$(dirname "$(ls /usr/lib/*/openblas-serial/libopenblas.so)")" -lopenblas \
    -lprotobuf -lglog -lgflags -lboost_thread -lboost_system -lpthread
