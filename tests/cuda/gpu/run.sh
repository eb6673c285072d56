#!/usr/bin/env bash
# Runs what "./dev gpu --pack" has gathered, and prints the results as Markdown.
# Needs neither a network nor a compiler.
#
# usage: run.sh [FOLDER [PART...]]
#   FOLDER   where the programs are (this script's own)
#   PART     probe conformance tests bench peers torch sanitizer (all)
#
# Exit status: 0 when all went well, 77 when there is no device, else 1.
set -uo pipefail
folder=$(cd "${1:-$(dirname "$0")}" && pwd) || exit 1
if [ $# != 0 ]; then shift; fi
parts=" ${*:-probe conformance tests bench peers torch sanitizer} "
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failures=0 summary=

wants() { # PART
    [[ $parts == *" $1 "* ]]
}

# --- libraries of the machine ---------------------------------------------------------

has_cublas() {
    local path=${LD_LIBRARY_PATH:-} entry
    while IFS= read -r -d : entry; do
        if [ -e "$entry/libcublas.so.13" ] || [ -e "$entry/libcublas.so.12" ]; then return 0; fi
    done <<<"$path:"
    PATH=$PATH:/sbin ldconfig -p 2>/dev/null | grep -qE 'libcublas\.so\.1[23]'
}

# Folders where CUDA's installer and Python's packages put cuBLAS, the newest first.
cublas_folders() {
    printf '%s\n' /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib | sort -Vr
    if command -v python3 >/dev/null; then
        python3 - 2>/dev/null <<'END'
import glob, sys
for path in sys.path:
    for found in sorted(glob.glob(path + "/nvidia/*/lib/libcublas.so.1[23]"), reverse=True):
        print(found.rsplit("/", 1)[0])
END
    fi
}

find_cublas() {
    local found
    if has_cublas; then
        echo "- cuBLAS: where the system looks for libraries"
        return
    fi
    while IFS= read -r found; do
        if [ -e "$found/libcublas.so.13" ] || [ -e "$found/libcublas.so.12" ]; then
            export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$found
            echo "- cuBLAS: $found"
            return
        fi
    done < <(cublas_folders)
    echo "- cuBLAS: not found; arithmetic will fail (LD_LIBRARY_PATH may name its folder)"
}

# What the loader misses for the gathered program of a command: libraries, or versions of them.
missing_for() { # COMMAND...
    local word
    for word; do
        [[ $word == "$folder"/* ]] || continue
        LD_TRACE_LOADED_OBJECTS=1 "$word" 2>&1 | grep -E 'not found|No such file|cannot' ||
            echo "the loader itself does not start $word, or finds all of its libraries"
        return
    done
}

has_memory() { # GIB of the host
    [ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge "$1" ]
}

# --- running ---------------------------------------------------------------------------

note() { # NAME RESULT
    summary+="| $1 | $2 |"$'\n'
    case $2 in FAILED*) failures=$((failures + 1)) ;; esac
}

result_of() { # STATUS
    case $1 in
    0) echo ok ;;
    77) echo skipped ;;
    124) echo 'FAILED: no end after 500 s' ;;
    126 | 127) echo 'FAILED: it does not start' ;;
    *) echo "FAILED: status $1" ;;
    esac
}

# Prints the output as it is (a benchmark's own Markdown), or as a block.
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
        case $status in 126 | 127) missing_for "$@" ;; esac
        printf '```\n'
    fi
    note "$name" "$result"
}

# Under compute-sanitizer, where there is one and the machine allows it. What tests provoke in
# the driver is no error.
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
    case $status in
    0) sed 's/^on /- device: /' "$log" ;;
    126 | 127) cat "$log"; missing_for "$folder/bench"; exit 1 ;;
    *) cat "$log"; exit "$status" ;;
    esac
    if command -v nvidia-smi >/dev/null; then
        nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader |
            sed 's/^/- nvidia-smi: /'
    fi
    echo "- libsyncblob.so: sha256 $(sha256sum "$folder"/lib/libsyncblob.so.* | cut -d' ' -f1)"
}

export SYNCBLOB_TEST_WHOLE=1
describe
quick=()
if grep -q 'a fake driver' "$log"; then
    quick=(--quick)
    echo "- the driver is a fake: nothing here says anything about a GPU"
fi
find_cublas
if wants probe; then
    run block 'probe of the driver and NCCL' "$folder/probe" "$folder/contract.tsv"
fi
if wants conformance; then
    full=()
    if [ ${#quick[@]} = 0 ] && has_memory 24; then full=(env SYNCBLOB_TEST_FULL=1); fi
    run block conformance "${full[@]}" "$folder/conformance"
fi
if wants tests; then
    for program in "$folder"/gpu.*; do run block "${program##*/}" "$program"; done
fi
if wants bench; then run plain benchmark "$folder/bench" "${quick[@]}"; fi
if wants peers; then
    if command -v python3 >/dev/null; then
        run plain peers python3 "$folder/peers.py" "${quick[@]}"
    else
        note peers 'skipped: there is no python3'
    fi
fi
if wants torch; then
    if command -v python3 >/dev/null; then
        run block 'PyTorch in the same process' python3 "$folder/beside_torch.py" \
            "$(printf '%s\n' "$folder"/lib/libsyncblob.so.* | head -n 1)"
    else
        note 'PyTorch in the same process' 'skipped: there is no python3'
    fi
fi
if wants sanitizer; then run_sanitized; fi
printf '\n## Summary\n\n| what | result |\n|---|---|\n%s\n%d failed\n' "$summary" "$failures"
[ "$failures" = 0 ]
