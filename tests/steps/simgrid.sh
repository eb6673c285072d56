# shellcheck shell=bash
# A training step on machines that are simulated.

# shellcheck disable=SC2034 # read by need
simgrid_needs='
libsimgrid-dev    | command -v smpicc || ! apt-cache show libsimgrid-dev
'

# SMPI gives each rank its own copy of the program, so that the library is in it.
build_simgrid() {
    make_build simgrid release $gcc -DBUILD_SHARED_LIBS=OFF -DSYNCBLOB_OPENBLAS=OFF \
        -DSYNCBLOB_CUDA=OFF -DSYNCBLOB_PROTOBUF_C=OFF -DSYNCBLOB_RANDOM123=OFF \
        -DSYNCBLOB_HARDENING=OFF -DSYNCBLOB_BUILD_TESTS=OFF -- syncblob syncblob_comm
}

simulate() { # [HOSTS...]
    told python3 -B tests/simgrid/simulate.py "$build/simgrid/c/comm/libsyncblob-comm.a" "$build/simgrid/c/libsyncblob.a" \
        "$build/simgrid/results" "$@"
}

simgrid_full_steps() {
    on 'simgrid_needs simgrid' step 'ResNet-50 on 16 and 128 simulated hosts' simulate 16 128
}

# ./dev bench simgrid [HOSTS...]
bench_simgrid() {
    need "$build_needs" "$simgrid_needs"
    mkdir -p "$build"
    build_simgrid >"$build/simgrid-build.txt" 2>&1 ||
        { tail -n 40 "$build/simgrid-build.txt"; die 'the library does not build'; }
    simulate "$@"
}
