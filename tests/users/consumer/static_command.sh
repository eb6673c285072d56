#!/usr/bin/env bash
# The static program that bindings/syncblob-cli/static.sh makes, in a folder that is its whole
# world: static_command.sh MODEL
set -euo pipefail

model=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
make=$here/../../../bindings/syncblob-cli/static.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

"$make" "$work/syncblob"
! readelf -ldW "$work/syncblob" | grep -E 'INTERP|NEEDED' || fail 'it is not static'
readelf -lW "$work/syncblob" | grep -E 'GNU_STACK( +0x[0-9a-f]+){5} +RW +0x' ||
    fail 'its stack is not said to be without code'
cp "$model" "$work/model.caffemodel"

# No file, no variable, where the right to say so is ours.
if [ "$(id -u)" = 0 ]; then
    enclosed=(env -i "$(command -v chroot)" "$work" /syncblob)
else
    echo 'without an empty root: chroot needs root'
    enclosed=(env -i "--chdir=$work" "$work/syncblob")
fi
"${enclosed[@]}" --version
"${enclosed[@]}" info model.caffemodel >"$work/info"
[ "$(wc -l <"$work/info")" -gt 3 ] || fail 'info says little'
"${enclosed[@]}" convert model.caffemodel model.safetensors
"${enclosed[@]}" convert model.safetensors back.caffemodel
"${enclosed[@]}" verify model.caffemodel model.safetensors back.caffemodel
"${enclosed[@]}" diff model.caffemodel model.safetensors
! "${enclosed[@]}" info no.caffemodel 2>"$work/said" || fail 'a file that is not there was read'
grep -q 'No such file' "$work/said"

"$make" "$work/unwind" "$here/unwind"
env -i "$work/unwind"
