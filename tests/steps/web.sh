# shellcheck shell=bash
# Makes the page of bindings/syncblob-web: one HTML file that contains the command, compiled for WASI.

web_target=wasm32-wasip1

make_node_modules() { # FOLDER FROM
    ! cmp -s "$2/package-lock.json" "$1/installed" || return 0
    mkdir -p "$1"
    cp "$2"/package.json "$2"/package-lock.json "$1"
    command -v npm >/dev/null || die "npm is missing: install it"
    npm ci --silent --ignore-scripts --prefix "$1"
    cp "$2/package-lock.json" "$1/installed"
}

node_modules() { # FOLDER
    local part=npm-${1//[^A-Za-z0-9.]/-}
    locked "$part" make_node_modules "$cache/$part" "$1"
    echo "$cache/$part/node_modules"
}

# Sets $made to a description of the compilers.
build_web_command() {
    local cargo=(cargo build --locked --target "$web_target" --profile web -p syncblob-cli)
    if has_rust_target $web_target; then
        build_by_zig
    else
        need wasi
        [ -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ] ||
            die "Rust lacks the target $web_target: rustup target add $web_target; or Debian's rust-web-src"
        build_by_debian
    fi
}

# zig has the headers of the C library that Rust links for WASI.
build_by_zig() {
    make_zig wasm32-wasi
    by_hand env -u RUSTC_WORKSPACE_WRAPPER CC_wasm32_wasip1="$zig/cc-wasm32-wasi" AR_wasm32_wasip1="$zig/ar" "${cargo[@]}"
    made="$(rustc --version) with its own library for $web_target, and zig's clang"
}

# Compiles Rust's standard library, and links Debian's C library for WASI.
build_by_debian() {
    local libc=/usr/lib/wasm32-wasi include='-isystem /usr/include/wasm32-wasi' more=$CARGO_TARGET_DIR/wasi.o flags
    mkdir -p "$CARGO_TARGET_DIR"
    # shellcheck disable=SC2086 # several words
    clang-22 --target=$web_target $include -Oz -c bindings/syncblob-web/wasi.c -o "$more"
    flags="-Clink-self-contained=no -Lnative=$libc -Clink-arg=$libc/crt1-command.o -Clink-arg=$more"
    by_hand env -u RUSTC_WORKSPACE_WRAPPER RUSTC_BOOTSTRAP=1 CC_wasm32_wasip1=clang-22 AR_wasm32_wasip1=llvm-ar-22 \
        CFLAGS_wasm32_wasip1="$include" CARGO_TARGET_WASM32_WASIP1_LINKER=wasm-ld-22 \
        CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS="$flags" "${cargo[@]}" -Zbuild-std=std,panic_abort
    made="$(rustc --version), which also compiled its library for $web_target, and $(clang-22 --version | head -1)"
}

build_web() {
    local modules made command=$CARGO_TARGET_DIR/$web_target/web/syncblob.wasm
    modules=$(node_modules bindings/syncblob-web)
    build_web_command
    python3 -B bindings/syncblob-web/build.py "$command" "$modules/@bjorn3/browser_wasi_shim" "$made" "$build/web"
    echo "$build/web/syncblob.html; for a server, $build/web/site; by $made"
}

check_web() {
    local modules python
    modules=$(node_modules tests/users/web)
    python=$(environment onnx)
    cargo build --locked --release -p syncblob-cli
    PLAYWRIGHT=$modules/playwright-core PYTHON=$python node --no-warnings tests/users/web/check.mjs \
        "$build/web" "$CARGO_TARGET_DIR/release/syncblob" "$@"
}
