#!/usr/bin/env bash
# Runs the fuzzers of a folder of builds and keeps their corpora in a folder WORK. ./dev fuzz calls this script.
# run.sh BUILDS WORK [SECONDS] [TARGET...]        fuzzes each target (60 seconds) and keeps the findings
# run.sh BUILDS WORK --merge [TARGET...]          adds to corpus/ the inputs of WORK that reach new edges
# A finding is minimised and kept in regressions/TARGET. Exit status: 0 nothing found, 1 a finding.
set -euo pipefail
builds=$(readlink -f "$1")/fuzz/fuzz work=$(readlink -m "$2")
shift 2
cd "$(dirname "$(readlink -f "$0")")"

mapfile -t known < <(for harness in targets/*.c ../bindings/syncblob-net/fuzz/fuzz_targets/*.rs; do
    basename "${harness%.*}"
done)
mode=fuzz seconds=60 targets=() jobs=$(nproc)
for word in "$@"; do
    case $word in
    --merge) mode=merge ;;
    [1-9]*) seconds=$word ;;
    *)
        [[ " ${known[*]} " == *" $word "* ]] ||
            { echo "run.sh: no target $word; the targets: ${known[*]}" >&2; exit 2; }
        targets+=("$word")
        ;;
    esac
done
[ ${#targets[@]} != 0 ] || targets=("${known[@]}")
fork=$((jobs / ${#targets[@]}))
export builds work seconds fork mode

keep() { # FOLDER LOG
    local found kept kind
    found=$(find "$1" -type f | sort | head -n 1)
    touch "$work/found"
    if [ -z "$found" ]; then tail -n 20 "$2"; return; fi
    kind=${found##*/}
    kept=regressions/$target/${kind%%-*}-$(sha1sum <"$found" | cut -c1-12)
    mkdir -p "${kept%/*}"
    cp "$found" "$kept"
    "$program" -minimize_crash=1 "${options[@]}" -max_total_time=30 -exact_artifact_path="$kept" "$found" \
        >/dev/null 2>&1 || true
    grep -aE -A1 'broken promise|runtime error:|panicked at|^==[0-9]+==ERROR' "$2" | head -n 2 || true
    echo "FOUND $target: fuzz/$kept; to reproduce it: $program fuzz/$kept"
}

fuzz() {
    [ "$fork" -lt 2 ] || options+=("-fork=$fork" -ignore_ooms=0 -ignore_timeouts=0)
    if "$program" "${options[@]}" -max_total_time="$seconds" -artifact_prefix="$out/found/" \
        "$work/$target" "${inputs[@]}" >"$out/log" 2>&1; then
        printf '%-15s %s\n' "$target" "$(grep -aE '^#[0-9]+' "$out/log" | tail -n 1)"
    else
        keep "$out/found" "$out/log"
    fi
}

merge() {
    find "${inputs[@]}" -type f -exec cp -t "$out/found" {} +
    "$program" -set_cover_merge=1 -use_counters=0 "${options[@]}" "$out/found" "$work/$target" >/dev/null 2>&1
    find "$out/found" -regextype posix-extended -regex '.*/[0-9a-f]{40}' -exec cp -t "corpus/$target" {} +
    echo "$target: $(find "corpus/$target" -type f | wc -l) files"
}

run() { # TARGET
    local target=$1 program=$builds/fuzz.$1 options=(-timeout=10 -rss_limit_mb=2048 "-dict=$builds/$1.dict") inputs out
    mapfile -t inputs < <(find "$builds/seeds/$1" "corpus/$1" "regressions/$1" -maxdepth 0 2>/dev/null)
    out=$(mktemp -d)
    mkdir -p "$work/$1" "$out/found"
    "$mode"
    rm -rf "$out"
}

mkdir -p "$work"
rm -f "$work/found"
export -f keep fuzz merge run
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I T bash -euo pipefail -c 'run T'
[ ! -e "$work/found" ]
