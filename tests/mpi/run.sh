#!/usr/bin/env bash
# Compiles libsyncblob-mpi's source and its test for each MPI that is installed, against the static
# libraries of a build folder, and runs the test at 1, 2, 3, 4 and 7 ranks: run.sh BUILD_FOLDER [FLAG...].
# Runs it again with pieces of 499 elements, two at a time, as if counts were too large for MPI. Then runs
# the training example: several ranks must have the losses of one rank, and a restarted run the losses of
# a run that never stopped. Ends with 77 if there is no MPI.
set -euo pipefail
shopt -s inherit_errexit
folder=$(realpath "$1")
shift
cd "$(dirname "$(readlink -f "$0")")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

. tests/mpi/environment.sh
# Turns off the leak check: MPI leaks memory at its end, and the library leaks on purpose after a failure.
export ASAN_OPTIONS=detect_leaks=0

compile() { # MPI OUT SOURCE FLAG...
    compile_for_mpi "mpicc.$1" "$2" "$3" "$folder" -g -O1 "${@:4}"
}

train() { # MPI RANKS ARGUMENT...
    local mpi=$1 ranks=$2
    shift 2
    timeout 120 "mpirun.$mpi" -n "$ranks" "$work/train.$mpi" 200 "$@"
}

# MPICH's ranks never yield to each other: more ranks than processors would take long.
check_training() { # MPI
    local mpi=$1 ranks=4
    [ "$mpi" = openmpi ] || ranks=2
    train "$mpi" 1 >"$work/alone"
    train "$mpi" $ranks --save 120 "$work/snapshot" >"$work/together"
    compare_losses "one rank, $ranks ranks" "$work/alone" "$work/together" 1e-6
    train "$mpi" $ranks --restore "$work/snapshot" >"$work/again"
    tail -n 80 "$work/together" >"$work/rest"
    compare_losses 'never stopped, restarted' "$work/rest" "$work/again" 0
    # the loss must fall by half
    awk 'NR == 1 { first = $2 } END { exit !($2 < first / 2) }' "$work/alone"
}

ran=0
for mpi in openmpi mpich; do
    if ! command -v "mpicc.$mpi" >/dev/null || ! command -v "mpirun.$mpi" >/dev/null; then
        echo "skipped: $mpi is not installed"
        continue
    fi
    compile $mpi "$work/whole.$mpi" tests/mpi/test_mpi.c "$@"
    compile $mpi "$work/pieces.$mpi" tests/mpi/test_mpi.c -DSB__MPI_PIECE=499 \
        -DSB__MPI_FLYING=2 "$@"
    for ranks in 1 2 3 4 7; do
        echo "$mpi, $ranks ranks:"
        timeout 120 "mpirun.$mpi" -n $ranks "$work/whole.$mpi"
    done
    echo "$mpi, 3 ranks, in pieces, any thread:"
    timeout 120 "mpirun.$mpi" -n 3 "$work/pieces.$mpi" --serialized
    compile $mpi "$work/train.$mpi" c/mpi/example/train.c "$@"
    echo "$mpi, the example:"
    check_training $mpi
    ran=$((ran + 1))
done
[ $ran != 0 ] || exit 77
