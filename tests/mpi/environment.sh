# shellcheck shell=bash
# Settings for programs over MPI in a container: root runs the programs, and ranks share processors.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_plm=isolated

# The warning stringop-overflow is off: gcc mistakes MPICH's MPI_STATUSES_IGNORE for an array.
compile_for_mpi() { # MPICC OUT SOURCE BUILD_FOLDER FLAG...
    local mpicc=$1 out=$2 source=$3 folder=$4
    shift 4
    "$mpicc" -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-stringop-overflow "$@" \
        -Ic/include -Ic/comm/include -Ic/mpi/include c/mpi/engine.c "$source" -o "$out" \
        "$folder/c/comm/libsyncblob-comm.a" "$folder/c/libsyncblob.a" -L/usr/lib/"$(uname -m)"-linux-gnu/openblas-serial \
        -lprotobuf-c -lopenblas -lpthread -lm -ldl
}

compare_losses() { # WHAT FILE FILE TOLERANCE
    paste "$2" "$3" | awk -v what="$1" -v most="$4" '
        $1 != $3 || $2 - $4 > most || $4 - $2 > most { print what ": " $0; wrong++ }
        END { print (NR > 0 && !wrong) + 0 " passed, " (NR == 0 || wrong > 0) + 0 " failed"
              exit NR == 0 || wrong > 0 }'
}

# The file "alone" is the output of one rank, "again" of ranks that were restarted at step 120.
check_losses() { # FOLDER RANKS
    compare_losses "one rank, $2 ranks" "$1/alone" "$1/together" 1e-6
    tail -n 80 "$1/together" >"$1/rest"
    compare_losses 'never stopped, restarted' "$1/rest" "$1/again" 0
}
