#!/usr/bin/env bash
# Tests the crate's feature mpi with each installed MPI; exits with 77 without MPI or libclang.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$(readlink -f "$0")")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/mpi/environment.sh

# The crate mpi-sys does not notice a change of MPICC, so each MPI has a separate build folder.
crate() { # COMMAND ARGUMENT...
    MPICC=mpicc.$mpi CARGO_TARGET_DIR=$target/mpi-$mpi \
        cargo "$1" --quiet --locked -p syncblob --features mpi "${@:2}"
}

target=${CARGO_TARGET_DIR:-$PWD/target}
runner=CARGO_TARGET_$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')_RUNNER
if ! ls /usr/lib/llvm-*/lib/libclang*.so* >/dev/null 2>&1; then
    echo 'skipped: no libclang, which the crate mpi needs'
    exit 77
fi
ran=77
for mpi in openmpi mpich; do
    type mpi{cc,run}.$mpi >/dev/null 2>&1 || { echo "skipped: $mpi is not installed"; continue; }
    for ranks in 1 2 3; do
        export "$runner=timeout 120 mpirun.$mpi -n $ranks"
        crate test --test mpi
    done
    crate run --example train -- 200 --mpi --save 120 "$work/snapshot" >"$work/together"
    crate run --example train -- 200 --mpi --restore "$work/snapshot" >"$work/again"
    unset "$runner"
    crate run --example train -- 200 >"$work/alone"
    check_losses "$work" 3
    ran=0
done
exit $ran
