#!/usr/bin/env bash
# Tries build.sh where there is no OSS-Fuzz: on a copy of the tree, with a
# compiler, flags and an engine as OSS-Fuzz names them. What comes out must be
# complete, bear the names that OSS-Fuzz looks for, and run by itself.
#
#     check.sh [libfuzzer|afl] [SECONDS]     how long each fuzzer then runs (2)
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

engine=${1:-libfuzzer}
seconds=${2:-2}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place"/{src,src/syncblob,work,out}
git ls-files -z --cached --others --exclude-standard |
    tar --null --ignore-failed-read --warning=no-failed-read --files-from=- -c | tar -x -C "$place/src/syncblob"

flags='-O1 -fno-omit-frame-pointer -gline-tables-only -fsanitize=address -fsanitize-address-use-after-scope'
case $engine in
libfuzzer)
    compiler=clang driver=-fsanitize=fuzzer flags+=' -fsanitize=fuzzer-no-link'
    run_target() { # TARGET: adds "Done N runs" to its log
        env -i "./$1" -dict="$1.dict" -max_total_time="$seconds" -artifact_prefix="$place/" "$place/seeds"
    }
    ;;
afl)
    export AFL_QUIET=1 AFL_NO_UI=1 AFL_NO_COLOR=1 AFL_NO_AFFINITY=1 AFL_SKIP_CPUFREQ=1 \
        AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1
    compiler=afl-clang-fast driver=$place/engine/libFuzzingEngine.a
    mkdir "$place/engine"
    cp "$(dirname "$(readlink -f "$(command -v afl-clang-fast)")")/../lib/afl/libAFLDriver.a" "$driver"
    run_target() {
        local found=$place/found/default
        afl-fuzz -V "$seconds" -i "$place/seeds" -o "$place/found" -x "$1.dict" -t 10000 -m none "./$1" &&
            [ -z "$(find "$found/crashes" "$found/hangs" -name 'id:*')" ] &&
            sed -n 's/^execs_done *: \(.*\)/Done \1 runs/p' "$found/fuzzer_stats" &&
            rm -r "$place/found"
    }
    ;;
*)
    echo "check.sh: an engine is libfuzzer or afl" >&2
    exit 2
    ;;
esac

env SRC="$place/src" WORK="$place/work" OUT="$place/out" \
    CC="$compiler" CXX="$compiler++" CFLAGS="$flags" CXXFLAGS="$flags" LIB_FUZZING_ENGINE="$driver" \
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
    (cd "$place/out" && run_target "$target") >"$place/log" 2>&1 || {
        tail -n 20 "$place/log"
        complain "$target does not run"
    }
    rm -rf "$place/seeds"
    echo "ok $target: $inputs inputs, $(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$place/log") runs"
done
exit $bad
