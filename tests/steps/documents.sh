# shellcheck shell=bash
# The documentation: the reference of the headers, the crates' pages, the guide, every code block.

documents_needs='
doxygen           | command -v doxygen
'

# The C reference as HTML, in $build/reference; a warning fails.
make_reference() {
    rm -rf "$build/reference"
    mkdir -p "$build/reference"
    SYNCBLOB_REFERENCE=$build/reference doxygen c/Doxyfile
}

# The crates' documentation, of every feature; DOCS_RS spares building the C library.
make_rust_reference() {
    DOCS_RS=1 RUSTDOCFLAGS='-D warnings' \
        cargo doc --locked --no-deps --all-features -p syncblob -p syncblob-sys
}

documents_steps() {
    step 'headers: ownership, errors, values' python3 tests/documents/check_reference.py
    step 'C reference' make_reference
    step 'Rust reference' make_rust_reference
}
