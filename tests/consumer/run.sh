#!/usr/bin/env bash
# Compiles a program against an installed syncblob by pkg-config and runs it:
#   run.sh c|cxx|static|readme PREFIX
#   run.sh demo PREFIX MODEL
# CC, CXX and FLAGS say how.
set -euo pipefail

what=$1 prefix=$(readlink -f "$2")
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Where the static library alone is visible, it is the one that is linked.
if [ "$what" = static ]; then
    cp -a "$prefix" "$work/prefix"
    prefix=$work/prefix
    find "$prefix" -name 'libsyncblob.so*' -delete
fi

pc=$(find "$prefix" -name syncblob.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir syncblob)

# A static library needs what it was linked from as well.
static=()
[ -e "$libdir/libsyncblob.so" ] || static=(--static)
read -ra cflags <<<"$(pkg-config --cflags syncblob) ${FLAGS:-}"
read -ra libs <<<"$(pkg-config "${static[@]}" --libs syncblob)"
export LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

version=$(pkg-config --modversion syncblob)
warnings=(-Wall -Wextra -Wpedantic -Werror)

case $what in
c | static)
    "$CC" -std=c11 "${warnings[@]}" "${cflags[@]}" "$here/main.c" -o "$work/main" "${libs[@]}"
    (cd "$work" && ./main "$version")
    ;;
cxx)
    for standard in c++11 c++20; do
        "$CXX" -std=$standard "${warnings[@]}" "${cflags[@]}" "$here/main.cpp" -o "$work/main" \
            "${libs[@]}"
        (cd "$work" && ./main)
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
