#!/usr/bin/env bash
# Tries build.sh where there is no OSS-Fuzz: on a copy of the tree, with a
# compiler, flags and an engine as OSS-Fuzz names them. What comes out must be
# complete, bear the names that OSS-Fuzz looks for, and run by itself.
#
#     check.sh [SECONDS]     how long each fuzzer then runs (2)
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

seconds=${1:-2}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place"/{src,src/syncblob,work,out}
git ls-files -z --cached --others --exclude-standard |
    tar --null --ignore-failed-read --warning=no-failed-read --files-from=- -c | tar -x -C "$place/src/syncblob"

flags='-O1 -fno-omit-frame-pointer -gline-tables-only -fsanitize=address -fsanitize-address-use-after-scope -fsanitize=fuzzer-no-link'
env SRC="$place/src" WORK="$place/work" OUT="$place/out" \
    CC=clang CXX=clang++ CFLAGS="$flags" CXXFLAGS="$flags" \
    LIB_FUZZING_ENGINE=-fsanitize=fuzzer \
    bash fuzz/oss-fuzz/build.sh >"$place/log" 2>&1 || { tail -n 40 "$place/log"; exit 1; }

bad=0
complain() {
    echo "$1"
    bad=1
}

for harness in fuzz/targets/*.c; do
    target=$(basename "$harness" .c)
    fuzzer=$place/out/$target
    for file in "$target" "$target.dict" "$target.options" "${target}_seed_corpus.zip"; do
        [ -s "$place/out/$file" ] || complain "$file is missing"
    done
    # Nothing but what every Linux has.
    foreign=$(ldd "$fuzzer" | grep -vE '^\s(linux-vdso|/lib64/ld-linux|lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+)\.so)' || true)
    [ -z "$foreign" ] || complain "$target needs $foreign"
    mkdir "$place/seeds"
    python3 -m zipfile -e "$place/out/${target}_seed_corpus.zip" "$place/seeds"
    inputs=$(find fuzz/corpus fuzz/regressions -type f -path "*/$target/*" | wc -l)
    [ "$(find "$place/seeds" -type f | wc -l)" = "$inputs" ] ||
        complain "${target}_seed_corpus.zip does not hold the $inputs inputs"
    (cd "$place/out" && env -i "./$target" -dict="$target.dict" -max_total_time="$seconds" \
        -artifact_prefix="$place/" "$place/seeds") >"$place/log" 2>&1 || {
        tail -n 20 "$place/log"
        complain "$target does not run"
    }
    rm -rf "$place/seeds"
    echo "ok $target: $inputs inputs, $(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$place/log") runs"
done
exit $bad
