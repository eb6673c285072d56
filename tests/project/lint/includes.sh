#!/usr/bin/env bash
# Reports .c files that include unused headers: includes.sh BUILD_FOLDER JOBS FOLDER...
set -euo pipefail

build=$1 jobs=$2
shift 2
report=$(iwyu_tool -p "$build" -j "$jobs" "$@" -- -Xiwyu --no_fwd_decls)
[ "$(grep -c 'The full include-list for\|has correct #includes' <<<"$report")" -ge 50 ] ||
    { printf '%s\n' "$report" | tail -n 20; echo 'include-what-you-use looked at too few files'; exit 1; }
awk '/\.c should remove these lines:$/ { file = $1; next }
     / should (add|remove) these lines:$|^The full include-list/ { file = "" }
     file && /^- / { print file ": unused: " substr($0, 3); found = 1 }
     END { exit found }' <<<"$report"
