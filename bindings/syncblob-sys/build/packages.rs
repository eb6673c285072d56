//! Libraries that pkg-config finds.

use std::path::Path;

use pkg_config::{Config, Error, Library};

use crate::variable;

/// Finds and links `name`; `otherwise` is the advice if it is missing.
pub fn find(name: &str, version: &str, otherwise: &str) -> Result<Library, String> {
    let library = Config::new().atleast_version(version).probe(name).map_err(|e| {
        explain(name, e)
            .unwrap_or_else(|| format!("{name} {version} or newer was not found: {otherwise}"))
    })?;
    watch(name);
    Ok(library)
}

/// The error of pkg-config or its use; None: the library was not found.
pub fn explain(name: &str, error: Error) -> Option<String> {
    match error {
        Error::EnvNoPkgConfig(variable) => {
            Some(format!("{variable} is set, but {name} is found by pkg-config alone: unset it"))
        }
        Error::CrossCompilation => {
            let target = variable("TARGET").unwrap_or_default();
            Some(format!(
                "pkg-config is not set up for {target}: set PKG_CONFIG_SYSROOT_DIR and \
                 PKG_CONFIG_LIBDIR to its libraries"
            ))
        }
        Error::Command { .. } => Some("pkg-config is missing: install pkg-config".into()),
        _ => None,
    }
}

/// Has the build script run again when the library is installed anew.
pub fn watch(name: &str) {
    let folder =
        pkg_config::get_variable(name, "pcfiledir").unwrap_or_default().replace("\\ ", " ");
    let file = Path::new(&folder).join(format!("{name}.pc"));
    // A path that does not exist would have it run every time.
    if file.is_file() {
        println!("cargo::rerun-if-changed={}", file.display());
    }
}

/// The folder of a serial OpenBLAS that the loader would not look into: both
/// of Debian's builds have one SONAME, and without it the threaded one is found.
pub fn run_path(library: &Library) -> String {
    let mut folders = library.link_paths.iter();
    let serial = folders.find(|dir| dir.ends_with("openblas-serial"));
    serial.map(|dir| dir.display().to_string()).unwrap_or_default()
}
