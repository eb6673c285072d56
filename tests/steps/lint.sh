# shellcheck shell=bash
# ./dev format, ./dev lint.

c_files() {
    find c tests cuda fuzz \( -name '*.[ch]' -o -name '*.cpp' \) -type f
}

format() {
    need "$lint_needs"
    c_files | xargs clang-format-14 -i
    cargo fmt --all
}

lint() {
    local scripts
    need "$build_needs" "$lint_needs"
    mapfile -t scripts < <(grep -rlE --include='*.sh' '^#!.*bash' proto tests fuzz bindings; echo dev; echo .ci/run)
    step 'clang-format' xargs -a <(c_files) clang-format-14 --dry-run --Werror
    step 'shellcheck' shellcheck -x "${scripts[@]}"
    step 'cargo fmt' cargo fmt --all --check
    if cargo clippy --version >/dev/null 2>&1; then
        step 'clippy' cargo clippy --workspace --all-targets --locked -- -D warnings
    else
        echo 'skipped         clippy: it is not part of this Rust (Debian packages none for rustc-web)'
    fi
    summary
}
