#!/usr/bin/env bash
# check.sh address|undefined|memory|afl [SECONDS [TARGET...]]: builds the fuzzers and runs each for SECONDS (2),
# as ClusterFuzzLite does for a pull request, but without its image.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

sanitizer=${1:-address} seconds=${2:-2}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir -p "$place"/{src/syncblob,work,out}
git ls-files -z --cached --others --exclude-standard |
    tar --null --ignore-failed-read --warning=no-failed-read --files-from=- -c | tar -x -C "$place/src/syncblob"

export SANITIZER=$sanitizer CC=clang CXX=clang++ LIB_FUZZING_ENGINE=-fsanitize=fuzzer FUZZING_ENGINE=libfuzzer
some=array-bounds,bool,function,integer-divide-by-zero,null,object-size,return,shift,signed-integer-overflow,vla-bound
case $sanitizer in
address) flags='-fsanitize=address -fsanitize-address-use-after-scope' ;;
undefined) flags="-fsanitize=$some -fno-sanitize-recover=$some" ;;
memory) flags='-fsanitize=memory -fsanitize-memory-track-origins' ;;
afl)
    export AFL_QUIET=1 AFL_NO_UI=1 AFL_NO_AFFINITY=1 AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1
    flags=-fsanitize=address SANITIZER=address CC=afl-clang-fast CXX=afl-clang-fast++ FUZZING_ENGINE=afl
    LIB_FUZZING_ENGINE=$(dirname "$(readlink -f "$(command -v afl-clang-fast)")")/../lib/afl/libAFLDriver.a
    ;;
esac
[ "$sanitizer" = afl ] || flags+=' -fsanitize=fuzzer-no-link'
export CFLAGS="-O1 -fno-omit-frame-pointer -gline-tables-only $flags" SRC=$place/src WORK=$place/work OUT=$place/out
CXXFLAGS=$CFLAGS bash .clusterfuzzlite/build.sh >"$place/log" 2>&1 || { tail -n 40 "$place/log"; exit 1; }

run_target() { # TARGET SEEDS OPTION...
    if [ "$sanitizer" != afl ]; then
        env -i "./$1" "-max_total_time=$seconds" "-artifact_prefix=$place/" "${@:3}" "$2"
        return
    fi
    afl-fuzz -V "$seconds" -i "$2" -o "$place/found" -x "$1.dict" -t 10000 -m none "./$1" &&
        [ -z "$(find "$place"/found/default/{crashes,hangs} -name 'id:*')" ] && rm -r "$place/found"
}

bad=0
cd "$place/out"
for options in *.options; do
    target=${options%.options}
    [ $# -lt 3 ] || [[ " ${*:3} " == *" $target "* ]] || continue
    # A fuzzer may need only libraries that every Linux has.
    foreign=$(ldd "$target" | grep -vE '^\s(linux-vdso|/lib64/ld-linux|lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+)\.so)' || true)
    mkdir "$place/seeds"
    [ ! -e "${target}_seed_corpus.zip" ] || python3 -m zipfile -e "${target}_seed_corpus.zip" "$place/seeds"
    inputs=$(find "$place/seeds" -type f | wc -l)
    dictionary=()
    [ ! -e "$target.dict" ] || dictionary=("-dict=$target.dict")
    if [ -z "$foreign" ] && run_target "$target" "$place/seeds" "${dictionary[@]}" >"$place/log" 2>&1; then
        echo "ok $target: $inputs inputs"
    else
        echo "FAILED $target $foreign"
        grep -aE 'broken promise|ERROR|SUMMARY|runtime error' "$place/log" || tail -n 20 "$place/log"
        bad=1
    fi
    rm -rf "$place/seeds"
done
exit $bad
