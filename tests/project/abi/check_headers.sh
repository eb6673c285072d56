#!/usr/bin/env bash
# Compiles the public headers in four versions of C and C++, with and without the experimental part:
#   check_headers.sh CC CXX [INCLUDE_FOLDER...]
set -euo pipefail

cc=$1 cxx=$2
root=$(realpath "$(dirname "$0")/../../..")
folders=("${@:3}")
[ $# -gt 2 ] || folders=("$root"/c{,/testing,/conformance,/comm}/include "$root/bindings/syncblob-net-c/include")
warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Werror "${folders[@]/#/-I}")
status=0

fails() { # TEXT
    echo "$1"
    status=1
}

compile() { # STANDARD OPTION...
    case $1 in
    *++*) "$cxx" -x c++ "-std=$1" "${warnings[@]}" -S -o /dev/null "${@:2}" - ;;
    *) "$cc" -x c "-std=$1" "${warnings[@]}" -S -o /dev/null "${@:2}" - ;;
    esac
}

check() { # HEADER...
    local standard macro
    for standard in c11 c17 c++11 c++20; do
        for macro in -USB_EXPERIMENTAL -DSB_EXPERIMENTAL; do
            printf '#include <syncblob/%s>\n' "$@" | compile $standard $macro ||
                fails "FAILED as $standard $macro: $*"
        done
    done
}

mapfile -t headers < <(for folder in "${folders[@]}"; do ls "$folder/syncblob"; done | sort -r)
[ "${#headers[@]}" -ge 10 ] || fails "only ${#headers[@]} headers in ${folders[*]}"
for header in "${headers[@]}"; do check "$header" "$header"; done
check "${headers[@]}"

compiles() { # STANDARD STATEMENT
    compile "$1" 2>/dev/null <<EOF
#include <syncblob/syncblob.h>
#pragma GCC diagnostic ignored "-Wmissing-declarations"
sb_status f(sb_context *context, sb_blob *blob, const sb_blob *read_only, void *any, int *number) {
    const sb_mem *read;
    sb_mem *mem;
    sb_status st = SB_OK;
    (void)context, (void)blob, (void)read_only, (void)any, (void)number, (void)read, (void)mem;
    $2;
    return st;
}
EOF
}

for standard in c11 c++11; do
    while read -r expected statement; do
        found=refused
        ! compiles $standard "$statement" || found=accepted
        [ "$found" = "$expected" ] || fails "as $standard, not $expected: $statement"
    done <<'EOF'
accepted st = sb_context_forget_stream(context, (sb_stream)any, NULL)
refused  st = sb_context_forget_stream(context, number, NULL)
refused  sb_context_forget_stream(context, (sb_stream)any, NULL)
accepted st = sb_blob_data(read_only, &read, NULL)
refused  st = sb_blob_data(blob, &mem, NULL)
accepted st = sb_blob_mutable_mem(blob, SB_DATA, &mem, NULL)
refused  st = sb_blob_mutable_mem(read_only, SB_DATA, &mem, NULL)
EOF
done
! compiles c++11 'st = sb_context_forget_stream(context, any, NULL)' ||
    fails 'C++ accepts any pointer as a stream'
! grep -nE 'SB_API sb_status|inline sb_status' -r "${folders[@]/%//syncblob}" ||
    fails 'these functions lack SB_MUST_CHECK'
exit $status
