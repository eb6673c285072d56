#!/usr/bin/env bash
# Unpacks this distribution's packages of another architecture into a folder:
#   sysroot.sh ARCHITECTURE FOLDER PACKAGE...
# With DEBIAN="SUITE COMPONENT" the packages are from a release of Debian.
# Exit status 3: the machine's package sources lack these packages.
set -euo pipefail

architecture=$1 folder=$(readlink -m "$2")
shift 2
[ "$(cat "$folder/packages" 2>/dev/null)" != "$*" ] || exit 0

rm -rf "$folder"
mkdir -p "$folder"/apt/{lists/partial,archives/partial} "$folder/debs"
: >"$folder/apt/status"
options=(-qq -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture"
    -o "Dir::State=$folder/apt" -o "Dir::State::lists=$folder/apt/lists"
    -o "Dir::State::status=$folder/apt/status" -o "Dir::Cache=$folder/apt"
    -o Acquire::Languages=none -o APT::Sandbox::User="$(id -un)")
if [ -n "${DEBIAN:-}" ]; then
    # shellcheck disable=SC2016 # apt-get fills these in
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT)' |
        awk '$2 == "main" && $1 ~ /\/debian\/$/ { print $1; exit }')
    [ -n "$mirror" ] || { echo "apt's sources name no Debian mirror"; exit 3; }
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $DEBIAN" \
        >"$folder/apt/sources.list"
    options+=(-o "Dir::Etc::sourcelist=$folder/apt/sources.list" -o Dir::Etc::sourceparts=-)
fi
apt-get "${options[@]}" update || echo 'some lists are missing' >&2
apt-cache "${options[@]}" show "$1" >/dev/null 2>&1 ||
    { echo "no package $1 for $architecture in this machine's sources"; exit 3; }
(cd "$folder/debs" && apt-get "${options[@]}" download "$@")
for deb in "$folder"/debs/*.deb; do
    dpkg-deb -x "$deb" "$folder"
done

# The packages' absolute links point to the machine's own files.
while read -r link; do
    target=$(readlink "$link")
    case $target in /*) ln -sfnr "$folder$target" "$link" ;; esac
done < <(find "$folder/usr" -type l)
# Only an installation of OpenBLAS by apt creates these links.
for library in "$folder"/usr/lib/*/openblas-serial/libopenblas.so.0; do
    [ ! -e "$library" ] || ln -sfr "$library" "${library%/openblas-serial/*}"
done
rm -rf "$folder/apt" "$folder/debs"
echo "$*" >"$folder/packages"
