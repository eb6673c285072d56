# shellcheck shell=bash
# C tests under valgrind's memcheck.

# What it finds that no sanitizer does is the use of bytes that nobody wrote. It runs one thread
# at a time, so that the tests of threads are left to ThreadSanitizer; those of numbers, of files as
# the kernel has them, of memory and of the stack look at other things than the library's bytes.
# Those that fail each step in turn, and those of bombs, do the same things over and over: in the
# full run.
# A command a line: the C test programs, and the fuzzers' replays of their inputs.
valgrind_commands() { # FOLDER [all]
    local harness target inputs leave_out='filler_(numbers|statistics)|behaviour\.stack|input\.(files|memory)'
    [ "${2:-}" = all ] || leave_out="$leave_out|proto_oracle|queued_failures|faults\.|input\.model_limits"
    printf '%s\n' tests/behaviour/test_*.c tests/survival/{faults,input}/test_*.c |
        sed -E 's|.*/([^/]+)/test_(.*)\.c|\1.\2|' | grep -vE "($leave_out)" |
        sed "s|.*|\"$build/$1/tests/&\"|"
    for harness in fuzz/targets/*.c; do
        target=$(basename "$harness" .c)
        printf '"%s"' "$build/$1/fuzz/replay.$target"
        for inputs in "$build/$1/fuzz/seeds/$target" "fuzz/corpus/$target" "fuzz/regressions/$target"; do
            if [ -d "$inputs" ]; then printf ' %s' "$inputs"; fi
        done
        echo
    done
}

# All of them once more under valgrind's memcheck.
run_valgrind() { # FOLDER [all]
    local memcheck="valgrind --quiet --error-exitcode=9 --leak-check=full \
--suppressions=tests/support/valgrind.supp --child-silent-after-fork=yes \
--errors-for-leak-kinds=definite,possible"
    # shellcheck disable=SC2016 # $@ is the inner shell's
    valgrind_commands "$@" | memcheck=$memcheck xargs -P "$jobs" -L 1 bash -c '
        out=$(timeout --foreground 600 $memcheck "$@" 2>&1) && echo "ok $*" && exit
        printf "alone: %s %s\n%s\nFAILED %s\n" "$memcheck" "$*" "$out" "$*"
        exit 1' valgrind
}
