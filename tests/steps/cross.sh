# shellcheck shell=bash
# Machines of other kinds: cross compilers, and the tests under qemu-user.

big_endian_needs='
gcc-s390x-linux-gnu | command -v s390x-linux-gnu-gcc
libc6-dev-s390x-cross | [ -e /usr/s390x-linux-gnu/lib/crt1.o ]
qemu-user         | command -v qemu-aarch64 && command -v qemu-s390x
'
cross_needs=$big_endian_needs'
gcc-aarch64-linux-gnu | command -v aarch64-linux-gnu-gcc
libc6-dev-arm64-cross | [ -e /usr/aarch64-linux-gnu/lib/crt1.o ]
'
cross_packages=(libc6 libgcc-s1 libprotobuf-c1 libprotobuf-c-dev libcmocka0 libcmocka-dev librandom123-dev)
cross_blas_packages=(libopenblas0-serial libopenblas-serial-dev libgfortran5)

# What reads and writes bytes: programs that are tests, and replays of corpora.
cross_format_tests=(abi.numbers behaviour.{wire,file,filler,proto_{oracle,raw,read,write}}
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
    'fuzz\.(seeds|mutations)$' 'scripts'
)

# Where the packages of an ARCHITECTURE lie; false, said why, where the machine's sources do not
# have them.
find_sysroot() { # ARCHITECTURE PACKAGE...
    local log=$build/log/sysroot-$1.txt status=0
    mkdir -p "${log%/*}"
    sysroot=$cache/sysroot-$1
    tests/project/cross/sysroot.sh "$1" "$sysroot" "${@:2}" >"$log" 2>&1 || status=$?
    if [ $status = 3 ] && [ "${SYNCBLOB_NEED_CROSS:-}" != 1 ]; then
        echo "skipped         tests on $1: its packages cannot be had ($log)"
    elif [ $status != 0 ]; then
        step "packages of $1" cat_and_fail "$log"
    fi
    return $status
}

cat_and_fail() { # LOG
    cat "$1"
    return 1
}

build_cross() { # MACHINE [OPTION...] [-- TARGET...]
    make_build "$1" release "-DSYNCBLOB_SYSROOT=$sysroot" \
        "-DCMAKE_TOOLCHAIN_FILE=$PWD/tests/project/cross/$1.cmake" "${@:2}"
}

build_big_endian() { build_cross s390x "${big_endian[@]}" -- "${cross_format_tests[@]}"; }

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
        -R '^(behaviour|faults|threads|input|fuzz|standin|gpu)\.|^abi\.numbers$'
}

check_cross_symbols() { # MACHINE
    NM=$1-linux-gnu-nm tests/project/abi/check_symbols.sh "$build/$1/c/libsyncblob_static.a" \
        tests/project/abi/imports.txt
}

# Once it is built.
cross_tests() { # NAME MACHINE
    [ "$step_status" = 0 ] || return 0
    step "$1: imports and names" check_cross_symbols "$2"
    step "$1: tests" run_all_cross "$2"
}

big_endian=(-DSYNCBLOB_OPENBLAS=OFF -DSYNCBLOB_CUDA=OFF)

# The bytes of messages and files on a big-endian machine.
cross_steps() {
    wanted 'big-endian (s390x): tests of bytes' || return 0
    find_sysroot s390x "${cross_packages[@]}" || return 0
    on big_endian step 'big-endian (s390x): tests of bytes' run_format_tests s390x
}

cross() {
    need "$build_needs" "$python_needs" "$test_needs" "$cross_needs"
    make_python
    find_cuda_headers
    SYNCBLOB_NEED_CROSS=1 cross_full_steps
    summary
}

cross_full_steps() {
    wanted 'big-endian (s390x): build of all, imports and names, tests; aarch64: build' || return 0
    if find_sysroot s390x "${cross_packages[@]}"; then
        step 'big-endian (s390x): build of all' build_cross s390x "${big_endian[@]}"
        cross_tests 'big-endian (s390x)' s390x
    fi
    if find_sysroot arm64 "${cross_packages[@]}" "${cross_blas_packages[@]}"; then
        step 'aarch64: build' build_cross aarch64 "${cuda_options[@]}"
        cross_tests aarch64 aarch64
    fi
}
