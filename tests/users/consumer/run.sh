#!/usr/bin/env bash
# Compiles a program against an installed syncblob by pkg-config and runs it:
#   run.sh c|cxx|reload PREFIX
# CC, CXX and FLAGS are the compilers and their flags; LINK=static hides the shared library.
set -euo pipefail

what=$1 prefix=$(readlink -f "$2")
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "${LINK:-}" = static ]; then
    cp -a "$prefix" "$work/prefix"
    prefix=$work/prefix
    find "$prefix" -name 'libsyncblob.so*' -delete
fi

pc=$(find "$prefix" -name syncblob.pc)

# Calls pkg-config without other packages, because syncblob must not need any.
ask() { # OPTION...
    PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR=$(dirname "$pc") pkg-config "$@" syncblob
}
libdir=$(ask --variable=libdir)

# Tests that the folder of Debian's serial OpenBLAS precedes ours, which may have the threaded
# OpenBLAS.
if [ "${LINK:-}" = static ] && grep -q openblas-serial "$pc"; then
    echo 'INPUT(the_wrong_openblas)' >"$libdir/libopenblas.so"
fi

# With the static library, its dependencies must be linked too.
static=()
[ -e "$libdir/libsyncblob.so" ] || static=(--static)
read -ra cflags <<<"$(ask --cflags) ${FLAGS:-}"
read -ra libs <<<"$(ask "${static[@]}" --libs)"
export LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

warnings=(-Wall -Wextra -Wpedantic -Werror)

compile_c() { # SOURCE OPTION...
    "$CC" -std=c11 "${warnings[@]}" "${cflags[@]}" "$1" -o "$work/program" "${libs[@]}" "${@:2}"
}

case $what in
c)
    compile_c "$here/main.c"
    cd "$work"
    ./program "$(ask --modversion)"
    ;;
cxx)
    for standard in c++11 c++20; do
        "$CXX" -std=$standard "${warnings[@]}" "${cflags[@]}" "$here/main.cpp" -o "$work/program" "${libs[@]}"
        (cd "$work" && ./program)
    done
    ;;
reload)
    compile_c "$here/../../project/abi/copies.c" -DUSER=plugin -DVERSION=1 -fPIC -shared
    mv "$work/program" "$work/plugin.so"
    compile_c "$here/reload.c" -D_DEFAULT_SOURCE -ldl -Wl,--as-needed
    cd "$work"
    ./program "$libdir/libsyncblob.so.0.1" ./plugin.so
    ;;
*)
    echo "run.sh: no such program: $what" >&2
    exit 2
    ;;
esac
