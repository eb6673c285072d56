#!/usr/bin/env bash
# Compiles a program against an installed syncblob by pkg-config and runs it:
#   run.sh c|cxx|readme PREFIX
#   run.sh demo PREFIX MODEL
# CC, CXX and FLAGS say how.
set -euo pipefail

what=$1 prefix=$2
here=$(dirname "$(readlink -f "$0")")
pc=$(find "$prefix" -name syncblob.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A static library needs what it was linked from as well.
static=()
ls "$(pkg-config --variable=libdir syncblob)"/libsyncblob.so >/dev/null 2>&1 || static=(--static)
read -ra cflags <<<"$(pkg-config --cflags syncblob) ${FLAGS:-}"
read -ra libs <<<"$(pkg-config "${static[@]}" --libs syncblob)"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir syncblob)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

version=$(pkg-config --modversion syncblob)
warnings=(-Wall -Wextra -Wpedantic -Werror)

case $what in
c)
    "$CC" -std=c11 "${warnings[@]}" "${cflags[@]}" "$here/main.c" -o "$work/main" "${libs[@]}"
    (cd "$work" && ./main "$version")
    ;;
cxx)
    for standard in c++11 c++20; do
        "$CXX" -std=$standard "${warnings[@]}" "${cflags[@]}" "$here/main.cpp" -o "$work/main" \
            "${libs[@]}"
        "$work/main"
    done
    ;;
demo)
    model=$(readlink -f "$3")
    "$CC" -std=c11 "${warnings[@]}" "${cflags[@]}" "$here/demo.c" -o "$work/demo" "${libs[@]}" -lm
    (cd "$work" && ./demo "$model")
    ;;
readme)
    # shellcheck disable=SC2016 # the backquotes are Markdown's
    sed -n '/^```c$/,/^```$/p' "$here/../../README.md" | sed '/^```/d' >"$work/first.c"
    "$CC" -std=c11 "${warnings[@]}" "${cflags[@]}" "$work/first.c" -o "$work/first" "${libs[@]}"
    (cd "$work" && ./first)
    ;;
esac
