#!/usr/bin/env bash
# fetch_package.sh SUITE COMPONENT PACKAGE FILE FOLDER: unpacks a package of a Debian release into
# FOLDER and prints the path of FILE. Uses separate package lists, and changes nothing else on the
# machine. Exits with 77 and prints the reason if the package is not available here.
set -euo pipefail

suite=$1 component=$2 package=$3 file=$4 folder=$(readlink -m "$5")
find_file() { find "$folder" -name "$file" | grep . ; }
skip() { echo "skipped: $*"; exit 77; }

! find_file 2>/dev/null || exit 0
[ "$(uname -m)" = x86_64 ] || skip "$package is fetched only on x86-64"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if ! command -v apt-get >/dev/null || [ ! -e "$keyring" ]; then skip 'this is not Debian'; fi
# shellcheck disable=SC2016 # apt-get fills these in
mirror=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT)' 2>/dev/null |
    awk '$2 == "main" && $1 ~ /\/debian\/$/ { print $1; exit }')
[ -n "$mirror" ] || skip "apt's sources name no Debian mirror"

rm -rf "$folder"
mkdir -p "$folder"/apt/{lists/partial,archives/partial}
: >"$folder/apt/status"
echo "deb [signed-by=$keyring] $mirror $suite $component" >"$folder/apt/sources.list"
options=(-qq -o "Dir::State=$folder/apt" -o "Dir::State::lists=$folder/apt/lists"
    -o "Dir::State::status=$folder/apt/status" -o "Dir::Cache=$folder/apt"
    -o "Dir::Etc::sourcelist=$folder/apt/sources.list" -o Dir::Etc::sourceparts=-
    -o Acquire::Languages=none -o "APT::Sandbox::User=$(id -un)")
apt-get "${options[@]}" update >&2 || skip "the lists of $suite cannot be fetched"
(cd "$folder" && apt-get "${options[@]}" download "$package" >&2) || skip "$suite has no $package"
dpkg-deb -x "$folder/$package"_*.deb "$folder"
rm -rf "$folder/apt" "$folder"/*.deb
find_file
