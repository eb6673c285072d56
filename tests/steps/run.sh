# shellcheck shell=bash
# Runs the steps: CTest starts each as "./dev step NAME 'NEEDED STEP;...' RERUN COMMAND...".

log_of() { echo "$build/log/${1//[^A-Za-z0-9]/-}"; }

# Replaces the words python:NAME (an environment of python.txt), download:KEY (a file of downloads.txt) and *.whl
# with paths.
expand_and_run() { # WORD...
    local word words=() by_hand=()
    for word; do
        case $word in
        python:*) word=$(environment "${word#python:}") ;;
        download:*) word=$(download "${word#download:}") ;;
        *\*.whl) word=$(compgen -G "$word") ;;
        esac
        words+=("$word")
    done
    if [ "$(type -t "${words[0]}")" = file ]; then by_hand=(by_hand); fi
    "${by_hand[@]}" "${words[@]}"
}

step() { # NAME NEEDS RERUN COMMAND...
    local need needs rerun=$3 log status
    IFS=';' read -ra needs <<<"$2"
    for need in "${needs[@]}"; do
        if [ -e "$(log_of "$need").skipped" ]; then exit 77; fi
    done
    log=$(log_of "$1")
    shift 3
    set +e
    (set -e; expand_and_run "$@") >"$log.txt" 2>&1 </dev/null
    status=$?
    case $status in
    0) ;;
    77) : >"$log.skipped" ;;
    *) python3 tests/steps/first_failure.py "$rerun" "$log.txt" | tee "$log.failed" ;;
    esac
    exit $status
}
