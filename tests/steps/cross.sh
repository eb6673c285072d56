# shellcheck shell=bash
# Machines of other kinds: cross compilers, and the tests under qemu-user.

emulator_needs='
qemu-user         | command -v qemu-aarch64 && command -v qemu-s390x
'
big_endian_needs=$emulator_needs'
gcc-s390x-linux-gnu | command -v s390x-linux-gnu-gcc
libc6-dev-s390x-cross | [ -e /usr/s390x-linux-gnu/lib/crt1.o ]
'
cross_needs=$big_endian_needs'
gcc-aarch64-linux-gnu | command -v aarch64-linux-gnu-gcc
libc6-dev-arm64-cross | [ -e /usr/aarch64-linux-gnu/lib/crt1.o ]
'
cross_packages=(libc6 libgcc-s1 libprotobuf-c1 libprotobuf-c-dev libcmocka0 libcmocka-dev librandom123-dev)
cross_blas_packages=(libopenblas0-serial libopenblas-serial-dev libgfortran5)

# What reads and writes bytes: programs that are tests, and replays of corpora.
cross_format_tests=(behaviour.{wire,file,filler,proto_{oracle,raw,read,write}}
    behaviour.model_{announce,edit,read} input.model_limits replay.{blob_proto,differential,filler,model_file})

# Tests that cannot run there, and why.
cross_left_out=(
    '(standin\.)?threads\.exit|standin\.open|gpu\.memory' 'starts itself, which takes a kernel that runs such programs'
    'threads\.parallel_for$' 'has a deadline'
    'behaviour\.sim$' 'measures its own memory, which is qemu-user'"'"'s'
    '(standin\.)?behaviour\.mem_(states|async)' 'qemu-user keeps memory for each thread that has ended: 20 GB'
    '(standin\.)?faults\.(mem|blob|dlpack)_faults' 'the same'
    'behaviour\.filler_statistics$' 'behaviour.filler_numbers has the numbers, and this takes minutes'
    'faults\.functions$' 'a script'
    'fuzz\.mutations$' 'a script'
)

# Where the packages of an ARCHITECTURE lie; skipped where the machine's sources do not have them.
find_sysroot() { # ARCHITECTURE[-USE] PACKAGE...
    local status=0
    sysroot=$cache/sysroot-$1
    tests/project/cross/sysroot.sh "${1%%-*}" "$sysroot" "${@:2}" || status=$?
    if [ $status = 3 ] && [ "${SYNCBLOB_NEED_CROSS:-}" != 1 ]; then
        echo "skipped: tests on ${1%%-*}: its packages cannot be had"
        return 77
    fi
    return $status
}

build_cross() { # MACHINE [OPTION...] [-- TARGET...]
    make_build "$1" release "-DSYNCBLOB_SYSROOT=$sysroot" \
        "-DCMAKE_TOOLCHAIN_FILE=$PWD/tests/project/cross/$1.cmake" "${@:2}"
}

big_endian=(-DSYNCBLOB_OPENBLAS=OFF -DSYNCBLOB_CUDA=OFF)

build_big_endian() {
    find_sysroot s390x "${cross_packages[@]}"
    build_cross s390x "${big_endian[@]}" -- "${cross_format_tests[@]}"
}

build_s390x() {
    find_sysroot s390x "${cross_packages[@]}"
    build_cross s390x "${big_endian[@]}"
}

build_aarch64() {
    find_sysroot arm64 "${cross_packages[@]}" "${cross_blas_packages[@]}"
    build_cross aarch64 "${cuda_options[@]}"
}

run_format_tests() { # MACHINE
    local names=${cross_format_tests[*]/#replay./fuzz.}
    run_cross "$1" -R "^(${names// /|})\$"
}

# No program may take the machine's memory: qemu-user never forgets a page.
run_cross() { # MACHINE OPTION...
    ulimit -d 8000000
    run_ctest "$@"
}

# All tests but those that are scripts or need this machine's compilers.
run_all_cross() { # MACHINE
    local i out=
    for ((i = 0; i < ${#cross_left_out[@]}; i += 2)); do
        echo "left out: ${cross_left_out[i]}: ${cross_left_out[i + 1]}"
        out=$out${out:+|}${cross_left_out[i]}
    done
    run_cross "$1" -E "^($out)" \
        -R '^(behaviour|faults|threads|input|fuzz|standin|gpu)\.'
}

check_cross_symbols() { # MACHINE
    NM=$1-linux-gnu-nm tests/project/abi/check_symbols.sh "$build/$1/c/libsyncblob.a" \
        tests/project/abi/imports.txt
}

# One error, which says why, whatever else such a host lacks.
refuse_32_bits() {
    local target said
    for target in i686-linux-gnu i686-w64-mingw32 armv7-linux-gnueabihf wasm32-unknown-unknown; do
        said=$(echo '#include <syncblob/syncblob.h>' |
            clang "--target=$target" -ffreestanding -Ic/include -x c -fsyntax-only - 2>&1) && return 1
        grep error: <<<"$said" || return
        [ "$(grep -c error: <<<"$said")" = 1 ] && grep -q 'syncblob needs a 64-bit host' <<<"$said" || return
    done
}

# The bytes of messages and files on a big-endian machine.
cross_steps() {
    aside 'hosts of 32 bits are refused' refuse_32_bits
    on 'big_endian_needs big_endian' step 'big-endian (s390x): tests of bytes' run_format_tests s390x
}

cross() {
    need "$build_needs" "$python_needs" "$test_needs" "$cross_needs"
    make_python
    find_cuda_headers
    SYNCBLOB_NEED_CROSS=1 cross_full_steps
    summary
}

cross_full_steps() {
    on 'cross_needs s390x' step 'big-endian (s390x): imports and names' check_cross_symbols s390x
    on 'cross_needs s390x' step 'big-endian (s390x): tests' run_all_cross s390x
    on 'cross_needs aarch64' step 'aarch64: imports and names' check_cross_symbols aarch64
    on 'cross_needs aarch64' step 'aarch64: tests' run_all_cross aarch64
}
