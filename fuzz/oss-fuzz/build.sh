#!/usr/bin/env bash
# Builds the fuzzers as OSS-Fuzz wants them: the compilers, their flags and the
# engine come in variables, the results go to $OUT. The fuzzers run elsewhere,
# so nothing is linked that a bare machine lacks: protobuf-c as an archive, and
# our own loops for OpenBLAS. check.sh tries it without OSS-Fuzz.
set -euo pipefail
cd "$SRC/syncblob"

cmake -G Ninja -B "$WORK/build" \
    -DCMAKE_BUILD_TYPE=Debug \
    -DSYNCBLOB_PROTOBUF_C_LIBRARY="$(pkg-config --variable=libdir libprotobuf-c)/libprotobuf-c.a" \
    -DBUILD_SHARED_LIBS=OFF \
    -DSYNCBLOB_OPENBLAS=OFF \
    -DSYNCBLOB_BUILD_FUZZERS=ON \
    -DSYNCBLOB_FUZZING_ENGINE="$LIB_FUZZING_ENGINE"

for harness in fuzz/targets/*.c; do
    target=$(basename "$harness" .c)
    cmake --build "$WORK/build" --target "fuzz.$target"
    cp "$WORK/build/fuzz/fuzz.$target" "$OUT/$target"
    cp "fuzz/dictionaries/$target.dict" "$OUT/$target.dict"
    cp fuzz/oss-fuzz/libfuzzer.options "$OUT/$target.options"
    find fuzz/corpus fuzz/regressions -type f -path "*/$target/*" |
        zip -q -j -@ "$OUT/${target}_seed_corpus.zip"
done
