# shellcheck shell=bash
# What must be installed, and installs it.

rust_needed=1.85

# A line each: package | shell command that succeeds when it is not needed.
build_needs='
gcc               | command -v gcc
libc6-dev         | echo "#include <stdio.h>" | gcc -E -o /dev/null -
cmake             | command -v cmake
ninja-build       | command -v ninja
pkg-config        | command -v pkg-config
ca-certificates   | test -e /etc/ssl/certs/ca-certificates.crt
libprotobuf-c-dev | pkg-config --exists libprotobuf-c
librandom123-dev  | echo "#include <Random123/philox.h>" | gcc -x c -E -o /dev/null -
libopenblas-serial-dev | ls /usr/lib/*/openblas-serial/libopenblas.so || pkg-config --exists openblas
'
python_needs='
python3-venv      | python3 -c "import ensurepip, venv"
'
test_needs='
g++               | command -v g++
clang             | command -v clang && command -v clang++
libclang-rt-14-dev | ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.tsan-*.a
libclang-dev      | ls /usr/lib/llvm-*/lib/libclang.so
libcmocka-dev     | pkg-config --exists cmocka
protobuf-c-compiler | command -v protoc-c
protobuf-compiler | command -v protoc
valgrind          | command -v valgrind
libc6-dbg         | ls /usr/lib/debug/.build-id || ls /usr/lib/debug/lib
groff             | command -v groff && groff -man /dev/null
chromium          | command -v chromium google-chrome || ! apt-cache show chromium
'
fuzz_needs='
clang             | command -v clang && command -v clang++
libclang-rt-14-dev | ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a
zip               | command -v zip
'
afl_needs='
afl++             | command -v afl-fuzz && command -v afl-clang-fast && command -v afl-clang-fast++
'
bench_needs='
valgrind          | command -v valgrind
libc6-dbg         | ls /usr/lib/debug/.build-id || ls /usr/lib/debug/lib
'
bench_mpi_needs='
libopenmpi-dev    | command -v mpicc
openmpi-bin       | command -v mpirun
'
bench_onnx_needs='
time              | test -x /usr/bin/time
'
peer_needs='
g++               | command -v g++
protobuf-compiler | command -v protoc
libprotobuf-dev   | pkg-config --exists protobuf
libgoogle-glog-dev | pkg-config --exists libglog
libgflags-dev     | pkg-config --exists gflags
libboost-thread-dev | test -e /usr/include/boost/thread.hpp && ls /usr/lib/*/libboost_thread.so
libboost-system-dev | ls /usr/lib/*/libboost_system.so
'
caffe_needs='
libhdf5-dev       | pkg-config --exists hdf5
libboost-filesystem-dev | ls /usr/lib/*/libboost_filesystem.so
libboost-regex-dev | ls /usr/lib/*/libboost_regex.so
'
coverage_needs='
lcov              | command -v lcov
'
lint_needs='
clang-tidy-14     | command -v run-clang-tidy-14
iwyu              | command -v iwyu_tool
cppcheck          | command -v cppcheck
clang-format-14   | command -v clang-format-14
shellcheck        | command -v shellcheck
'

missing_packages() { # NEEDS...
    local package probe
    while IFS='|' read -r package probe; do
        [ -z "${package// /}" ] || bash -c "$probe" >/dev/null 2>&1 || echo "${package// /}"
    done <<<"$(printf '%s\n' "$@")"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

install_packages() { # PACKAGE...
    echo "installing: $*"
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq install --no-install-recommends -y "$@" >/dev/null
}

is_at_least() { # VERSION MINIMUM
    [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -1)" = "$2" ]
}

# Adds Ubuntu's versioned Rust, which has a folder of its own, to PATH.
find_rust() {
    local folder
    for folder in /usr/lib/rust-1.*/bin; do
        if [ -x "$folder/cargo" ] && ! command -v cargo >/dev/null; then PATH=$PATH:$folder; fi
    done
    command -v cargo >/dev/null && command -v rustc >/dev/null
}

# The distribution's newest packages of rustc, cargo and, where there is one,
# rustfmt: rustc-web and so on (Debian), rustc-1.85 (Ubuntu), rustc.
rust_packages() {
    local rustc version
    for rustc in rustc-web rustc $(apt-cache pkgnames rustc-1. | grep -E '^rustc-1\.[0-9]+$' | sort -Vr); do
        version=$(apt-cache policy "$rustc" | sed -n 's/^ *Candidate: *//p')
        if [[ $version == [0-9]* ]] && is_at_least "$version" "$rust_needed"; then
            echo "$rustc ${rustc/rustc/cargo}"
            apt-cache pkgnames "${rustc/rustc/rustfmt}" | grep -x "${rustc/rustc/rustfmt}" || true
            return
        fi
    done
    die "this distribution has no Rust $rust_needed or newer: install one (www.rust-lang.org)"
}

# Installs Rust and what is missing of NEEDS, or says what is missing.
need() { # NEEDS...
    local packages pair rust=() version
    mapfile -t packages < <(missing_packages "$@")
    find_rust || rust=("Rust $rust_needed or newer")
    if [ $((${#packages[@]} + ${#rust[@]})) != 0 ]; then
        if [ -n "${SYNCBLOB_NO_INSTALL:-}" ] || ! command -v apt-get >/dev/null; then
            die "missing, by the names of Debian's packages: ${packages[*]} ${rust[*]}"
        fi
        as_root apt-get -qq update
        if [ ${#rust[@]} != 0 ]; then
            pair=$(rust_packages)
            read -ra rust <<<"${pair//$'\n'/ }"
        fi
        install_packages "${packages[@]}" "${rust[@]}"
        mapfile -t packages < <(missing_packages "$@")
        [ ${#packages[@]} = 0 ] || die "still missing after the installation: ${packages[*]}"
        find_rust
    fi
    version=$(rustc --version | cut -d' ' -f2)
    is_at_least "$version" "$rust_needed" ||
        die "rustc is $version; $rust_needed or newer is needed: update it or take it out of PATH"
}
