#!/usr/bin/env bash
# Checks the symbols of a static library, object by object:
#   check_symbols.sh ARCHIVE IMPORTS    (NM: another nm)
# 1. undefined symbols are in IMPORTS (unless it is "any") or defined by another object of the archive;
# 2. defined global symbols begin with sb_;
# 3. programs and libraries that link the archive do not export these symbols.
set -euo pipefail
export LC_ALL=C

archive=$1 imports=$2
allowed=
[ "$imports" = any ] || allowed=$(grep -v '^#' "$imports" | tr -s ' ' '\n')
symbols=$("${NM:-nm}" -A "$archive")
[ -n "$symbols" ] || { echo "$archive has no symbols"; exit 1; }

# nm -A prints "archive:object:address type name", without the address for undefined symbols.
status=0
foreign=$(awk '$(NF-1) ~ /^[A-TV-Z]$/ && $NF !~ /^sb_/ {print "  " $1 " " $NF}' <<<"$symbols")
if [ -n "$foreign" ]; then
    printf 'global symbols that do not begin with sb_:\n%s\n' "$foreign"
    status=1
fi

exported=$(readelf -sW "$archive" |
    awk '$5 ~ /^(GLOBAL|WEAK)$/ && $6 == "DEFAULT" && $7 != "UND" {print "  " $8}')
if [ -n "$exported" ]; then
    printf 'symbols that a program with the library may export:\n%s\n' "$exported"
    status=1
fi

defined=$(awk '$(NF-1) ~ /^[A-TV-Z]$/ {print $NF}' <<<"$symbols")
unlisted=$(awk 'NR == FNR {known[$1]; next}
                $(NF-1) ~ /^[Uwv]$/ && !($NF in known) {print "  " $1 " " $NF}' \
    <(printf '%s\n%s\n' "$allowed" "$defined") - <<<"$symbols")
if [ "$imports" != any ] && [ -n "$unlisted" ]; then
    printf 'imports that %s does not list:\n%s\n' "$imports" "$unlisted"
    status=1
fi
exit $status
