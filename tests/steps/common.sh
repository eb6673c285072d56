# shellcheck shell=bash
# Folders and functions that dev and the steps share. Source this file in the repository's root.

export SYNCBLOB_CACHE=${SYNCBLOB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/syncblob}
cache=$SYNCBLOB_CACHE
build=${SYNCBLOB_BUILD:-$PWD/build}
export SYNCBLOB_TEST_DATA=${SYNCBLOB_TEST_DATA:-$PWD/../shared/data}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
export PYTHONDONTWRITEBYTECODE=1
if command -v ccache >/dev/null; then export CMAKE_C_COMPILER_LAUNCHER=ccache; fi
jobs=${SYNCBLOB_JOBS:-$(nproc)}
mkdir -p "$cache" "$build/log"

die() {
    echo "dev: $*" >&2
    exit 1
}

skip() { # WHY
    echo "skipped: $*" >&2
    exit 77
}

. tests/steps/packages.sh
. tests/steps/run.sh
. tests/steps/fetch.sh
. tests/steps/build.sh
. tests/steps/tools.sh
. tests/steps/lint.sh
. tests/steps/users.sh
. tests/steps/systems.sh
. tests/steps/web.sh
. tests/steps/cuda.sh
. tests/steps/bench.sh
. tests/release/systems.sh
. tests/release/users.sh
. tests/release/release.sh
