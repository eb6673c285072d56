#!/usr/bin/env bash
# Unpacks the driver's library of a Debian release into a folder, by lists of its own, so that
# nothing of the machine's is changed: fetch_driver.sh SUITE FOLDER. Prints the library's path.
# Exit status 77, with the reason: it cannot be had here.
set -euo pipefail

suite=$1 folder=$(readlink -m "$2")
find_library() { find "$folder" -name 'libcuda.so.1' | grep . ; }
skip() { echo "skipped: $*"; exit 77; }

! find_library 2>/dev/null || exit 0
[ "$(uname -m)" = x86_64 ] || skip 'the driver is looked for on x86-64 alone'
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if ! command -v apt-get >/dev/null || [ ! -e "$keyring" ]; then skip 'this is no Debian'; fi
# shellcheck disable=SC2016 # apt-get fills these in
mirror=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT)' 2>/dev/null |
    awk '$2 == "main" && $1 ~ /\/debian\/$/ { print $1; exit }')
[ -n "$mirror" ] || skip "the machine's sources name no mirror of Debian"

rm -rf "$folder"
mkdir -p "$folder"/apt/{lists/partial,archives/partial}
: >"$folder/apt/status"
echo "deb [signed-by=$keyring] $mirror $suite non-free" >"$folder/apt/sources.list"
options=(-qq -o "Dir::State=$folder/apt" -o "Dir::State::lists=$folder/apt/lists"
    -o "Dir::State::status=$folder/apt/status" -o "Dir::Cache=$folder/apt"
    -o "Dir::Etc::sourcelist=$folder/apt/sources.list" -o Dir::Etc::sourceparts=-
    -o Acquire::Languages=none -o "APT::Sandbox::User=$(id -un)")
apt-get "${options[@]}" update >&2 || skip "the lists of $suite cannot be fetched"
(cd "$folder" && apt-get "${options[@]}" download libcuda1 >&2) || skip "$suite has no libcuda1"
dpkg-deb -x "$folder"/libcuda1_*.deb "$folder"
rm -rf "$folder/apt" "$folder"/*.deb
find_library
