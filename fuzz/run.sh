#!/usr/bin/env bash
# Runs the fuzzers of a folder of builds and keeps their corpora in a folder WORK. ./dev fuzz calls this.
#
# run.sh BUILDS WORK [SECONDS] [TARGET...]        fuzzes (60 seconds a target) and keeps the findings
# run.sh BUILDS WORK --afl [SECONDS] [TARGET...]  the same with AFL++, which begins with the seeds only
# run.sh BUILDS WORK --merge [TARGET...]          adds to corpus/ the inputs of WORK that reach new edges
# run.sh BUILDS WORK --edges [TARGET...]          prints the edges that seeds and corpus/ reach
#
# A finding is minimised and kept in regressions/TARGET. Exit status: 0 nothing found, 1 a finding.
set -euo pipefail
builds=$(readlink -f "$1")/fuzz/fuzz afl_builds=$(readlink -f "$1")/afl/fuzz work=$(readlink -m "$2")
shift 2
cd "$(dirname "$(readlink -f "$0")")"

mapfile -t known < <(for harness in targets/*.c ../bindings/syncblob-net/fuzz/fuzz_targets/*.rs; do
    basename "${harness%.*}"
done)
mode=fuzz seconds=60 targets=() jobs=$(nproc)
for word in "$@"; do
    case $word in
    --afl | --merge | --edges) mode=${word#--} ;;
    [1-9]*) seconds=$word ;;
    *)
        [[ " ${known[*]} " == *" $word "* ]] || { echo "run.sh: no target $word; the targets: ${known[*]}" >&2; exit 2; }
        targets+=("$word")
        ;;
    esac
done
[ ${#targets[@]} != 0 ] || targets=("${known[@]}")
export builds afl_builds work seconds
export fork=$((jobs / ${#targets[@]}))

limits() { # TARGET
    echo "-timeout=10 -rss_limit_mb=2048 -dict=$builds/$1.dict"
}

inputs() { # TARGET
    find "$builds/seeds/$1" "corpus/$1" "regressions/$1" -maxdepth 0 2>/dev/null
}

# Minimises and keeps a finding, and prints the command that reproduces it.
keep() { # TARGET FOLDER LOG
    local found kept kind
    found=$(find "$2" -type f | sort | head -n 1)
    if [ -z "$found" ]; then tail -n 20 "$3"; return 1; fi
    kind=${found##*/}
    kept=regressions/$1/${kind%%-*}-$(sha1sum <"$found" | cut -c1-12)
    mkdir -p "${kept%/*}"
    cp "$found" "$kept"
    # shellcheck disable=SC2046 # options
    "$builds/fuzz.$1" -minimize_crash=1 $(limits "$1") -max_total_time=30 \
        -exact_artifact_path="$kept" "$found" >/dev/null 2>&1 || true
    grep -aE -A1 'broken promise|runtime error:|panicked at|^==[0-9]+==ERROR' "$3" | head -n 2 || true
    echo "FOUND $1: fuzz/$kept; to reproduce it: $builds/fuzz.$1 fuzz/$kept"
}

fuzz() { # TARGET
    local out
    out=$(mktemp -d)
    mkdir -p "$work/$1" "$out/found"
    # shellcheck disable=SC2046 # options, folders
    if "$builds/fuzz.$1" $(limits "$1") $([ "$fork" -lt 2 ] || echo "-fork=$fork -ignore_ooms=0 -ignore_timeouts=0") \
        -max_total_time="$seconds" -artifact_prefix="$out/found/" "$work/$1" $(inputs "$1") >"$out/log" 2>&1; then
        printf '%-15s %s\n' "$1" "$(grep -aE '^#[0-9]+' "$out/log" | tail -n 1)"
    else
        keep "$1" "$out/found" "$out/log"
        touch "$work/found"
    fi
    rm -rf "$out"
}

# AFL++ begins with the seeds only: its results do not depend on libFuzzer's corpora. afl-cmin copies to
# WORK the inputs with new edges. libFuzzer's build then runs WORK, because AFL++ does not detect leaks.
afl() { # TARGET
    local out program=$afl_builds/fuzz.$1
    export AFL_ALLOW_TMP=1 AFL_BENCH_UNTIL_CRASH=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_NO_AFFINITY=1 \
        AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 AFL_QUIET=1
    [ -x "$program" ] || return 0 # a target in Rust
    out=$(mktemp -d)
    mkdir -p "$work/$1" "$out/found"
    afl-fuzz -i "$builds/seeds/$1" -o "$out/afl" -V "$seconds" -t 10000 -m none -x "$builds/$1.dict" \
        -- "$program" >"$out/log" 2>&1 </dev/null || { tail -n 20 "$out/log"; touch "$work/found"; }
    find "$out"/afl/default/{crashes,hangs} -name 'id:*' -exec cp {} "$out/found/crash-afl" \;
    afl-cmin -i "$out/afl/default/queue" -o "$out/least" -m none -- "$program" >/dev/null 2>&1 &&
        cp -r "$out/least/." "$work/$1"
    # shellcheck disable=SC2046 # options
    if [ -e "$out/found/crash-afl" ] ||
        ! "$builds/fuzz.$1" $(limits "$1") -runs=0 -artifact_prefix="$out/found/" "$work/$1" >"$out/log" 2>&1; then
        keep "$1" "$out/found" "$out/log"
        touch "$work/found"
    fi
    echo "$1: $(grep -E '^(execs_done|edges_found|total_edges|corpus_count) ' "$out/afl/default/fuzzer_stats" |
        tr -s ' \n' ' ')"
    rm -rf "$out"
}

merge() { # TARGET
    local all
    all=$(mktemp -d)
    # shellcheck disable=SC2046 # folders
    cp $(find $(inputs "$1") -type f) "$all"
    # shellcheck disable=SC2046 # options
    "$builds/fuzz.$1" -set_cover_merge=1 -use_counters=0 $(limits "$1") "$all" "$work/$1" >/dev/null 2>&1
    find "$all" -regextype posix-extended -regex '.*/[0-9a-f]{40}' -exec cp -t "corpus/$1" {} +
    rm -r "$all"
    echo "$1: $(find "corpus/$1" -type f | wc -l) files"
}

edges() { # TARGET
    local seeds all
    seeds=$("$builds/fuzz.$1" -runs=0 "$builds/seeds/$1" 2>&1 | grep -aoE 'cov: [0-9]+' | tail -n 1)
    # shellcheck disable=SC2046 # folders
    all=$("$builds/fuzz.$1" -runs=0 $(inputs "$1") 2>&1 | grep -aoE 'cov: [0-9]+' | tail -n 1)
    # shellcheck disable=SC2046 # folders
    echo "| $1 | $(find "$builds/seeds/$1" -type f | wc -l) | ${seeds#cov: } |" \
        "$(find $(inputs "$1") -type f | wc -l) | ${all#cov: } |"
}

if [ "$mode" = edges ]; then printf '| target | seeds | edges | all inputs | edges |\n|---|---|---|---|---|\n'; fi
mkdir -p "$work"
rm -f "$work/found"
export -f limits inputs keep fuzz afl merge edges
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I T bash -euo pipefail -c "$mode T"
[ ! -e "$work/found" ]
