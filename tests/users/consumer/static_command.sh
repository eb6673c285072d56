#!/usr/bin/env bash
# Runs the static programs `syncblob` and `unwind` with a folder as the root:
#   static_command.sh FOLDER MODEL [EMULATOR]
set -euo pipefail

folder=$(readlink -f "$1")
model=$(readlink -f "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

cp "$folder/syncblob" "$work"
! readelf -ldW "$work/syncblob" | grep -E 'INTERP|NEEDED' || fail 'it is not static'
readelf -lW "$work/syncblob" | grep -E 'GNU_STACK( +0x[0-9a-f]+){5} +RW +0' ||
    fail 'its stack is not marked as without code'
cp "$model" "$work/model.caffemodel"

if [ $# = 3 ]; then
    enclosed=(env -i "--chdir=$work" "$(command -v "$3")" ./syncblob)
elif [ "$(id -u)" = 0 ]; then
    enclosed=(env -i "$(command -v chroot)" "$work" /syncblob)
else
    echo 'without an empty root: chroot needs root'
    enclosed=(env -i "--chdir=$work" ./syncblob)
fi
"${enclosed[@]}" --version
"${enclosed[@]}" info model.caffemodel >"$work/info"
[ "$(wc -l <"$work/info")" -gt 3 ] || fail 'info prints little'
"${enclosed[@]}" convert model.caffemodel model.safetensors --names caffe
"${enclosed[@]}" convert model.safetensors back.caffemodel
"${enclosed[@]}" verify model.caffemodel model.safetensors back.caffemodel
"${enclosed[@]}" diff model.caffemodel model.safetensors
! "${enclosed[@]}" info no.caffemodel 2>"$work/output" || fail 'a file that is not there was read'
grep -q 'No such file' "$work/output"

# musl's dlopen always fails in a static program.
"${enclosed[@]}" devices >"$work/devices"
grep -q '^ sim:0' "$work/devices" || fail 'devices does not list sim:0'
! "${enclosed[@]}" devices --backend syncblob 2>"$work/output" || fail 'a static program loaded a library'
grep -q '"syncblob" cannot be opened: Dynamic loading not supported' "$work/output"

env -i ${3:+"$(command -v "$3")"} "$folder/unwind"
