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

# What the registry would refuse, nothing being compiled; newer versions of cargo go through all
# crates in order.
publish_dry() {
    if ! cargo publish --help | grep -q -- --workspace; then
        echo 'skipped: this cargo publishes no workspace: 1.90 and newer ones do'
        return 77
    fi
    told cargo publish --dry-run --no-verify --locked --workspace --target-dir "$build/publish"
}

of_dependencies=(--workspace --locked --config tests/project/release/deny.toml)

# Licences, versions and sources of what the crates are made of.
check_dependencies() {
    local programs
    programs=$(cargo_program cargo-deny "$deny_version") || return
    PATH=$programs:$PATH told cargo deny "${of_dependencies[@]}" check -D warnings \
        bans licenses sources
}

# What is known to be broken in them. The list of it is fetched each time.
check_advisories() {
    local programs
    programs=$(cargo_program cargo-deny "$deny_version") || return
    if ! PATH=$programs:$PATH cargo deny "${of_dependencies[@]}" fetch db; then
        echo 'skipped: the list of advisories cannot be fetched'
        return 77
    fi
    PATH=$programs:$PATH told cargo deny "${of_dependencies[@]}" check --disable-fetch advisories
}

# The crates' interfaces against those of the last release.
check_semver() {
    local programs last crate options=()
    if ! last=$(git describe --tags --abbrev=0 --match 'v[0-9]*' HEAD 2>/dev/null); then
        echo 'skipped: nothing is released: no tag v... before HEAD'
        return 77
    fi
    programs=$(cargo_program cargo-semver-checks "$semver_checks_version") || return
    for crate in $(check_release 2>/dev/null | tail -n 1); do options+=(-p "$crate"); done
    PATH=$programs:$PATH told cargo semver-checks --baseline-rev "$last" "${options[@]}"
}

# What is in the archive is built as a user builds it.
pack_sources() {
    local name
    name=syncblob-$(released_version)
    git archive --prefix="$name/" HEAD | gzip -9n >"$build/dist/$name.tar.gz"
    rm -rf "${build:?}/$name"
    tar -xzf "$build/dist/$name.tar.gz" -C "$build"
    build_plainly "$build/$name"
    rm -rf "${build:?}/$name"
}

# What the command is made of on any system, as CycloneDX: the same on every day and in every folder.
# In a copy whose workspace has no other crates: their features would be the command's.
list_materials() {
    local programs folder=$build/materials
    programs=$(cargo_program cargo-cyclonedx "$cyclonedx_version") || return
    rm -rf "$folder"
    mkdir -p "$folder"
    git archive HEAD | tar -xC "$folder"
    sed -i 's|^members = .*|members = ["bindings/syncblob-cli"]|' "$folder/Cargo.toml"
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) PATH=$programs:$PATH cargo cyclonedx --quiet --format json \
        --spec-version 1.5 --target all --manifest-path "$folder/bindings/syncblob-cli/Cargo.toml" \
        --override-filename syncblob.cdx
    sed "s|file://$folder/|file:///|g" "$folder/bindings/syncblob-cli/syncblob.cdx.json" >"$build/dist/syncblob.cdx.json"
    python3 -B tests/project/release/check_materials.py "$build/dist/syncblob.cdx.json"
}

pack_for_debian() { run_packages "$build/dist"; }

pack_static_command() {
    make_rust
    PATH=$cache/rust/bin:$PATH bindings/syncblob-cli/static.sh \
        "$build/dist/syncblob-$(released_version)-linux-$(uname -m)"
}

pack_foreign_command() { # MACHINE
    build_foreign_command "$1"
    cp "$build/static-$1/syncblob" "$build/dist/syncblob-$(released_version)-linux-$1"
}

pack_windows_command() {
    oldest_windows_cargo build --release
    x86_64-w64-mingw32-strip -o "$build/dist/syncblob-$(released_version)-windows-x86_64.exe" \
        "$cache/rust-windows/$windows_target/release/syncblob.exe"
}

# Each says which version it is, where it runs.
run_commands() {
    local program
    program=$build/dist/syncblob-$(released_version)
    "$program-linux-$(uname -m)" --version
    qemu-aarch64 "$program-linux-aarch64" --version
    in_wine wine "$program-windows-x86_64.exe" --version
}

check_commands() {
    diff - <(run_commands | tr -d '\r') <<<"$(printf "syncblob $(released_version)\n%.0s" 1 2 3)"
}

# What must be there beside Debian's packages, which are counted where they are made.
released_files() {
    local version machine crate
    version=$(released_version)
    for crate in $(check_release 2>/dev/null | tail -n 1); do echo "$crate-$version.crate"; done
    echo "syncblob-$version.tar.gz" syncblob.cdx.json
    for machine in linux-x86_64 linux-aarch64 windows-x86_64.exe; do echo "syncblob-$version-$machine"; done
}

# A step that was skipped leaves its file out; that is no release.
sum_release() {
    local file missing=0
    for file in $(released_files); do
        if [ ! -s "$build/dist/$file" ]; then
            echo "error: a release has $file, which no step made"
            missing=1
        fi
    done
    (cd "$build/dist" && sha256sum -- * >SHA256SUMS)
    return $missing
}

release_steps() {
    step 'release: an empty folder' begin_release
    step 'release: sources' pack_sources
    on abi_needs step 'release: the ABI against its baseline' \
        python3 -B tests/project/abi/interface.py compare
    step 'release: crates' pack_crates
    dependency_steps
    step 'release: bill of materials' list_materials
    on package_full_needs step 'release: Debian packages' pack_for_debian
    on package_full_needs step 'release: static command' pack_static_command
    step 'release: static command, aarch64' pack_foreign_command aarch64
    on 'windows_needs windows_rust' step 'release: Windows command' pack_windows_command
    on 'emulator_needs windows_needs' step 'release: the commands run' check_commands
    onnx_peer_steps
    step 'release: checksums' sum_release
}

dependency_steps() {
    step 'crates: as the registry takes them' publish_dry
    step 'crates: licences, versions and sources of what they need' check_dependencies
    step 'crates: advisories on what they need' check_advisories
    step 'crates: interfaces against those of the last release' check_semver
}

release_full_steps() {
    dependency_steps
    step 'release: its checks find what is planted' python3 -B tests/project/release/selftest.py
}

tell_uploads() {
    local version
    version=$(released_version)
    printf '\nWhat a person does with %s, in this order:\n' "$build/dist"
    if grep -q 'example\.invalid' Cargo.toml; then echo '0. Cargo.toml: repository says where it will be'; fi
    echo "1. CHANGELOG.md: 'Unreleased ($version)' becomes '$version (DATE)'; commit; ./dev release --dry-run"
    echo "2. git tag -s v$version && git push origin v$version"
    echo "3. cargo publish --locked --workspace, or one by one: $(check_release 2>/dev/null | tail -n 1)"
    echo "4. the forge's page of v$version: every file below, and SHA256SUMS signed"
    (cd "$build/dist" && ls -l -- *)
}

release() { # --dry-run
    [ "$*" = --dry-run ] || die 'release takes --dry-run: a person uploads'
    steps_of='./dev release --dry-run'
    need "$build_needs" "$python_needs"
    step 'release: version, changelog, ABI, all committed' check_release
    [ "$step_status" = 0 ] || summary # which ends the run: nothing is made of this
    make_python
    find_cuda_headers
    plan release_steps
    need "${needed[@]}"
    release_steps
    summary
    tell_uploads
}
