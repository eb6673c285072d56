#!/usr/bin/env bash
# Compares our declarations of DLPack's structs with dlpack.h, included in either order, in C and
# C++:
#   check_dlpack.sh INCLUDE_FOLDER DLPACK/DLPACK.H COMPILER...
set -euo pipefail

include=$1 dlpack=${2%/dlpack/*}
shift 2
here=$(dirname "$(readlink -f "$0")")
warnings=(-Wall -Wextra -Wpedantic -Werror)
for compiler in "$@"; do
    for standard in c11 c17 c++11 c++20; do
        language=c
        case $standard in c++*) language=c++ ;; esac
        for order in -UDLPACK_FIRST -DDLPACK_FIRST; do
            "$compiler" -x $language -std=$standard "${warnings[@]}" $order "-I$include" \
                -isystem "$dlpack" -fsyntax-only "$here/check_dlpack.c"
        done
    done
done
