# shellcheck shell=bash
# One step of a run: its output in a log, its tests counted.

passed=0 failed=0

# Adds what a log says about its tests; a log that says nothing is one test.
count_tests() { # LOG STATUS
    local p f
    read -r p f < <(awk '
        match($0, /[0-9]+ tests failed out of [0-9]+/) {
            split(substr($0, RSTART), w, " "); f += w[1]; p += w[6] - w[1] }
        /^test result: / { p += $4; f += $6 }
        /^[0-9]+ passed, [0-9]+ failed/ { p += $1; f += $3 }
        END { print p + 0, f + 0 }' "$1")
    if [ "$2" != 0 ] && [ "$f" = 0 ]; then f=1; fi
    if [ "$p$f" = 00 ]; then p=1; fi
    passed=$((passed + p))
    failed=$((failed + f))
}

# Runs a command with its output in a log and tells how it went, here and in
# $step_status.
step() { # NAME COMMAND...
    local name=$1 log=$build/log/${1//[^A-Za-z0-9]/-}.txt start=$SECONDS status
    shift
    mkdir -p "${log%/*}"
    set +e
    (set -e; "$@") >"$log" 2>&1 </dev/null
    status=$?
    set -e
    count_tests "$log" $status
    if [ $status = 0 ]; then
        printf 'ok      %4d s  %s\n' $((SECONDS - start)) "$name"
        sed -nE 's/.*: ([^ ]+) \.+\*\*\*Skipped.*/skipped         \1 (ctest)/p' "$log"
    else
        printf 'FAILED  %4d s  %s (%s)\n' $((SECONDS - start)) "$name" "$log"
        tail -n 60 "$log" | sed 's/^/    /'
    fi
    step_status=$status
}

summary() {
    printf '\n%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" = 0 ] && [ "$passed" != 0 ]
}
