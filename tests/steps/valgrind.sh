# shellcheck shell=bash
# C tests under valgrind's memcheck.

# The C test programs and the fuzzers' replays, a command a line. Valgrind
# runs one thread at a time, so the tests of threads have ThreadSanitizer.
valgrind_commands() { # FOLDER
    local harness target inputs
    # but for those that are about numbers: one compiled in several ways, and statistics
    find "$build/$1/tests" -maxdepth 1 -type f -perm -u+x \
        ! -name 'behaviour.filler_numbers.*' ! -name behaviour.filler_statistics \
        -regex '.*/\(behaviour\|faults\|input\)\.[^/]*' -printf '"%p"\n' | sort
    for harness in fuzz/targets/*.c; do
        target=$(basename "$harness" .c)
        printf '"%s"' "$build/$1/fuzz/replay.$target"
        for inputs in "fuzz/corpus/$target" "fuzz/regressions/$target"; do
            if [ -d "$inputs" ]; then printf ' %s' "$inputs"; fi
        done
        echo
    done
}

# All of them once more under valgrind's memcheck.
run_valgrind() { # FOLDER
    # shellcheck disable=SC2016 # $@ is the inner shell's
    valgrind_commands "$1" | xargs -P "$jobs" -L 1 bash -c '
        out=$(timeout 600 valgrind --quiet --error-exitcode=9 --leak-check=full \
            --suppressions=tests/support/valgrind.supp --child-silent-after-fork=yes \
            --errors-for-leak-kinds=definite,possible "$@" 2>&1) && echo "ok $*" && exit
        printf "%s\nFAILED %s\n" "$out" "$*"
        exit 1' valgrind
}

