# shellcheck shell=bash
# Installs Rust and the groups of packages in packages.txt.

rust_needed=$(sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' Cargo.toml)

is_at_least() { # VERSION MINIMUM
    [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -1)" = "$2" ]
}

# Ubuntu's versioned packages install Rust outside PATH.
find_rust() {
    local folder
    for folder in /usr/lib/rust-1.*/bin; do
        if [ -x "$folder/cargo" ] && ! command -v cargo >/dev/null; then PATH=$PATH:$folder; fi
    done
    command -v cargo >/dev/null && command -v rustc >/dev/null
}

# The packages' names are rustc-web, rustc, or such as rustc-1.85.
rust_packages() {
    local rustc version
    for rustc in rustc-web rustc $(apt-cache pkgnames rustc-1. | grep -E '^rustc-1\.[0-9]+$' | sort -Vr); do
        version=$(apt-cache policy "$rustc" | sed -n 's/^ *Candidate: *//p')
        if [[ $version == [0-9]* ]] && is_at_least "$version" "$rust_needed"; then
            printf '%s\n' "$rustc" "${rustc/rustc/cargo}" "${rustc/rustc/rustfmt}"
            return
        fi
    done
    die "this distribution has no Rust $rust_needed or newer: install one (www.rust-lang.org)"
}

missing_packages() { # GROUP...
    local group names
    while IFS=: read -r group names; do
        if [[ " $* " == *" $group "* ]]; then tr ' ' '\n' <<<"${names# }"; fi
    done <tests/steps/packages.txt | sort -u |
        comm -23 - <(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' | sed -n 's/^ii //p' | sort)
}

# Installs groups of packages if the machine has apt.
need() { # GROUP...
    local missing as_root=()
    command -v apt-get >/dev/null || return 0
    mapfile -t missing < <(missing_packages "$@"; find_rust || echo rust)
    if [ ${#missing[@]} = 0 ]; then return; fi
    if [ -n "${SYNCBLOB_NO_INSTALL:-}" ]; then
        echo "not installed: ${missing[*]}"
        return
    fi
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get -qq update
    find_rust || mapfile -t -O ${#missing[@]} missing < <(rust_packages)
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | grep -xFf <(apt-cache pkgnames))
    echo "installing: ${missing[*]}"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq install --no-install-recommends -y "${missing[@]}" >/dev/null
    find_rust
}
