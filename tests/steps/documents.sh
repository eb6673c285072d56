# shellcheck shell=bash
# The documentation: the reference of the headers, the crates' pages, the guide, every code block.

documents_needs='
doxygen           | command -v doxygen
'

# The C reference as HTML, in $build/reference; a warning fails. Before 1.9.4, which Ubuntu 22.04 does
# not have, each parameter without a word is a warning.
make_reference() {
    local version
    version=$(doxygen --version | cut -d' ' -f1)
    if ! is_at_least "$version" 1.9.4; then
        echo "skipped: doxygen is $version, 1.9.4 or newer is needed"
        return 77
    fi
    rm -rf "$build/reference"
    mkdir -p "$build/reference"
    SYNCBLOB_REFERENCE=$build/reference doxygen c/Doxyfile
}

# The crates' documentation, of every feature that adds to it: those that syncblob-tests asks for,
# for which the linters have the dependencies already.
make_rust_reference() {
    RUSTDOCFLAGS='-D warnings' \
        cargo doc --locked --no-deps -p syncblob -p syncblob-net -p syncblob-sys -p syncblob-tests
}

# What the pages' programs and commands are run with: the library, in $build/documents/prefix, and
# the program syncblob.
build_installed_library() {
    rm -rf "$build/documents/prefix"
    cmake --install "$build/release" --prefix "$build/documents/prefix"
}

check_with_library() { # SCRIPT ARGUMENT...
    local script=$1
    shift
    python3 "tests/project/documents/$script" --prefix "$build/documents/prefix" \
        --cli "$CARGO_TARGET_DIR/debug/syncblob" --cc gcc --cxx g++ "$@"
}

# ./dev documents
documents() {
    need "$build_needs" "$test_needs" "$documents_needs"
    pages_steps
    documents_steps
    summary
    printf '\n%s\n%s\n' "C: $build/reference/index.html" \
        "Rust: $CARGO_TARGET_DIR/doc/syncblob/index.html"
}

# What is read and not run.
pages_steps() {
    aside 'headers: ownership, errors, values' python3 tests/project/documents/check_reference.py
    aside 'lists of errors against the tests' python3 tests/project/documents/check_errors.py
    aside 'paths and names of the pages' python3 tests/project/documents/check_names.py
    aside 'files of the guide' python3 tests/project/documents/check_guide.py
    aside 'pictures of the guide' python3 c/guide/pictures/draw.py --check
}

documents_steps() {
    on documents_needs aside 'C reference' make_reference
    aside 'Rust reference' make_rust_reference
    on 'release installed_library program' aside 'code blocks of the pages' \
        check_with_library check_blocks.py
}

# The C tests, each status that a function returns held against its list of errors. The compiler is
# tried before the flags are there, which only our own programs can be linked with.
watch_errors() {
    local folder=$build/errors
    rm -rf "$folder"
    cmake --preset debug -B "$folder" $gcc
    python3 tests/project/documents/watch_errors.py "$folder"
    gcc -std=c17 -O1 -Wall -Wextra -Werror -Ic/include -Ic/testing/include -Ic/comm/include \
        -c "$folder/watch.c" -o "$folder/watch.o"
    cmake -B "$folder" "-DCMAKE_EXE_LINKER_FLAGS=$folder/watch.o @$folder/watch.flags"
    cmake --build "$folder" -j "$jobs"
    # with empty lists a test's failures are found
    run_ctest SYNCBLOB_ERRORS_ALL=1 "SYNCBLOB_ERRORS_LOG=$folder/control.txt" errors -R '^behaviour\.blob_shape$'
    grep 'sb_blob_legacy_shape returned SB_ERR_SHAPE_MISMATCH' "$folder/control.txt" | sort -u
    run_ctest "SYNCBLOB_ERRORS_LOG=$folder/returned.txt" errors -E '^(consumer|abi|input)'
    if [ -e "$folder/returned.txt" ]; then
        sort "$folder/returned.txt" | uniq -c
        return 1
    fi
}

documents_full_steps() {
    step 'lists of errors against what the tests see' watch_errors
    on 'release installed_library program' step 'checks of the documentation find what is wrong' \
        check_with_library selftest.py
}
