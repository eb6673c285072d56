#!/usr/bin/env bash
# Runs the programs that "./dev gpu --pack" has gathered, and prints the results as Markdown.
#
# usage: run.sh [FOLDER [PART...]]
#   FOLDER   the programs' folder (default: this script's)
#   PART     probe conformance tests ranks bench torch sanitizer (default: all)
#
# Exit status: 0 if nothing failed, 77 if there is no device, else 1.
set -uo pipefail
folder=$(cd "${1:-$(dirname "$0")}" && pwd) || exit 1
if [ $# != 0 ]; then shift; fi
parts=" ${*:-probe conformance tests ranks bench torch sanitizer} "
log=$(mktemp) body=$(mktemp)
trap 'rm -f "$log" "$body"' EXIT
failures=0 skips=0 results=0 summary='' device=''

wants() { # PART
    [[ $parts == *" $1 "* ]]
}

# Adds the folders of cuBLAS and NCCL to the search path, the newest first.
find_libraries() {
    local found
    while IFS= read -r found; do
        if [ -e "$found" ]; then LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}${found%/*}; fi
    done < <({
        printf '%s\n' /usr/local/cuda*/{lib64,targets/*/lib}/{libcublas.so.1[23],libnccl.so.2}
        python3 -c 'import glob, sys
for path in sys.path:
    for name in ("libcublas.so.1[23]", "libnccl.so.2"):
        print(*glob.glob(path + "/nvidia/*/lib/" + name), sep="\n")' 2>/dev/null
    } | sort -Vr)
    export LD_LIBRARY_PATH
    echo "- folders of libraries: ${LD_LIBRARY_PATH:-those of the system}"
}

has_memory() { # GIB
    [ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge "$1" ]
}

note() { # NAME RESULT
    summary+="| $1 | $2 |"$'\n'
    results=$((results + 1))
    case $2 in
    FAILED*) failures=$((failures + 1)) ;;
    skipped*) skips=$((skips + 1)) ;;
    esac
    echo "$1: $2" >&2
}

result_of() { # STATUS
    case $1 in
    0) echo ok ;;
    77) echo skipped ;;
    124) echo 'FAILED: still running after 500 s' ;;
    126 | 127) echo 'FAILED: it does not start' ;;
    *) echo "FAILED: status $1" ;;
    esac
}

# Prints the output of a command: as a block, or unchanged if it is Markdown ("plain").
run() { # block|plain NAME COMMAND...
    local how=$1 name=$2 status result
    shift 2
    timeout -k 10 500 "$@" >"$log" 2>&1 </dev/null
    status=$?
    result=$(result_of "$status")
    printf '\n## %s: %s\n\n' "$name" "$result"
    if [ "$how" = plain ] && [ "$status" = 0 ]; then
        cat "$log"
    else
        printf '```\n'
        grep -v '^\[ RUN' "$log" | tail -n 80
        printf '```\n'
    fi
    note "$name" "$result"
}

# Tests provoke failures of driver calls, so failures are not reported.
run_sanitized() {
    local tool program
    tool=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) || {
        note compute-sanitizer 'skipped: not installed'
        return
    }
    local command=("$tool" --tool memcheck --report-api-errors no --error-exitcode 9)
    if ! timeout 300 "${command[@]}" "$folder/bench" --describe >"$log" 2>&1; then
        printf '\n## compute-sanitizer: skipped, it does not work here\n\n```\n'
        tail -n 20 "$log"
        printf '```\n'
        note compute-sanitizer 'skipped: it does not work here'
        return
    fi
    unset SYNCBLOB_TEST_WHOLE
    for program in "$folder"/gpu.*; do
        run block "compute-sanitizer ${program##*/}" "${command[@]}" "$program"
    done
    run block 'compute-sanitizer conformance' "${command[@]}" "$folder/conformance"
}

describe() {
    echo "# Results of $(date -u '+%Y-%m-%d %H:%M') UTC"
    echo
    "$folder/bench" --describe >"$log" 2>&1
    local status=$?
    if [ "$status" != 0 ]; then
        cat "$log"
        return "$status"
    fi
    device=$(sed -n 's/^on //p' "$log")
    echo "- device: $device"
    if command -v nvidia-smi >/dev/null; then
        nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader |
            sed 's/^/- nvidia-smi: /'
    fi
    echo "- processor: $(uname -m)"
    echo "- libsyncblob.so: sha256 $(sha256sum "$folder"/lib/libsyncblob.so.* | cut -d' ' -f1)"
}

run_parts() {
    local program full=()
    if grep -q 'a fake driver' "$log"; then
        echo "- the driver is a fake: these are not results of a GPU"
    elif has_memory 24; then
        full=(env SYNCBLOB_TEST_FULL=1)
    fi
    find_libraries
    if wants probe; then run block 'probe of the driver' "$folder/probe" "$folder/contract.tsv"; fi
    if wants conformance; then run block conformance "${full[@]}" "$folder/conformance"; fi
    if wants tests; then
        for program in "$folder"/gpu.*; do run block "${program##*/}" "$program"; done
    fi
    if wants ranks; then run block "NCCL's ranks" "$folder/ranks"; fi
    if wants bench; then run plain benchmark "$folder/bench"; fi
    if wants torch && ! command -v python3 >/dev/null; then
        note 'PyTorch in the same process' 'skipped: there is no python3'
    elif wants torch; then
        run block 'PyTorch in the same process' python3 "$folder/beside_torch.py" \
            "$(printf '%s\n' "$folder"/lib/libsyncblob.so.* | head -n 1)"
    fi
    if wants sanitizer; then run_sanitized; fi
    printf '\n## Summary\n\n| what | result |\n|---|---|\n%s' "$summary"
}

export SYNCBLOB_TEST_WHOLE=1
describe >"$body"
status=$?
if [ "$status" != 0 ]; then
    case $status in
    77) echo '**Nothing was tested: there is no device.**' ;;
    *) echo '**Nothing was tested: the programs do not run here.**' ;;
    esac
    echo
    cat "$body"
    if [ "$status" = 77 ]; then exit 77; else exit 1; fi
fi
run_parts >>"$body"
if [ "$failures" = 0 ]; then verdict='All is well' rc=0; else verdict="$failures of $results FAILED" rc=1; fi
printf '**%s** on %s: %d results, %d skipped.\n\n' "$verdict" "$device" "$results" "$skips"
cat "$body"
exit "$rc"
