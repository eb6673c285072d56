# shellcheck shell=bash
# ./dev release --dry-run: everything that a release is, made in $build/dist; a person uploads it.

check_release() { python3 -B tests/project/release/check.py; }

released_version() { sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml; }

begin_release() {
    rm -rf "$build/dist"
    mkdir -p "$build/dist"
}

# Each is built as it was packed.
pack_crates() {
    local order crate options=()
    order=$(check_release | tail -n 1)
    for crate in $order; do options+=(-p "$crate"); done
    told cargo package --locked "${options[@]}"
    for crate in $order; do
        cp "$CARGO_TARGET_DIR/package/$crate-$(released_version).crate" "$build/dist"
    done
}

pack_sources() {
    local name
    name=syncblob-$(released_version)
    git archive --prefix="$name/" HEAD | gzip -9n >"$build/dist/$name.tar.gz"
}

# What the command is made of, as CycloneDX.
list_materials() {
    told cargo install --quiet --locked --root "$cache/cyclonedx" "cargo-cyclonedx@$cyclonedx_version"
    PATH=$cache/cyclonedx/bin:$PATH cargo cyclonedx --quiet --format json --spec-version 1.5 \
        --manifest-path bindings/syncblob-cli/Cargo.toml --override-filename syncblob.cdx
    mv bindings/syncblob-cli/syncblob.cdx.json "$build/dist"
    rm -f bindings/*/syncblob.cdx.json
}

pack_for_debian() {
    run_packages
    umask 022
    cpack --config "$build/packages/CPackConfig.cmake" -G DEB -B "$build/packages/made"
    cp "$build"/packages/made/*.deb "$build/dist"
}

pack_static_command() {
    make_rust
    PATH=$cache/rust/bin:$PATH bindings/syncblob-cli/static.sh \
        "$build/dist/syncblob-$(released_version)-linux-$(uname -m)"
}

pack_windows_command() {
    windows_cargo build --release
    x86_64-w64-mingw32-strip -o "$build/dist/syncblob-$(released_version)-windows-x86_64.exe" \
        "$cache/rust-windows/x86_64-pc-windows-gnu/release/syncblob.exe"
}

sum_release() { (cd "$build/dist" && sha256sum -- * >SHA256SUMS); }

release_steps() {
    step 'release: version, changelog, ABI, all committed' check_release
    step 'release: an empty folder' begin_release
    step 'release: sources' pack_sources
    on 'abi_needs abi_library' step 'release: the ABI against its baseline' compare_baseline
    step 'release: crates' pack_crates
    step 'release: bill of materials' list_materials
    on package_full_needs step 'release: Debian packages' pack_for_debian
    on package_full_needs step 'release: static command' pack_static_command
    on 'windows_needs windows_command' step 'release: Windows command' pack_windows_command
    step 'release: checksums' sum_release
}

release_full_steps() {
    step 'release: its checks find what is planted' python3 -B tests/project/release/selftest.py
}

tell_uploads() {
    local version crate
    version=$(released_version)
    printf '\nWhat a person does with %s, in this order:\n' "$build/dist"
    if grep -q 'example\.invalid' Cargo.toml; then echo '0. Cargo.toml: repository says where it will be'; fi
    echo "1. CHANGELOG.md: 'Unreleased ($version)' becomes '$version (DATE)'; commit; ./dev release --dry-run"
    echo "2. git tag -s v$version && git push origin v$version"
    for crate in $(check_release 2>/dev/null | tail -n 1); do echo "3. cargo publish --locked -p $crate"; done
    echo "4. the forge's page of v$version: every file below, and SHA256SUMS signed"
    (cd "$build/dist" && ls -l -- *)
}

release() { # --dry-run
    [ "$*" = --dry-run ] || die 'release takes --dry-run: a person uploads'
    steps_of='./dev release --dry-run'
    need "$build_needs" "$python_needs"
    make_python
    find_cuda_headers
    plan release_steps
    need "${needed[@]}"
    release_steps
    tell_uploads
    summary
}
