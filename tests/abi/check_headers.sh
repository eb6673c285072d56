#!/usr/bin/env bash
# Compiles each public header alone, twice in a row, and all in reverse order,
# as C11, C17, C++11 and C++20, with what is experimental and without it:
#   check_headers.sh INCLUDE_FOLDER CC CXX
set -euo pipefail

include=$1 cc=$2 cxx=$3
warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Werror)
status=0

check() { # LANGUAGE STANDARD COMPILER HEADER...
    local language=$1 standard=$2 compiler=$3
    shift 3
    for macro in -USB_EXPERIMENTAL -DSB_EXPERIMENTAL; do
        printf '#include <syncblob/%s>\n' "$@" |
            "$compiler" -x "$language" "-std=$standard" "${warnings[@]}" $macro "-I$include" \
                -fsyntax-only - || { echo "FAILED as $standard $macro: $*"; status=1; }
    done
}

mapfile -t headers < <(cd "$include/syncblob" && ls -r -- *.h)
[ "${#headers[@]}" -ge 10 ] || { echo "only ${#headers[@]} headers in $include/syncblob"; exit 1; }
for standard in c11 c17 c++11 c++20; do
    case $standard in
    c++*) language=c++ compiler=$cxx ;;
    *) language=c compiler=$cc ;;
    esac
    for header in "${headers[@]}"; do
        check $language $standard "$compiler" "$header" "$header"
    done
    check $language $standard "$compiler" "${headers[@]}"
done
exit $status
