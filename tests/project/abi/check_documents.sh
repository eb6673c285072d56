#!/usr/bin/env bash
# Every name of ours in a page is one that the public headers declare:
#   check_documents.sh INCLUDE_FOLDER PAGE...
# "sb_mem_prefetch_*" and "…" stand for the beginning of a name.
set -euo pipefail
export LC_ALL=C

include=$1
shift
# The typed wrappers are made by a macro.
declared=$(cat "$include"/syncblob/*.h | grep -oE '\b(sb|SB)_\w+' | sort -u)
statuses=$(sed -nE 's/.* X\((ERR_[A-Z_]+|OK),.*/SB_\1/p' "$include/syncblob/status.h")
status=0
for page in "$@"; do
    while read -r name; do
        plain=$(sed -E 's/_(f32|f64|i32|u32)$//' <<<"$name")
        case $name in
        *_) grep -q "^$name" <<<"$declared" && continue ;;
        *) grep -qx "$plain" <<<"$declared"$'\n'"$statuses" && continue ;;
        esac
        echo "$page: no header declares $name"
        status=1
    done < <(grep -oE '\b(sb|SB)_\w+' "$page" | grep -v '^sb__' | sort -u)
done
exit $status
