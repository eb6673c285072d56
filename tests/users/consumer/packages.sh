#!/usr/bin/env bash
# Makes and tests the Debian packages and the archive of a build folder: packages.sh BUILD [MODEL [OUT]]
# The unpacked command must read MODEL. If all tests pass, copies the packages to OUT.
set -euo pipefail

build=$(readlink -f "$1") model=${2:+$(readlink -f "$2")} out=${3:+$(readlink -f "$3")}
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

umask 022 # cpack's folders get their modes from the umask
(cd "$work" && cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work/made")
mv "$work"/made/*.deb "$work"
names=$(cd "$work" && for package in *.deb; do dpkg-deb -f "$package" Package; done | xargs)
wanted="libsyncblob-comm-dev libsyncblob-comm0.1 libsyncblob-conformance-dev libsyncblob-conformance0.1 libsyncblob-dev libsyncblob-mpi-dev libsyncblob-mpi0.1 libsyncblob-net-dev libsyncblob-net0.1 libsyncblob-testing-dev libsyncblob-testing0.1"
[ "$names" = "$wanted libsyncblob0.1 syncblob-tools" ] || fail "made were $names"

# Containers run lintian as root.
lintian --allow-root --tag-display-limit 0 --fail-on error "$work"/*.deb

depends() { # PACKAGE EXPRESSION
    dpkg-deb -f "$work/$1"_*.deb Depends | grep -Eq "(^|, )$2(,|$| \(>=)" ||
        fail "$1 depends on $(dpkg-deb -f "$work/$1"_*.deb Depends), not on $2"
}
depends libsyncblob0.1 libprotobuf-c1
depends libsyncblob0.1 libopenblas0-serial
depends libsyncblob-dev 'libsyncblob0.1 \(= [0-9.]+-1\)'
depends_over() { # NAME USED: suffixes of the names of a library and of the library that it uses
    depends "libsyncblob$1"0.1 "libsyncblob$2"'0.1 \(= [0-9.]+-1\)'
    depends "libsyncblob$1-dev" "libsyncblob$1"'0.1 \(= [0-9.]+-1\)'
    depends "libsyncblob$1-dev" "libsyncblob$2"'-dev \(= [0-9.]+-1\)'
}
depends_over -testing ''
depends_over -conformance ''
depends_over -comm ''
depends_over -mpi -comm
depends_over -net ''
depends libsyncblob-mpi0.1 'lib(openmpi|mpich)[0-9]+'
depends syncblob-tools libc6
! dpkg-deb -f "$work"/syncblob-tools_*.deb Depends | grep openblas || fail 'the command is not linked with OpenBLAS'

root=$work/root
for package in "$work"/*.deb; do
    dpkg-deb -x "$package" "$root"
    dpkg-deb -e "$package" "$work/control"
    (cd "$root" && md5sum --quiet -c "$work/control/md5sums")
done
[ -z "$(find "$root" -perm /022 ! -type l)" ] || fail 'others may write to a file'
readelf -S "$root"/usr/lib/*/libsyncblob.so.0.1 "$root/usr/bin/syncblob" >"$work/sections"
! grep -E '\.(symtab|debug_info)' "$work/sections" || fail 'not stripped'

for program in c cxx; do
    "$here/run.sh" $program "$root/usr"
    LINK=static "$here/run.sh" $program "$root/usr"
done
"$here/run.sh" mpi "$root/usr"
"$here/run.sh" net "$root/usr" "$root/usr/bin/syncblob" || [ $? = 77 ]
"$root/usr/bin/syncblob" --version
[ -z "$model" ] || "$root/usr/bin/syncblob" info "$model" >/dev/null
for page in "$root"/usr/share/man/man1/*.gz; do
    gzip -dc "$page" | groff -man -Tutf8 >/dev/null
done

(cd "$work" && cpack --config "$build/CPackConfig.cmake" -G TGZ -B "$work/made")
mkdir "$work/archive"
tar -xf "$work"/made/*.tar.gz -C "$work/archive" --strip-components 1
"$here/run.sh" c "$work/archive"
"$work/archive/bin/syncblob" --version
[ -f "$work/archive/share/doc/syncblob/LICENSE-MIT" ]
[ -z "$out" ] || cp "$work"/*.deb "$out"
