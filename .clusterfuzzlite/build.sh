#!/usr/bin/env bash
# Builds the fuzzers in $OUT for ClusterFuzzLite and OSS-Fuzz, which set the variables for compilers, flags,
# engine and sanitizer. The machines that run the fuzzers lack shared libraries of protobuf-c and OpenBLAS.
# MemorySanitizer would report every byte that protobuf-c writes, because protobuf-c is not instrumented.
set -euo pipefail
cd "$SRC/syncblob"

options=(-DSYNCBLOB_OPENBLAS=OFF -DBUILD_SHARED_LIBS=OFF -DCMAKE_BUILD_TYPE=Debug)
if [ "$SANITIZER" = memory ]; then
    options+=(-DSYNCBLOB_PROTOBUF_C=OFF)
else
    options+=("-DSYNCBLOB_PROTOBUF_C_LIBRARY=$(pkg-config --variable=libdir libprotobuf-c)/libprotobuf-c.a")
fi
cmake -G Ninja -B "$WORK/build" "${options[@]}" -DSYNCBLOB_BUILD_FUZZERS=ON \
    "-DSYNCBLOB_FUZZING_ENGINE=$LIB_FUZZING_ENGINE"
for harness in fuzz/targets/*.c; do
    cmake --build "$WORK/build" --target "fuzz.$(basename "$harness" .c)"
done
if [ "$SANITIZER" = address ] && [ "${FUZZING_ENGINE:-libfuzzer}" = libfuzzer ]; then
    for crate in syncblob-net syncblob; do
        bindings/sanitize.sh fuzzers $crate "$WORK/crates"
    done
fi

for fuzzer in "$WORK"/{build/fuzz,crates}/fuzz.*; do
    target=${fuzzer##*/fuzz.}
    [ -e "$fuzzer" ] || continue
    cp "$fuzzer" "$OUT/$target"
    printf '[libfuzzer]\ntimeout = 10\nrss_limit_mb = 2048\n' >"$OUT/$target.options"
    [ ! -e "$WORK/build/fuzz/$target.dict" ] || cp "$WORK/build/fuzz/$target.dict" "$OUT"
    find "$WORK/build/fuzz/seeds" fuzz/corpus fuzz/regressions -type f -path "*/$target/*" |
        zip -q -j -@ "$OUT/${target}_seed_corpus.zip" || [ $? = 12 ] # 12: no input
done
