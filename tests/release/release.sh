# shellcheck shell=bash
# Makes the parts of a release in $build/dist; a person uploads them.

check_release() { python3 tests/project/release/check.py; }

released_version() { sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml; }

released_crates() { check_release 2>/dev/null | tail -n 1; }

# Prints "-p CRATE" for each crate, in the order in which the crates can be published.
crate_options() { released_crates | xargs printf -- '-p %s '; }

begin_release() {
    check_release
    rm -rf "$build/dist"
    mkdir -p "$build/dist"
}

# Packs the crates; cargo also builds each crate from its package.
pack_crates() {
    # shellcheck disable=SC2046 # several words
    by_hand cargo package --locked $(crate_options)
    for crate in $(released_crates); do
        cp "$CARGO_TARGET_DIR/package/$crate-$(released_version).crate" "$build/dist"
    done
}

# Checks, without compiling, that the registry would accept the crates.
publish_dry() {
    cargo publish --help | grep -q -- --workspace || skip 'cargo older than 1.90 publishes no workspace'
    by_hand cargo publish --dry-run --no-verify --locked --workspace --target-dir "$build/publish"
}

run_deny() { # WORD...
    local programs
    programs=$(cargo_program cargo-deny 0.20.2)
    PATH=$programs:$PATH by_hand cargo deny --workspace --locked --config tests/project/release/deny.toml "$@"
}

# Checks the crates against the list of security advisories, which is fetched each time.
check_advisories() {
    run_deny fetch db || skip 'the list of advisories cannot be fetched'
    run_deny check --disable-fetch advisories
}

# Packs the sources, and builds them from the archive as a user does.
pack_sources() {
    local name
    name=syncblob-$(released_version)
    git archive --prefix="$name/" HEAD | gzip -9n >"$build/dist/$name.tar.gz"
    rm -rf "${build:?}/$name"
    tar -xzf "$build/dist/$name.tar.gz" -C "$build"
    build_plainly "$build/$name"
    rm -rf "${build:?}/$name"
}

# Lists the crates in the command, for all systems, as CycloneDX. The list does not depend on the date or
# the folder. Uses a copy of the workspace without the other crates, because cargo would enable their
# features in the command, too.
list_materials() {
    local programs folder=$build/materials
    programs=$(cargo_program cargo-cyclonedx 0.5.9)
    rm -rf "$folder"
    mkdir -p "$folder"
    git archive HEAD | tar -xC "$folder"
    sed -i 's|^members = .*|members = ["bindings/syncblob-cli"]|' "$folder/Cargo.toml"
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) PATH=$programs:$PATH cargo cyclonedx --quiet --format json \
        --spec-version 1.5 --target all --manifest-path "$folder/bindings/syncblob-cli/Cargo.toml" \
        --override-filename syncblob.cdx
    sed "s|file://$folder/|file:///|g" "$folder/bindings/syncblob-cli/syncblob.cdx.json" >"$build/dist/syncblob.cdx.json"
    check_materials "$build/dist/syncblob.cdx.json"
}

# Checks that a list has exactly the crates that cargo reports for the command, each with a licence, and no
# paths outside the repository.
check_materials() { # FILE
    diff <(cargo tree --locked -p syncblob-cli --edges normal,build --target all --prefix none --format '{p}' |
        sed -n 's/^\([^ ]*\) v\([^ ]*\).*/\1 \2/p' | sort -u) <(python3 -c '
import json, sys
bill = json.load(open(sys.argv[1]))
for part in [bill["metadata"]["component"], *bill["components"]]:
    assert part.get("licenses"), "without a licence: " + part["name"]
    print(part["name"], part["version"])' "$1" | sort -u)
    grep -oP 'file:///\K[^"#?]*' "$1" | xargs ls -d
}

pack_commands() {
    local program windows=$cache/rust-windows/$windows_target/release/syncblob.exe
    program=$build/dist/syncblob-$(released_version)
    static_command "$program-linux-$(uname -m)"
    zig_command aarch64-unknown-linux-musl aarch64-linux-musl "$program-linux-aarch64" "${static_options[@]}"
    PATH=$cache/rust/bin:$PATH windows_cargo "$cache/rust-windows" build --release
    x86_64-w64-mingw32-strip -o "$program-windows-x86_64.exe" "$windows"
    # each command prints its version
    diff - <({ "$program-linux-$(uname -m)" --version
        qemu-aarch64 "$program-linux-aarch64" --version
        in_wine wine "$program-windows-x86_64.exe" --version; } | tr -d '\r') \
        <<<"$(printf "syncblob $(released_version)\n%.0s" 1 2 3)"
}

# Prints the files of a release except Debian's packages, which another step counts.
released_files() {
    local version name
    version=$(released_version)
    for name in $(released_crates); do echo "$name-$version.crate"; done
    echo "syncblob-$version.tar.gz" syncblob.cdx.json
    for name in linux-x86_64 linux-aarch64 windows-x86_64.exe; do echo "syncblob-$version-$name"; done
}

# Writes the checksums. Fails if a file is missing because its step was skipped.
sum_release() {
    local file status=0
    for file in $(released_files); do
        if [ ! -s "$build/dist/$file" ]; then
            echo "error: a release has $file, which no step made"
            status=1
        fi
    done
    (cd "$build/dist" && sha256sum -- * >SHA256SUMS)
    return $status
}

list_uploads() {
    local version
    version=$(released_version)
    printf '\nUpload %s in this order:\n' "$build/dist"
    if grep -q 'example\.invalid' Cargo.toml; then echo "0. Cargo.toml: enter the address of the repository"; fi
    echo "1. CHANGELOG.md: 'Unreleased ($version)' becomes '$version (DATE)'; commit; ./dev release --dry-run"
    echo "2. git tag -s v$version && git push origin v$version"
    echo "3. cargo publish --locked --workspace, or one by one: $(released_crates)"
    echo "4. the forge's page of v$version: every file below, and SHA256SUMS signed"
    (cd "$build/dist" && ls -l -- *)
}
