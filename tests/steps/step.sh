# shellcheck shell=bash
# The steps of a run. Each has its output in a log, its seconds, and its tests counted.
#
#   step NAME COMMAND...   runs it now, on all cores
#   aside NAME COMMAND...  runs it on one core, beside others, after all that takes every core
#   on BUILDS step|aside NAME COMMAND...   makes what it needs first, each build once a run;
#                          what ends in "_needs" are packages, which "plan" gathers
#
# Where the run is for some steps alone ($only), the others are passed over, and so are
# the builds and the packages that nobody needs then. A step or a build that cannot be had here
# prints "skipped: WHY" and ends with status 77.

passed=0 failed=0
planning=           # the lists are gone through, and nothing runs
needed=()           # packages that the plan's steps need
only=()             # parts of names of steps; none: every step
steps_of='./dev test %s' # the command that runs one of them, by its name where it takes names
steps_wanted=0
steps_run=0
step_stories=()     # what failed, for the summary
skips=()            # why tests were skipped, once for each
declare -A logs=() log_owners=()
declare -A built=()    # build: its exit status
declare -A running=()  # process: the step that it runs
waiting=()             # what runs aside at the end: names and commands, as words of the shell
declare -A made_for=() # build: the first step that wants it
ran_before=$SECONDS

# Each step of a run has a log of its own, also where two names differ by a dot alone.
choose_log() { # NAME
    local log=$build/log/${1//[^A-Za-z0-9]/-}
    while [ "${log_owners[$log]:-$1}" != "$1" ]; do log+=-; done
    log_owners[$log]=$1
    logs[$1]=$log.txt
}

wanted() { # NAME
    local part
    [ ${#only[@]} != 0 ] || return 0
    for part in "${only[@]}"; do
        if [[ ${1,,} == *"${part,,}"* ]]; then
            steps_wanted=$((steps_wanted + 1))
            return 0
        fi
    done
    return 1
}

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

# Why a step's tests were skipped, one line each: what they print, "skipped: WHY".
skips_of() { # LOG
    awk 'match($0, / [^ ]+ \.+\*\*\*Skipped/) {
            split(substr($0, RSTART), words, " "); silent[words[1]] = 1 }
        /^[0-9]+\/[0-9]+ Testing: / { test = $3 }
        /^\[ RUN / { part = $4; told = 0 }
        sub(/^ *skipped: /, "") { print; told = 1; delete silent[test] }
        /^\[  SKIPPED \]/ && $4 == part && !told { print test ": " part " does not say why" }
        END { for (test in silent) print test " does not say why" }' "$1"
}

# Each once, with how many there are; other numbers in it are no other reason.
print_skips() {
    [ ${#skips[@]} != 0 ] || return 0
    printf '\nSkipped:\n'
    printf '%s\n' "${skips[@]}" | awk '{
            why = $0; gsub(/[0-9]+/, "N", why)
            if (!count[why]++) { first[why] = $0; order[++reasons] = why } }
        END { for (i = 1; i <= reasons; i++) printf "%5d  %s\n", count[order[i]], first[order[i]] }'
}

# Into the step's log; the seconds, and those of processors, beside it.
run_logged() { # NAME COMMAND...
    local log=${logs[$1]} status TIMEFORMAT='%R %U %S'
    shift
    mkdir -p "${log%/*}"
    set +e
    {
        time {
            (set -e; "$@") >"$log" 2>&1 </dev/null
            status=$?
        }
    } 2>"$log.seconds"
    head -n -1 "$log.seconds" >>"$log" # what bash says of a command that a signal ended
    return $status
}

# Says in the step's log what runs the next command by hand; without words, nothing does.
by_hand() { # [COMMAND...]
    echo "alone:${1:+$(printf ' %q' "${@/#"$PWD/"/}")}"
}

told() { # COMMAND...
    by_hand "$@"
    "$@" || return
    by_hand
}

# One line for a step that has ended, and more where it failed.
report() { # NAME STATUS
    local log=${logs[$1]} name story wall user system word
    read -r wall user system < <(tail -n 1 "$log.seconds")
    case $2 in 0) word=ok ;; 77) word=skipped ;; *) word=FAILED ;; esac
    if [[ $1 != 'build: '* || $word = FAILED ]]; then
        steps_run=$((steps_run + 1))
        [ $word = skipped ] || count_tests "$log" "$2"
    fi
    printf '%-8s%5.0f s %5.0f s of CPU  %s\n' $word "$wall" \
        "$(awk "BEGIN { print $user + $system }")" "$1"
    if [ $word != FAILED ]; then
        mapfile -t -O ${#skips[@]} skips < <(skips_of "$log")
        return
    fi
    name=${made_for[$1]:-${1#C tests: }}
    # shellcheck disable=SC2059 # a name stands in it, or not
    story=$(python3 tests/steps/first_failure.py "$(printf "$steps_of" "${name@Q}")" "$log")
    step_stories+=("$1"$'\n'"$story")
    printf '%s\n' "$story" | sed 's/^/    /'
}

stop_steps() {
    local process
    for process in "${!running[@]}"; do kill -- "-$process" 2>/dev/null || true; done
}

# In a group of processes of its own: however the run ends, all of it is told to end. Not to be
# called where bash ignores set -e, as after "||" and "if".
start() { # NAME COMMAND...
    trap stop_steps EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    choose_log "$1"
    set -m
    run_logged "$@" 9>&- & # without the lock of build.sh
    set +m
    running[$!]=$1
}

# Waits for one of what runs; sets $step_status. Bash forgets, for "wait -n", what ended earlier.
reap() {
    local process
    while :; do
        for process in "${!running[@]}"; do
            if kill -0 "$process" 2>/dev/null; then continue; fi
            step_status=0
            wait "$process" || step_status=$?
            report "${running[$process]}" $step_status
            unset "running[$process]"
            return
        done
        wait -n || true
    done
}

# What runs aside, now that no build needs the cores; each of them leaves no core idle but at the end.
settle() {
    local words
    for words in "${waiting[@]}"; do
        while [ ${#running[@]} -ge "$jobs" ]; do reap; done
        eval "jobs=1 start $words"
    done
    waiting=()
    while [ ${#running[@]} != 0 ]; do reap; done
}

# Sets $step_status.
step_of_any_name() { # NAME COMMAND...
    start "$@"
    reap
}

# Whether it runs now.
is_due() { # NAME COMMAND...
    wanted "$1" || return 1
    [ -n "$planning" ] || return 0
    command -v "$2" >/dev/null || die "there is no $2, which the step '$1' runs"
    return 1
}

step() { # NAME COMMAND...
    step_status=0
    if is_due "$@"; then step_of_any_name "$@"; fi
}

aside() { # NAME COMMAND...
    if is_due "$@"; then waiting+=("${*@Q}"); fi
}

make_once() { # BUILD STEP
    local name="build: ${1//_/ }"
    [ -z "${built[$1]:-}" ] || return 0
    made_for[$name]=$2
    step_of_any_name "$name" "build_$1"
    built[$1]=$step_status
}

# The functions build_NAME make them; a step whose build failed does not run.
on() { # BUILDS step|aside NAME COMMAND...
    local name
    if ! wanted "$3"; then return 0; fi
    for name in $1; do
        if [ -n "$planning" ]; then
            plan_for "$name" "$3"
            continue
        fi
        if [[ $name == *_needs ]]; then continue; fi
        make_once "$name" "$3"
        if [ "${built[$name]}" = 77 ]; then
            step_status=77
            return 0
        elif [ "${built[$name]}" != 0 ]; then
            echo "not run                         $3 (its build failed)"
            step_stories+=("$3"$'\n'"not run: build: ${name//_/ } failed")
            steps_run=$((steps_run + 1))
            step_status=1
            return 0
        fi
    done
    "${@:2}"
}

plan_for() { # BUILD|NEEDS STEP
    if [[ $1 == *_needs ]]; then
        needed+=("${!1}")
    elif ! declare -F "build_$1" >/dev/null; then
        die "there is no build_$1, which the step '$2' needs"
    fi
}

# Sets $needed and $steps_wanted.
plan() { # LIST...
    local list planning=1
    needed=() steps_wanted=0
    for list in "$@"; do $list; done
}

summary() {
    settle
    print_skips
    if [ ${#only[@]} != 0 ] && [ $steps_wanted = 0 ]; then die "no step is named like '${only[*]}'"; fi
    if [ ${#step_stories[@]} != 0 ] && [ $((steps_run + ${#step_stories[@]})) -gt 2 ]; then
        printf '\nWhat failed:\n'
        printf '\n%s\n' "${step_stories[@]}"
    fi
    printf '\n%d passed, %d failed, %d s\n' "$passed" "$failed" $((SECONDS - ran_before))
    [ "$failed" = 0 ] && [ "$passed" != 0 ]
}
