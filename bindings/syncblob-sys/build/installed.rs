//! Finds and links an installed library.

use std::fs;
use std::path::PathBuf;

use pkg_config::{Config, Library};

use crate::{packages, Linked};

pub fn link() -> Result<Linked, String> {
    let installed = Config::new().cargo_metadata(false).probe("syncblob").map_err(|e| {
        packages::explain("syncblob", e).unwrap_or_else(|| {
            "no installed syncblob was found: install it, set PKG_CONFIG_PATH to the folder of its \
             syncblob.pc, or unset SYNCBLOB_NO_VENDOR and the feature `system` to build the \
             bundled sources"
                .into()
        })
    })?;
    packages::watch("syncblob");
    // Accept any patch version, because all patch versions have the same functions.
    let version = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));
    let next = next_breaking_version();
    let mut config = Config::new();
    let statically = is_static_only(&installed);
    if statically {
        config.statik(true);
    }
    let library = config.range_version(version..next.as_str()).probe("syncblob").map_err(|_| {
        format!(
            "the installed syncblob is {}, but {version} or newer, below {next}, is needed: \
             install that, or unset SYNCBLOB_NO_VENDOR and the feature `system` to build the \
             bundled sources",
            installed.version
        )
    })?;
    let include = include_folder(&library)?;
    println!("cargo::rerun-if-changed={}", include.join("syncblob").display());
    Ok(Linked {
        root: prefix()?,
        // A shared libsyncblob already contains the run path.
        run_path: if statically { packages::run_path(&library) } else { String::new() },
        version: library.version,
        include,
    })
}

/// Returns whether only a static library is installed. The build must then link its dependencies,
/// too.
fn is_static_only(installed: &Library) -> bool {
    let has = |name: &str| installed.link_paths.iter().any(|dir| dir.join(name).is_file());
    has("libsyncblob.a") && !has("libsyncblob.so")
}

fn include_folder(library: &Library) -> Result<PathBuf, String> {
    let mut folders = library.include_paths.iter();
    folders.find(|dir| dir.join("syncblob/syncblob.h").is_file()).cloned().ok_or_else(|| {
        "syncblob.pc was found but not syncblob/syncblob.h: install syncblob's headers".into()
    })
}

fn prefix() -> Result<PathBuf, String> {
    let prefix = pkg_config::get_variable("syncblob", "prefix").map_err(|e| e.to_string())?;
    fs::canonicalize(&prefix)
        .or_else(|_| fs::canonicalize(without_escapes(&prefix)))
        .map_err(|e| format!("syncblob's prefix {prefix}: {e}"))
}

/// Removes the backslashes with which pkg-config escapes special characters of the shell.
fn without_escapes(text: &str) -> String {
    let mut characters = text.chars();
    let mut plain = String::new();
    while let Some(character) = characters.next() {
        plain.push(if character == '\\' { characters.next().unwrap_or('\\') } else { character });
    }
    plain
}

/// Returns the next version that may break the API: 0.(x + 1) after 0.x.y, and 2.0 after 1.x.y.
fn next_breaking_version() -> String {
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    let major = number(env!("CARGO_PKG_VERSION_MAJOR"));
    let minor = number(env!("CARGO_PKG_VERSION_MINOR"));
    match major {
        0 => format!("0.{}", minor + 1),
        _ => format!("{}", major + 1),
    }
}
