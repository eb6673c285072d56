#!/usr/bin/env bash
# Tests this version's library beside a later version, which is compiled from changed copies of the sources:
#   versions.sh growth|copies CC JOBS BUILD
# BUILD is a build folder with this version's shared and static libraries.
# growth: each struct with struct_size has one more member in the later version. The tests of struct sizes must
#   pass with the headers and the library of either version.
# copies: users of three copies of the library run in one process. Each user must call only its own copy.
set -euo pipefail

what=$1 cc=$2 jobs=$3 build=$(realpath "$4")
cd "$(dirname "$0")/../../.."
here=$PWD/tests/project/abi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

fails() { # TEXT...
    echo "$*"
    status=1
}

compile_later() {
    mkdir "$work/objects"
    # shellcheck disable=SC2016 # sh expands it
    sed -s '/^#\|^$/d' c/sources.txt c/comm/sources.txt | cat - <(echo c/src/proto/pack_plain.c) |
        (cd "$work" && xargs -P "$jobs" -I{} sh -c '"$0" -std=c17 -D_GNU_SOURCE -DSB_EXPERIMENTAL -w -O0 -fPIC \
            -fvisibility=hidden -Ic/include -Ic/comm/include -Ic/src -I. -c {} \
            -o objects/$(echo {} | tr / _).o' "$cc")
}

test_growth() {
    local headers library program
    python3 - "$work"/c/include/syncblob/*.h "$work"/c/comm/include/syncblob/*.h <<'EOF'
import re, sys
for path in sys.argv[1:]:
    text = open(path).read()
    grown = re.sub(r"(struct sb_\w+ \{\n\s*size_t struct_size;.*?)^\}", r"\1    uint64_t later;\n}", text,
                   flags=re.DOTALL | re.MULTILINE)
    open(path, "w").write(grown)
EOF
    compile_later
    local today=("$build/c/comm/libsyncblob-comm.a" "$build/c/libsyncblob.a")
    for headers in "$PWD" "$work"; do
        for library in today later; do
            archives=("${today[@]}")
            [ $library = today ] || archives=("$work"/objects/*.o)
            for program in tests/survival/input/test_struct_sizes.c c/comm/tests/test_struct_sizes.c; do
                "$cc" -std=c17 -D_GNU_SOURCE -DSB_EXPERIMENTAL -w "-I$headers/c/include" "-I$headers/c/comm/include" \
                    -Itests/support -Ic/src "$program" tests/support/{main,support,counting_allocator}.c \
                    "${archives[@]}" "${needs[@]}" -lcmocka -o "$work/program"
                "$work/program" >"$work/log" 2>&1 ||
                    fails "$program with the headers of $headers, $library's library: $(cat "$work/log")"
            done
        done
    done
}

make_user() { # NAME MINOR INCLUDE LIBRARY...
    "$cc" "${flags[@]}" -shared "-I$3" "-DVERSION=$2" "-DUSER=$1" "$here/copies.c" -o "$work/lib$1.so" "${@:4}"
    users+=("$1" "$work/lib$1.so")
}

run_host() { # MINOR INCLUDE LIBRARY...
    local scope
    "$cc" "${flags[@]}" "-I$2" "-DVERSION=$1" -DUSER=program -DPROGRAM "$here/copies.c" -rdynamic \
        -o "$work/host" "${@:3}" -ldl
    for scope in local global; do
        "$work/host" $scope "${users[@]}" || fails "a program with $3 loads ${users[*]}"
        "$work/host" $scope "${users[@]:4}" "${users[@]:2:2}" "${users[@]:0:2}" ||
            fails "a program with $3 loads the users in another order"
    done
}

test_copies() {
    local flags=(-std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -fPIC) users=()
    local shared=("$build/c/libsyncblob.so" "-Wl,-rpath,$build/c")
    local static=("$build/c/libsyncblob.a" "${needs[@]}")
    local next=("$work/libsyncblob.so.0.2" "-Wl,-rpath,$work")
    sed -i 's/\(#define SB_VERSION_MINOR\) 1\b/\1 2/' "$work/c/include/syncblob/base.h"
    sed -i 's/^\(SYNCBLOB_.*0\)\.1 {/\1.2 {/' "$work/c/abi/libsyncblob.map"
    sed -i 's/^struct sb_\(context\|mem\|blob\) {$/&\n    char later[72];/' "$work"/c/src/*/*.h
    compile_later
    "$cc" -shared "$work"/objects/c_src_*.o -o "${next[0]}" -Wl,-soname,libsyncblob.so.0.2 \
        "-Wl,--version-script=$work/c/abi/libsyncblob.map" -lm -ldl -lpthread
    make_user shared_1 1 c/include "${shared[@]}"
    make_user shared_2 2 "$work/c/include" "${next[@]}"
    make_user static_1 1 c/include "${static[@]}"
    ! nm -D --defined-only "$work/libstatic_1.so" | grep ' sb_' || fails 'a static copy is exported'
    run_host 1 c/include "${shared[@]}"
    run_host 2 "$work/c/include" "${next[@]}"
    run_host 1 c/include "${static[@]}"
}

mkdir "$work/cuda"
cp -r c "$work"
cp cuda/declarations.h "$work/cuda"
mapfile -t needs < <(grep -oE -- '-(L/|l)[^ ]+' "$build/c/syncblob.pc" | grep -vx -- -lsyncblob)
case $what in
growth) test_growth ;;
copies) test_copies ;;
esac
exit $status
