#!/usr/bin/env bash
# Compiles the two files of c/bundle.py, and compares the output of numbers.c with that of LIBRARY_PROGRAM:
#   check.sh LIBRARY_PROGRAM COMPILER...
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
root=$here/../../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
expected=$("$1")
shift

python3 "$root/c/bundle.py" "$work"
awk '/^```c$/ { on = 1; next } /^```/ { if (on) exit } on' "$root/README.md" |
    sed 's|<syncblob/syncblob.h>|"syncblob.h"|' >"$work/first.c"
cp "$work/first.c" "$work/first.cpp"
sed 's|<syncblob/syncblob.h>|"syncblob.h"|' "$here/numbers.c" >"$work/numbers.c"
cd "$work"
warnings=(-Wall -Wextra -Werror)
libraries=(-lm -lpthread -ldl)
contracted=()
grep -q '\bfma\b' /proc/cpuinfo 2>/dev/null && contracted=(-mfma)

runs() { # EXPECTED PROGRAM
    [ "$("./$2")" = "$1" ] || { echo "$2 of $compiler printed something else: $("./$2")"; exit 1; }
}

for compiler in "$@"; do
    cxx=${compiler/gcc/g++}
    cxx=${cxx/clang/clang++}
    "$compiler" -std=gnu17 -O1 "${contracted[@]}" "${warnings[@]}" -c syncblob.c -o syncblob.o
    "$compiler" -std=c11 "${warnings[@]}" first.c syncblob.o -o first "${libraries[@]}"
    runs 'sum of |data| = 4.5' first
    "$compiler" "${warnings[@]}" numbers.c syncblob.o -o numbers "${libraries[@]}"
    runs "$expected" numbers
    "$cxx" -std=c++11 "${warnings[@]}" first.cpp syncblob.o -o first_in_cpp "${libraries[@]}"
    runs 'sum of |data| = 4.5' first_in_cpp
    echo "$compiler: as expected"
done

mingw=x86_64-w64-mingw32-gcc
if command -v "$mingw" >/dev/null; then
    "$mingw" -std=gnu17 "${warnings[@]}" -fsyntax-only syncblob.c
    echo "$mingw: no warning"
fi
