# shellcheck shell=bash
# Communicators over MPI, where there is one.

# shellcheck disable=SC2034 # read by need
mpi_needs='
libopenmpi-dev    | command -v mpicc.openmpi || ! apt-cache show libopenmpi-dev
openmpi-bin       | command -v mpirun.openmpi || ! apt-cache show openmpi-bin
libmpich-dev      | command -v mpicc.mpich || ! apt-cache show libmpich-dev
mpich             | command -v mpirun.mpich || ! apt-cache show mpich
'

run_mpi() { # BUILD [FLAG...]
    told tests/mpi/run.sh "$build/$1" "${@:2}"
}

mpi_steps() {
    on 'mpi_needs release' step 'communicators over MPI' run_mpi release
}

mpi_full_steps() {
    on mpi_needs step 'the crate over MPI' told tests/mpi/rust.sh
    on 'mpi_needs asan' step 'communicators over MPI, two sanitizers' \
        run_mpi asan -fsanitize=address,undefined
}
