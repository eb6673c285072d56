#!/usr/bin/env bash
# Tests the crate with its feature mpi, under each installed MPI: runs the test at 1, 2 and 3 ranks, and
# the training example, whose losses must be equal to the losses without MPI. Ends with 77 if there is no
# MPI, or no libclang for the crate mpi.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$(readlink -f "$0")")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/mpi/environment.sh

# Uses a separate build folder for each MPI: the crate mpi-sys does not notice that MPICC has changed.
crate() { # MPI COMMAND ARGUMENT...
    local mpi=$1 command=$2
    shift 2
    MPICC=mpicc.$mpi CARGO_TARGET_DIR=$target/mpi-$mpi \
        cargo "$command" --quiet --locked -p syncblob --features mpi "$@"
}

target=${CARGO_TARGET_DIR:-$PWD/target}
runner=CARGO_TARGET_$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')_RUNNER
if ! ls /usr/lib/llvm-*/lib/libclang*.so* >/dev/null 2>&1; then
    echo 'skipped: no libclang, which the crate mpi needs'
    exit 77
fi
ran=0
for mpi in openmpi mpich; do
    if ! command -v "mpicc.$mpi" >/dev/null || ! command -v "mpirun.$mpi" >/dev/null; then
        echo "skipped: $mpi is not installed"
        continue
    fi
    for ranks in 1 2 3; do
        export "$runner=timeout 120 mpirun.$mpi -n $ranks"
        crate $mpi test --test mpi
    done
    crate $mpi run --example train -- 200 --mpi --save 120 "$work/snapshot" >"$work/together"
    crate $mpi run --example train -- 200 --mpi --restore "$work/snapshot" >"$work/again"
    unset "$runner"
    crate $mpi run --example train -- 200 >"$work/alone"
    compare_losses 'one rank, 3 ranks' "$work/alone" "$work/together" 1e-6
    tail -n 80 "$work/together" >"$work/rest"
    compare_losses 'never stopped, restarted' "$work/rest" "$work/again" 0
    ran=$((ran + 1))
done
[ $ran != 0 ] || exit 77
