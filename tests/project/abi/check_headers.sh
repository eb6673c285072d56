#!/usr/bin/env bash
# Compiles each public header alone, twice in a row, and all in reverse order,
# as C11, C17, C++11 and C++20, with what is experimental and without it:
#   check_headers.sh INCLUDE_FOLDER CC CXX [INCLUDE_FOLDER...]
# The last are those of libraries over the core.
set -euo pipefail

include=$1 cc=$2 cxx=$3
folders=("$include" "${@:4}")
warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Werror)
status=0

check() { # LANGUAGE STANDARD COMPILER HEADER...
    local language=$1 standard=$2 compiler=$3
    shift 3
    for macro in -USB_EXPERIMENTAL -DSB_EXPERIMENTAL; do
        printf '#include <syncblob/%s>\n' "$@" |
            "$compiler" -x "$language" "-std=$standard" "${warnings[@]}" $macro "${folders[@]/#/-I}" \
                -fsyntax-only - || { echo "FAILED as $standard $macro: $*"; status=1; }
    done
}

mapfile -t headers < <(for folder in "${folders[@]}"; do ls "$folder/syncblob"; done | sort -r)
[ "${#headers[@]}" -ge 10 ] || { echo "only ${#headers[@]} headers in ${folders[*]}"; exit 1; }
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

compiles() { # LANGUAGE STATEMENTS
    local compiler=$cc
    [ "$1" = c ] || compiler=$cxx
    "$compiler" -x "$1" "${warnings[@]}" "-I$include" -S -o /dev/null - 2>/dev/null <<EOF
#include <syncblob/syncblob.h>
void f(sb_context *context, sb_blob *blob, const sb_blob *read_only, void *any, int *number);
void f(sb_context *context, sb_blob *blob, const sb_blob *read_only, void *any, int *number) {
    const sb_mem *read;
    sb_mem *mem;
    sb_status st = SB_OK;
    (void)st, (void)context, (void)blob, (void)read_only, (void)any, (void)number, (void)read, (void)mem;
    $2
}
EOF
}

takes() { # LANGUAGE STATEMENTS
    compiles "$@" || { echo "does not compile as $1: $2"; status=1; }
}

refuses() { # LANGUAGE STATEMENTS
    ! compiles "$@" || { echo "compiles as $1: $2"; status=1; }
}

# A stream is no other pointer, nothing to write comes from a blob that is const, and a status that
# the caller ignores is warned of.
for language in c c++; do
    takes $language 'st = sb_context_forget_stream(context, (sb_stream)any, NULL);'
    refuses $language 'st = sb_context_forget_stream(context, number, NULL);'
    takes $language 'st = sb_blob_data(read_only, &read, NULL);'
    takes $language 'st = sb_blob_mutable_mem(blob, SB_DATA, &mem, NULL);'
    refuses $language 'st = sb_blob_data(blob, &mem, NULL);'
    refuses $language 'st = sb_blob_mutable_mem(read_only, SB_DATA, &mem, NULL);'
    refuses $language 'sb_context_forget_stream(context, (sb_stream)any, NULL);'
done
refuses c++ 'st = sb_context_forget_stream(context, any, NULL);'
if grep -nE 'SB_API sb_status|inline sb_status' "${folders[@]/%//syncblob}" -r; then
    echo 'these functions lack SB_MUST_CHECK'
    status=1
fi
exit $status
