#!/usr/bin/env bash
# Builds this distribution's version of cmocka for another system: cmocka.sh FOLDER OPTION-OF-CMAKE...
# Exit status 3: the machine's package sources lack cmocka.
set -euo pipefail

folder=$(readlink -m "$1")
shift
version=$(dpkg-query -W -f '${Version}' libcmocka-dev)
[ "$(cat "$folder/version" 2>/dev/null)" != "$version" ] || exit 0

rm -rf "$folder"
mkdir -p "$folder"/apt/{lists/partial,archives/partial} "$folder/source"
shopt -s nullglob
for list in /etc/apt/sources.list.d/*.sources; do
    sed 's/^Types: .*/Types: deb-src/' "$list"
    echo
done >"$folder/apt/all.sources"
sed -n 's/^deb /deb-src /p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
    2>/dev/null >"$folder/apt/all.list" || true
options=(-qq -o "Dir::Etc::sourcelist=$folder/apt/all.list" -o "Dir::Etc::sourceparts=$folder/apt"
    -o "Dir::State::lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt"
    -o Acquire::Languages=none -o APT::Sandbox::User="$(id -un)")
apt-get "${options[@]}" update || echo 'some lists are missing' >&2
(cd "$folder/source" && apt-get "${options[@]}" source --download-only "cmocka=$version") ||
    { echo "no source of cmocka $version in this machine's sources"; exit 3; }
tar -xf "$folder"/source/cmocka_*.orig.tar.?z -C "$folder/source" --strip-components=1

cmake -S "$folder/source" -B "$folder/build" "$@" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$folder" -DWITH_STATIC_LIB=ON \
    -DWITH_EXAMPLES=OFF -DUNIT_TESTING=OFF -DCMAKE_C_FLAGS=-D__USE_MINGW_ANSI_STDIO=1
cmake --build "$folder/build" --target install
cd "$folder"
mv lib/libcmocka-static.a lib/libcmocka.a
rm -rf lib/libcmocka.dll.a lib/*.so* bin apt source build
echo "$version" >version
