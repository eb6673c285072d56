# shellcheck shell=bash
# The library beside other programs that read and write the same.

# The program's own reading and writing of real and made files against Google's protobuf,
# safetensors, NumPy and h5py; and what the library writes read by the first.
run_golden() {
    local proto model cli=$CARGO_TARGET_DIR/debug/syncblob
    proto=$(fetch_member "${caffe_package[@]}" "$caffe_member")
    model=$(fetch_member "${model_package[@]}" "$model_member")
    # shellcheck disable=SC2016 # the inner shell's
    printf '%s\n' "check_diff --cli $cli" "check_convert --cli $cli" "check_info --cli $cli" \
        "check_hdf5 --cli $cli" "check_writing --library $build/release/c/libsyncblob.so" |
        PYTHONDONTWRITEBYTECODE=1 xargs -P "$jobs" -I '{}' bash -c '
            read -r check option program <<<"$1"
            out=$("$2" "tests/users/golden/$check.py" "$option" "$program" --proto "$3" "$4" 2>&1)
            status=$?
            printf "== %s\n%s\n" "$check" "$out"
            exit $status' golden '{}' "$python" "$proto" "$model"
}

# Array libraries of Python's on a blob's memory, and blobs on theirs.
run_interop() {
    PYTHONDONTWRITEBYTECODE=1 "$python" tests/users/interop/check_arrays.py \
        "$build/release/c/libsyncblob.so" numpy tvm_ffi
}

# PyTorch for the host alone is a package of the distribution's, for its own Python.
# shellcheck disable=SC2034 # read by plan_for
torch_needs='
python3-torch     | /usr/bin/python3 -c "import torch" || ! apt-cache show python3-torch
'

run_torch_interop() {
    if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
        echo 'skipped: this system has no package python3-torch'
        return 77
    fi
    PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 tests/users/interop/check_arrays.py \
        "$build/release/c/libsyncblob.so" torch
}

# Ours of DLPack's structs against its header.
check_dlpack_declarations() {
    local header folder=$cache/dlpack
    header=$(fetch_member "${dlpack_package[@]}" "$dlpack_member")
    mkdir -p "$folder/dlpack"
    cp "$header" "$folder/dlpack/dlpack.h"
    tests/project/abi/check_dlpack.sh c/include "$folder" gcc clang
}

peer_steps() {
    on 'release program peers' aside 'golden: against Google protobuf' run_golden
    on 'release peers' aside 'DLPack with NumPy and TVM' run_interop
    on peers aside 'DLPack declarations against its header' check_dlpack_declarations
}

peer_full_steps() {
    on 'torch_needs release' step 'DLPack with PyTorch' run_torch_interop
}
