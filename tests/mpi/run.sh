#!/usr/bin/env bash
# Compiles libsyncblob-mpi's source and its test for each MPI that is installed, against the static
# library of a build folder, and runs it at 1, 2, 3, 4 and 7 ranks: run.sh BUILD_FOLDER [FLAG...].
# Then with pieces of a few elements, as if counts were too large for MPI. Ends with 77 where there
# is no MPI.
set -euo pipefail
shopt -s inherit_errexit
folder=$(realpath "$1")
shift
cd "$(dirname "$(readlink -f "$0")")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Ranks share the processors, and root may run them, as in a container.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_plm=isolated
# MPI's own memory at the end is not ours; what we leave after a failure is meant.
export ASAN_OPTIONS=detect_leaks=0

# gcc takes MPICH's MPI_STATUSES_IGNORE for an array.
compile() { # MPI OUT FLAG...
    local mpi=$1 out=$2
    shift 2
    "mpicc.$mpi" -std=c17 -D_GNU_SOURCE -g -O1 -Wall -Wextra -Werror -Wno-stringop-overflow "$@" \
        -Ic/include -Ic/mpi/include c/mpi/engine.c tests/mpi/test_mpi.c -o "$out" \
        "$folder/c/libsyncblob.a" -L/usr/lib/"$(uname -m)"-linux-gnu/openblas-serial \
        -lprotobuf-c -lopenblas -lpthread -lm -ldl
}

ran=0
for mpi in openmpi mpich; do
    if ! command -v "mpicc.$mpi" >/dev/null || ! command -v "mpirun.$mpi" >/dev/null; then
        echo "skipped: $mpi is not installed"
        continue
    fi
    compile $mpi "$work/whole.$mpi" "$@"
    compile $mpi "$work/pieces.$mpi" -DSB__MPI_PIECE=7 "$@"
    for ranks in 1 2 3 4 7; do
        echo "$mpi, $ranks ranks:"
        timeout 120 "mpirun.$mpi" -n $ranks "$work/whole.$mpi"
    done
    echo "$mpi, 3 ranks, in pieces, any thread:"
    timeout 120 "mpirun.$mpi" -n 3 "$work/pieces.$mpi" --serialized
    ran=$((ran + 1))
done
[ $ran != 0 ] || exit 77
