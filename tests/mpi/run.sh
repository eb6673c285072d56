#!/usr/bin/env bash
# Compiles and runs the test and the training example with each installed MPI: run.sh BUILD_FOLDER
# [FLAG...]
set -euo pipefail
shopt -s inherit_errexit
folder=$(realpath "$1") flags=("${@:2}")
cd "$(dirname "$(readlink -f "$0")")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

. tests/mpi/environment.sh
# MPI leaks memory at its end, and the library leaks on purpose after a failure.
export ASAN_OPTIONS=detect_leaks=0

shared=(-Wno-unused-parameter -Itests/support -Ic/comm/tests/support -Ic/src -Ic/testing/include
    c/comm/tests/support/tasks.c)
compile() { # PROGRAM SOURCE FLAG...
    compile_for_mpi "mpicc.$mpi" "$work/$1" "$2" "$folder" -g -O1 "${@:3}" "${flags[@]}"
}

run() { # PROGRAM RANKS ARGUMENT...
    timeout 120 "mpirun.$mpi" -n "$2" "$work/$1" "${@:3}"
}

# MPICH's ranks never yield: more ranks than processors would take long.
check_training() {
    local ranks=4
    [ "$mpi" = openmpi ] || ranks=2
    run train 1 200 >"$work/alone"
    run train $ranks 200 --save 120 "$work/snapshot" >"$work/together"
    run train $ranks 200 --restore "$work/snapshot" >"$work/again"
    check_losses "$work" $ranks
    awk 'NR == 1 { first = $2 } END { exit !($2 < first / 2) }' "$work/alone"
}

ran=77
for mpi in openmpi mpich; do
    type mpi{cc,run}.$mpi >/dev/null 2>&1 || { echo "skipped: $mpi is not installed"; continue; }
    compile whole tests/mpi/test_mpi.c "${shared[@]}"
    compile pieces tests/mpi/test_mpi.c "${shared[@]}" -DSB__MPI_PIECE=499 -DSB__MPI_FLYING=2
    compile train c/mpi/example/train.c
    for ranks in 1 2 3 4 7; do
        echo "$mpi, $ranks ranks:"
        run whole $ranks
    done
    echo "$mpi, 3 ranks, in pieces, any thread:"
    run pieces 3 --serialized
    echo "$mpi, the example:"
    check_training
    ran=0
done
exit $ran
